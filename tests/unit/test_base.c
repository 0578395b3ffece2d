/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The base: arenas, strings, units, checked arithmetic, diagnostics. */
#include "base/base.h"

#undef NDEBUG
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void test_arena(void)
{
	struct arena *a = arena_new();
	char *big, *small;
	VEC(int) v = { 0 };

	for (int i = 0; i < 1000; i++)
		*VEC_PUSH(a, &v) = i;
	assert(v.n == 1000 && v.v[999] == 999);
	small = arena_alloc(a, 3);
	assert((uintptr_t)small % sizeof(long double) == 0 && small[0] == 0);
	big = arena_alloc(a, 50 * 1000 * 1000);
	memset(big, 1, 50 * 1000 * 1000);
	arena_reset(a);
	small = arena_alloc(a, 100000);
	for (int i = 0; i < 100000; i++)
		assert(small[i] == 0);
	assert(!strcmp(arena_printf(a, "%s-%d", "x", 7), "x-7"));
	assert(!strcmp(arena_strndup(a, "abcdef", 3), "abc"));
	arena_free(a);
}

static void test_strings(void)
{
	static const char *const names[] = { "micro_batch", "seq_len", "h100-80gb", "h100-96gb", "h200" };
	struct arena *a = arena_new();
	struct sb b = { .a = a };

	assert(!strcmp(sb_str(&b), ""));
	for (int i = 0; i < 100; i++)
		sb_printf(&b, "%d,", i);
	sb_puts(&b, "end");
	assert(strlen(sb_str(&b)) == 10 * 2 + 90 * 3 + 3);
	assert(!strcmp(nearest("micro_bacth", names, COUNT(names)), "micro_batch"));
	assert(!strcmp(nearest("seqlen", names, COUNT(names)), "seq_len"));
	assert(!strcmp(nearest("h100", names, COUNT(names)), "h100-80gb"));
	assert(!strcmp(nearest("h20", names, COUNT(names)), "h200"));
	assert(!strcmp(nearest("micro", names, COUNT(names)), "micro_batch"));
	assert(!nearest("optimizer", names, COUNT(names)));
	assert(!nearest("", names, COUNT(names)));
	assert(!nearest("x", names, 0));
	arena_free(a);
}

static void check_bytes(struct arena *a, uint64_t n, enum unit u, const char *wanted)
{
	assert(!strcmp(fmt_bytes(a, n, u), wanted));
}

static void test_units(void)
{
	static const struct { const char *text; uint64_t bytes; } good[] = {
		{ "512", 512 }, { "1B", 1 }, { "80GiB", UINT64_C(80) << 30 }, { "1.5TB", UINT64_C(1500000000000) },
		{ "0.5 KiB", 512 }, { "2TiB", UINT64_C(2) << 40 }, { "16383PiB", UINT64_C(16383) << 50 },
		{ "18446744073709551614", UINT64_MAX - 1 },
	};
	static const char *const bad[] = {
		"", "GiB", "-1", "1.5", "1.", ".5GiB", "1 G", "1GiBx", "16384PiB", "18446744073709551615", "1e3",
		"99999999999999999999999",
	};
	struct arena *a = arena_new();
	uint64_t n;

	for (size_t i = 0; i < COUNT(good); i++)
		assert(parse_bytes(good[i].text, &n) && n == good[i].bytes);
	for (size_t i = 0; i < COUNT(bad); i++)
		assert(!parse_bytes(bad[i], &n));
	check_bytes(a, 0, UNIT_GIB, "0 B");
	check_bytes(a, 1023, UNIT_GIB, "1,023 B");
	check_bytes(a, 1536, UNIT_GIB, "1.50 KiB");
	check_bytes(a, UINT64_C(80) << 30, UNIT_GIB, "80.00 GiB");
	check_bytes(a, UINT64_C(80) << 30, UNIT_GB, "85.90 GB");
	check_bytes(a, UINT64_C(80) << 30, UNIT_MIB, "81920.00 MiB");
	check_bytes(a, UINT64_C(80) << 30, UNIT_BYTE, "85,899,345,920 B");
	check_bytes(a, BYTES_OVERFLOW, UNIT_GIB, "overflow");
	assert(!strcmp(fmt_count(a, 8030261248), "8,030,261,248"));
	assert(!strcmp(fmt_count(a, UINT64_MAX), "18,446,744,073,709,551,615"));
	arena_free(a);
}

static void test_checked(void)
{
	assert(add_u64(1, 2) == 3 && add_u64(UINT64_MAX - 1, 1) == BYTES_OVERFLOW);
	assert(add_u64(UINT64_MAX - 1, 2) == BYTES_OVERFLOW && add_u64(BYTES_OVERFLOW, 0) == BYTES_OVERFLOW);
	assert(mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32) == BYTES_OVERFLOW);
	assert(mul_u64(BYTES_OVERFLOW, 1) == BYTES_OVERFLOW && mul_u64(BYTES_OVERFLOW, 0) == 0);
	assert(ceil_div_u64(7, 2) == 4 && ceil_div_u64(8, 2) == 4 && ceil_div_u64(UINT64_MAX - 1, 1) == UINT64_MAX - 1);
	assert(round_up_u64(513, 512) == 1024 && round_up_u64(0, 512) == 0);
}

static const char *printed(struct diag *d, char *buf, size_t size)
{
	FILE *f = tmpfile();
	size_t n;

	assert(f);
	diag_print(d, f);
	rewind(f);
	n = fread(buf, 1, size - 1, f);
	buf[n] = 0;
	fclose(f);
	return buf;
}

static void test_diag(void)
{
	static const char text[] = "a: 1\n\tb\xc3\xa9: 22\n";
	const struct source src = { .name = "f.yaml", .text = text, .len = sizeof text - 1 };
	struct arena *a = arena_new();
	struct diag *d = diag_new(a);
	char buf[4096];

	assert(diag_status(d) == 0);
	diag_refuse(d, (struct loc){ .src = NULL }, "nothing");
	assert(diag_status(d) == EXIT_NO_ANSWER);
	diag_error(d, (struct loc){ &src, 2, 6, 2 }, "second");
	diag_hint(d, "hint %d", 1);
	diag_warn(d, (struct loc){ &src, 1, 1, 1 }, "first");
	assert(diag_status(d) == EXIT_INPUT && diag_count(d, SEV_ERROR) == 2 && diag_count(d, SEV_WARNING) == 1);
	assert(!strcmp(diag_text(d, SEV_ERROR, 1), "second") && !diag_text(d, SEV_ERROR, 2));
	assert(!strcmp(printed(d, buf, sizeof buf),
		       "memplan: unsupported: nothing\n"
		       "f.yaml:1:1: warning: first\n    1 | a: 1\n      | ^\n"
		       "f.yaml:2:6: error: second\n    2 | \tb\xc3\xa9: 22\n      | \t    ^~ hint 1\n"));
	arena_free(a);
}

static void test_diag_limit(void)
{
	struct arena *a = arena_new();
	struct diag *d = diag_new(a);
	char buf[4096];

	for (int i = 0; i < 30; i++) {
		diag_error(d, (struct loc){ .src = NULL }, "e%d", i);
		diag_hint(d, "h%d", i);
	}
	assert(diag_count(d, SEV_ERROR) == 20);
	assert(strstr(printed(d, buf, sizeof buf), "e19\n      | h19\nmemplan: too many errors\n"));
	assert(!strstr(buf, "h20"));
	arena_free(a);
}

int main(void)
{
	test_arena();
	test_strings();
	test_units();
	test_checked();
	test_diag();
	test_diag_limit();
	return 0;
}
