/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Byte units, both ways.  People see powers of 1024 with the unit always
 * written; powers of 1000 on request. */
#include "base/base.h"

#include <string.h>

struct scale { const char *name; uint64_t bytes; };

static const struct scale binary[] = {
	{ "GiB", UINT64_C(1) << 30 }, { "MiB", UINT64_C(1) << 20 }, { "KiB", UINT64_C(1) << 10 },
};
static const struct scale decimal[] = {
	{ "GB", UINT64_C(1000000000) }, { "MB", 1000000 }, { "kB", 1000 },
};
static const struct scale readable[] = {
	{ "", 1 }, { "B", 1 },
	{ "KiB", UINT64_C(1) << 10 }, { "MiB", UINT64_C(1) << 20 }, { "GiB", UINT64_C(1) << 30 },
	{ "TiB", UINT64_C(1) << 40 }, { "PiB", UINT64_C(1) << 50 },
	{ "kB", 1000 }, { "KB", 1000 }, { "MB", 1000000 }, { "GB", UINT64_C(1000000000) },
	{ "TB", UINT64_C(1000000000000) }, { "PB", UINT64_C(1000000000000000) },
};

char *fmt_count(struct arena *a, uint64_t n)
{
	char digits[24], *out, *p;
	int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);

	p = out = arena_alloc(a, (size_t)len + (size_t)len / 3 + 1);
	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			*p++ = ',';
		*p++ = digits[i];
	}
	return out;
}

char *fmt_bytes(struct arena *a, uint64_t bytes, enum unit u)
{
	const struct scale *s = u == UNIT_GB ? decimal : binary;

	if (bytes == BYTES_OVERFLOW)
		return arena_strdup(a, "overflow");
	if (u != UNIT_BYTE)
		for (size_t i = u == UNIT_MIB; i < COUNT(binary); i++)
			if (bytes >= s[i].bytes)
				return arena_printf(a, "%.2f %s", (double)bytes / (double)s[i].bytes, s[i].name);
	return arena_printf(a, "%s B", fmt_count(a, bytes));
}

/* Digits at *s, at most max of them counted; *n is their number. */
static uint64_t digits_read(const char **s, unsigned max, unsigned *n)
{
	uint64_t v = 0;

	for (*n = 0; **s >= '0' && **s <= '9'; ++*s)
		if (*n < max) {
			v = add_u64(mul_u64(v, 10), (uint64_t)(**s - '0'));
			++*n;
		}
	return v;
}

bool parse_bytes(const char *s, uint64_t *out)
{
	unsigned n, nfrac = 0;
	uint64_t whole, frac = 0, ten = 1, unit = 0;
	const char *dot;

	whole = digits_read(&s, 40, &n);
	if (n == 0)
		return false;
	if (*s == '.') {
		dot = ++s;
		frac = digits_read(&s, 9, &nfrac);
		if (s == dot)
			return false;
	}
	while (*s == ' ')
		s++;
	for (size_t i = 0; i < COUNT(readable); i++)
		if (!strcmp(s, readable[i].name))
			unit = readable[i].bytes;
	for (; nfrac > 0; nfrac--)
		ten *= 10;
	if (unit == 0 || (unit == 1 && frac > 0))
		return false;
	whole = add_u64(mul_u64(whole, unit), unit / ten * frac + unit % ten * frac / ten);
	if (whole == BYTES_OVERFLOW)
		return false;
	*out = whole;
	return true;
}
