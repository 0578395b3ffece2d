/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The base: arenas, growable arrays, string builder, checked arithmetic,
 * byte units and diagnostics.  Knows nothing of plans. */
#ifndef MEMPLAN_BASE_H
#define MEMPLAN_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit statuses (man memplan(1), EXIT STATUS). */
enum { EXIT_FITS = 0, EXIT_NO = 1, EXIT_INPUT = 2, EXIT_NO_ANSWER = 3, EXIT_ENVIRONMENT = 4, EXIT_BUG = 70 };

#define COUNT(a) (sizeof (a) / sizeof *(a))

/* ---- arena.c: memory lives as long as its arena; out of memory ends the program */
struct arena;
struct arena *arena_new(void);
void arena_free(struct arena *a);
void arena_reset(struct arena *a);            /* forget everything, keep the chunks */
void *arena_alloc(struct arena *a, size_t n); /* zeroed, aligned for any type */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

#define NEW(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define NEWN(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (size_t)(n)))

/* Growable array in an arena: struct { T *v; size_t n, cap; } x;  *VEC_PUSH(arena, &x) = value; */
#define VEC(type) struct { type *v; size_t n, cap; }
#define VEC_PUSH(a, x) \
	((x)->n == (x)->cap ? vec_grow((a), (void **)&(x)->v, &(x)->cap, (x)->n, sizeof *(x)->v) : (void)0, \
	 &(x)->v[(x)->n++])
void vec_grow(struct arena *a, void **v, size_t *cap, size_t n, size_t item);

/* ---- str.c: string builder */
struct sb { struct arena *a; char *s; size_t n, cap; };
void sb_printf(struct sb *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sb_puts(struct sb *b, const char *s);
const char *sb_str(struct sb *b);             /* never NULL */

/* Nearest of names[0..n) to s: the shortest of which s is the first word, else by Damerau-Levenshtein distance
 * <= max(1, len/3), else the shortest that s begins; NULL when none is near. */
const char *nearest(const char *s, const char *const *names, size_t n);

/* ---- units.c: people see GiB (2^30) with the unit */
enum unit { UNIT_GIB, UNIT_GB, UNIT_MIB, UNIT_BYTE };
char *fmt_bytes(struct arena *a, uint64_t bytes, enum unit u);   /* "12.34 GiB"; small values fall to MiB, KiB, B */
char *fmt_count(struct arena *a, uint64_t n);                    /* "8,030,261,248" */
bool parse_bytes(const char *s, uint64_t *out);                  /* "80GiB", "512", "1.5TB"; false when malformed or too large */

/* ---- checked arithmetic: BYTES_OVERFLOW is sticky, so a sum or product that ever overflowed stays visible */
#define BYTES_OVERFLOW UINT64_MAX
static inline uint64_t add_u64(uint64_t a, uint64_t b)
{
	uint64_t r;
	return a == BYTES_OVERFLOW || b == BYTES_OVERFLOW || __builtin_add_overflow(a, b, &r) ? BYTES_OVERFLOW : r;
}
static inline uint64_t mul_u64(uint64_t a, uint64_t b)
{
	uint64_t r;
	if (a == 0 || b == 0)
		return 0;
	return a == BYTES_OVERFLOW || b == BYTES_OVERFLOW || __builtin_mul_overflow(a, b, &r) ? BYTES_OVERFLOW : r;
}
static inline uint64_t ceil_div_u64(uint64_t a, uint64_t b)
{
	return a == BYTES_OVERFLOW ? a : a / b + (a % b != 0);
}
static inline uint64_t round_up_u64(uint64_t a, uint64_t m)
{
	return mul_u64(ceil_div_u64(a, m), m);
}

/* ---- diag.c: user errors are collected (up to 20), sorted by place, shown with source line, caret and suggestion */
struct source {
	const char *name, *text; size_t len;   /* text NULL: lines cannot be shown */
	bool bare;                             /* one line whose number says nothing: "--set #2" */
};
struct loc { const struct source *src; int line, col, len; };   /* 1-based; line 0: no place in the file */
enum severity { SEV_WARNING, SEV_ERROR };
struct diag;
struct diag *diag_new(struct arena *a);
void diag_error(struct diag *d, struct loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_warn(struct diag *d, struct loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_hint(struct diag *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));  /* belongs to the last message */
/* The plan is well formed but memplan has no honest answer for it: exit status 3 instead of 2. */
void diag_refuse(struct diag *d, struct loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Something outside failed: exit status 4 unless the input is wrong too. */
void diag_environment(struct diag *d, struct loc loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int diag_status(const struct diag *d);        /* 0, EXIT_INPUT, EXIT_ENVIRONMENT or EXIT_NO_ANSWER, the first of these */
struct arena *diag_arena(struct diag *d);     /* for parts of messages */
void diag_print(const struct diag *d, FILE *f);
size_t diag_count(const struct diag *d, enum severity s);
const char *diag_text(const struct diag *d, enum severity s, size_t i);   /* the message without its place */

#endif
