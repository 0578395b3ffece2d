/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Diagnostics: messages are collected, sorted by place and shown with their
 * source line, a caret and a hint.  Columns count code points, as libyaml
 * does.  Long lines (a config.json on one line) show the part around the
 * caret. */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PER_SEVERITY = 20, SHOWN = 110, BEFORE = 60, LONGEST = 2000 };

struct message {
	struct loc loc;
	enum severity sev;
	bool refusal;
	const char *text, *hint;
	size_t order, source_order;    /* of arrival; of its source's first message */
};

struct diag {
	struct arena *a;
	VEC(struct message) v;
	size_t count[2];               /* by severity */
	bool input, environment, refused, dropped, too_many;
};

struct diag *diag_new(struct arena *a)
{
	struct diag *d = NEW(a, struct diag);

	d->a = a;
	return d;
}

struct arena *diag_arena(struct diag *d)
{
	return d->a;
}

static void add(struct diag *d, enum severity sev, bool refusal, struct loc loc, const char *fmt, va_list ap)
{
	size_t first = 0;

	d->dropped = d->count[sev] == MAX_PER_SEVERITY;
	if (d->dropped) {
		d->too_many = d->too_many || sev == SEV_ERROR;
		return;
	}
	while (first < d->v.n && d->v.v[first].loc.src != loc.src)
		first++;
	d->count[sev]++;
	*VEC_PUSH(d->a, &d->v) = (struct message){
		.loc = loc, .sev = sev, .refusal = refusal, .text = arena_vprintf(d->a, fmt, ap),
		.order = d->v.n, .source_order = first,
	};
}

void diag_error(struct diag *d, struct loc loc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, SEV_ERROR, false, loc, fmt, ap);
	va_end(ap);
	d->input = true;
}

void diag_warn(struct diag *d, struct loc loc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, SEV_WARNING, false, loc, fmt, ap);
	va_end(ap);
}

void diag_refuse(struct diag *d, struct loc loc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, SEV_ERROR, true, loc, fmt, ap);
	va_end(ap);
	d->refused = true;
}

void diag_environment(struct diag *d, struct loc loc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(d, SEV_ERROR, false, loc, fmt, ap);
	va_end(ap);
	d->environment = true;
}

void diag_hint(struct diag *d, const char *fmt, ...)
{
	va_list ap;

	if (d->dropped || d->v.n == 0)
		return;
	va_start(ap, fmt);
	d->v.v[d->v.n - 1].hint = arena_vprintf(d->a, fmt, ap);
	va_end(ap);
}

int diag_status(const struct diag *d)
{
	return d->input ? EXIT_INPUT : d->environment ? EXIT_ENVIRONMENT : d->refused ? EXIT_NO_ANSWER : 0;
}

size_t diag_count(const struct diag *d, enum severity s)
{
	return d->count[s];
}

const char *diag_text(const struct diag *d, enum severity s, size_t i)
{
	for (size_t k = 0; k < d->v.n; k++)
		if (d->v.v[k].sev == s && i-- == 0)
			return d->v.v[k].text;
	return NULL;
}

/* ---- printing */

static int by_place(const void *x, const void *y)
{
	const struct message *a = *(const struct message *const *)x, *b = *(const struct message *const *)y;

	if (a->source_order != b->source_order)
		return a->source_order < b->source_order ? -1 : 1;
	if (a->loc.line != b->loc.line)
		return a->loc.line < b->loc.line ? -1 : 1;
	if (a->loc.col != b->loc.col)
		return a->loc.col < b->loc.col ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

/* Line number `line` of the source, without its end; NULL when there is none. */
static const char *line_find(const struct source *src, int line, size_t *len)
{
	const char *p, *end, *stop;

	if (!src || !src->text || line < 1)
		return NULL;
	p = src->text;
	end = p + src->len;
	while (--line > 0) {
		p = memchr(p, '\n', (size_t)(end - p));
		if (!p)
			return NULL;
		p++;
	}
	stop = memchr(p, '\n', (size_t)(end - p));
	*len = (size_t)((stop ? stop : end) - p);
	if (*len > 0 && p[*len - 1] == '\r')
		--*len;
	return p;
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Bytes that the first n code points of s take. */
static size_t points_bytes(const char *s, size_t len, int n)
{
	size_t i = 0;

	while (i < len && n-- > 0)
		for (i++; i < len && continues(s[i]); i++)
			;
	return i;
}

/* Bytes of the UTF-8 sequence at s; 0: none, or a control character. */
static size_t point_len(const char *s, size_t len)
{
	unsigned char c = (unsigned char)s[0];
	size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

	if (n > len || (c < 0x20 && c != '\t') || c == 0x7f)
		return 0;
	for (size_t i = 1; i < n; i++)
		if (!continues(s[i]))
			return 0;
	return n;
}

static void put_line(FILE *f, const char *s, size_t len)
{
	size_t n;

	for (size_t i = 0; i < len; i += n ? n : 1) {
		n = point_len(s + i, len - i);
		if (n)
			fwrite(s + i, 1, n, f);
		else
			putc('?', f);
	}
}

/* Blanks under the first n bytes of s, tabs under tabs. */
static void put_blank(FILE *f, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s[i] == '\t' || !continues(s[i]))
			putc(s[i] == '\t' ? '\t' : ' ', f);
}

static void put_excerpt(FILE *f, const struct message *m)
{
	size_t len = 0, at, from = 0, shown;
	const char *s = line_find(m->loc.src, m->loc.line, &len);
	bool bare = s && m->loc.src->bare;
	int caret = m->loc.len > 0 ? m->loc.len : 1;

	if (!s) {
		if (m->hint)
			fprintf(f, "      | %s\n", m->hint);
		return;
	}
	at = points_bytes(s, len, m->loc.col - 1);
	if (at > BEFORE && len > SHOWN) {
		from = at - BEFORE;
		while (from > 0 && continues(s[from]))
			from--;
	}
	shown = points_bytes(s + from, len - from, SHOWN);
	if (bare)
		fputs("      | ", f);
	else
		fprintf(f, "%5d | ", m->loc.line);
	fputs(from ? "..." : "", f);
	put_line(f, s + from, shown);
	fprintf(f, "%s\n      | %s", from + shown < len ? "..." : "", from ? "   " : "");
	put_blank(f, s + from, at - from);
	putc('^', f);
	for (int i = 1; i < caret && i < SHOWN - BEFORE; i++)
		putc('~', f);
	fprintf(f, "%s%s\n", m->hint ? " " : "", m->hint ? m->hint : "");
}

static void put_message(FILE *f, const struct message *m)
{
	const struct loc *l = &m->loc;
	const char *what = m->sev == SEV_WARNING ? "warning" : m->refusal ? "unsupported" : "error";

	fputs(l->src ? l->src->name : "memplan", f);
	if (l->src && l->line > 0 && !l->src->bare)
		fprintf(f, ":%d:%d", l->line, l->col);
	fprintf(f, ": %s: ", what);
	put_line(f, m->text, strlen(m->text) < LONGEST ? strlen(m->text) : LONGEST);
	putc('\n', f);
	put_excerpt(f, m);
}

void diag_print(const struct diag *d, FILE *f)
{
	const struct message **m = NEWN(d->a, const struct message *, d->v.n + 1);

	for (size_t i = 0; i < d->v.n; i++)
		m[i] = &d->v.v[i];
	qsort(m, d->v.n, sizeof *m, by_place);
	for (size_t i = 0; i < d->v.n; i++)
		put_message(f, m[i]);
	if (d->too_many)
		fputs("memplan: too many errors\n", f);
}
