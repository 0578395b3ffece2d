/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A JSON writer.  Keys come out in the order of the calls, bytes are
 * integers, nothing is ever NaN; objects in lists take one line each. */
#include "report/report.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static void put_string(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		const char *esc = strchr("\"\"\\\\\bb\ff\nn\rr\tt", *s);
		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20 && esc)
			fprintf(f, "\\%c", esc[1]);
		else if (c < 0x20 || c == 0x7f)
			fprintf(f, "\\u%04x", c);
		else
			fputc(c, f);
	}
	fputc('"', f);
}

static void put_key(struct json *j, const char *key, bool own_line)
{
	struct json_level *l = &j->level[j->depth];
	if (l->more)
		fputc(',', j->f);
	if (own_line)
		fprintf(j->f, "\n%*s", (int)j->depth * 2, "");
	else if (l->more)
		fputc(' ', j->f);
	l->more = true;
	l->lines |= own_line;
	if (key) {
		put_string(j->f, key);
		fputs(": ", j->f);
	}
}

/* Values in lists and in the objects of lists share a line. */
static void before(struct json *j, const char *key)
{
	put_key(j, key, key && !j->level[j->depth].flat);
}

void json_open(struct json *j, const char *key, char bracket)
{
	struct json_level *l = &j->level[j->depth];
	if (j->depth)
		put_key(j, key, !l->flat);
	fputc(bracket, j->f);
	assert(j->depth + 1 < COUNT(j->level));
	bool flat = l->flat || (j->depth && !key);
	j->level[++j->depth] = (struct json_level){ .flat = flat };
}

void json_close(struct json *j, char bracket)
{
	bool lines = j->level[j->depth--].lines;
	if (lines)
		fprintf(j->f, "\n%*s", (int)j->depth * 2, "");
	fputc(bracket, j->f);
	if (j->depth == 0)
		fputc('\n', j->f);
}

void json_uint(struct json *j, const char *key, uint64_t n)
{
	before(j, key);
	fprintf(j->f, "%" PRIu64, n);
}

void json_int(struct json *j, const char *key, int64_t n)
{
	before(j, key);
	fprintf(j->f, "%" PRId64, n);
}

void json_str(struct json *j, const char *key, const char *s)
{
	before(j, key);
	if (s)
		put_string(j->f, s);
	else
		fputs("null", j->f);
}

void json_bool(struct json *j, const char *key, bool b)
{
	before(j, key);
	fputs(b ? "true" : "false", j->f);
}

void json_null(struct json *j, const char *key)
{
	before(j, key);
	fputs("null", j->f);
}
