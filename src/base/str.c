/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Strings: a builder that grows in an arena, and the nearest of a list of
 * names for "did you mean". */
#include "base/base.h"

#include <string.h>

static void sb_room(struct sb *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 64;
	char *s;

	while (cap - b->n <= more)
		cap *= 2;
	if (cap == b->cap)
		return;
	s = arena_alloc(b->a, cap);
	if (b->n > 0)
		memcpy(s, b->s, b->n);
	b->s = s;
	b->cap = cap;
}

void sb_puts(struct sb *b, const char *s)
{
	size_t n = strlen(s);

	sb_room(b, n);
	memcpy(b->s + b->n, s, n + 1);
	b->n += n;
}

void sb_printf(struct sb *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	sb_puts(b, arena_vprintf(b->a, fmt, ap));
	va_end(ap);
}

const char *sb_str(struct sb *b)
{
	return b->s ? b->s : "";
}

enum { NAME_MAX_LEN = 64 };

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours. */
static unsigned distance(const char *s, size_t ns, const char *t, size_t nt)
{
	unsigned row[3][NAME_MAX_LEN + 1], *before = row[0], *last = row[1], *now = row[2], *spare;

	for (unsigned j = 0; j <= nt; j++)
		last[j] = j;
	for (unsigned i = 1; i <= ns; i++) {
		now[0] = i;
		for (unsigned j = 1; j <= nt; j++) {
			now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (s[i - 1] != t[j - 1]));
			if (i > 1 && j > 1 && s[i - 1] == t[j - 2] && s[i - 2] == t[j - 1] && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[nt];
}

/* The shortest name that goes on where s stops; whole: with a new word, as h100 goes on to h100-80gb. */
static const char *completion(const char *s, size_t len, const char *const *names, size_t n, bool whole)
{
	const char *best = NULL;

	for (size_t i = 0; len >= 2 && i < n; i++)
		if (!strncmp(names[i], s, len) && (!whole || strchr("-_.", names[i][len])) &&
		    (!best || strlen(names[i]) < strlen(best)))
			best = names[i];
	return best;
}

const char *nearest(const char *s, const char *const *names, size_t n)
{
	size_t len = strlen(s), other;
	unsigned d, limit = len / 3 > 1 ? (unsigned)(len / 3) : 1;
	const char *best = completion(s, len, names, n, true);

	if (best || len == 0 || len > NAME_MAX_LEN)
		return best;
	for (size_t i = 0; i < n; i++) {
		other = strlen(names[i]);
		if (other > NAME_MAX_LEN || other > len + limit || len > other + limit)
			continue;
		d = distance(s, len, names[i], other);
		if (d <= limit) {
			limit = d ? d - 1 : 0;
			best = names[i];
			if (d <= 1)
				break;
		}
	}
	return best ? best : completion(s, len, names, n, false);
}
