/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Arenas: a list of chunks that only grows.  Everything in an arena lives as
 * long as the arena; a reset keeps the chunks for the next round.  Out of
 * memory ends the program: no caller could do better. */
#include "base/base.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_MIN = 64 * 1024, CHUNK_MAX = 16 * 1024 * 1024 };

struct chunk {
	struct chunk *next;
	size_t size, used;             /* of mem */
	alignas(max_align_t) unsigned char mem[];
};

struct arena { struct chunk *first, *last, *now; };

static _Noreturn void out_of_memory(void)
{
	fputs("memplan: out of memory\n", stderr);
	exit(EXIT_ENVIRONMENT);
}

struct arena *arena_new(void)
{
	struct arena *a = calloc(1, sizeof *a);

	if (!a)
		out_of_memory();
	return a;
}

void arena_free(struct arena *a)
{
	struct chunk *next;

	if (!a)
		return;
	for (struct chunk *c = a->first; c; c = next) {
		next = c->next;
		free(c);
	}
	free(a);
}

void arena_reset(struct arena *a)
{
	for (struct chunk *c = a->first; c; c = c->next)
		c->used = 0;
	a->now = a->first;
}

static struct chunk *chunk_add(struct arena *a, size_t n)
{
	size_t size = a->last ? a->last->size * 2 : CHUNK_MIN;
	struct chunk *c;

	if (size > CHUNK_MAX)
		size = CHUNK_MAX;
	if (size < n)
		size = n;
	if (size > SIZE_MAX - sizeof *c || !(c = malloc(sizeof *c + size)))
		out_of_memory();
	*c = (struct chunk){ .size = size };
	if (a->last)
		a->last->next = c;
	else
		a->first = c;
	return a->last = c;
}

void *arena_alloc(struct arena *a, size_t n)
{
	const size_t align = alignof(max_align_t);
	struct chunk *c = a->now;
	void *p;

	if (n > SIZE_MAX - align)
		out_of_memory();
	n = n ? (n + align - 1) / align * align : align;
	while (c && c->size - c->used < n)
		c = c->next;
	if (!c)
		c = chunk_add(a, n);
	a->now = c;
	p = c->mem + c->used;
	c->used += n;
	return memset(p, 0, n);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *p = arena_alloc(a, n + 1);

	if (n > 0)
		memcpy(p, s, n);
	return p;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
	va_list again;
	int n;
	char *p;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	p = arena_alloc(a, n < 0 ? 1 : (size_t)n + 1);
	if (n > 0)
		vsnprintf(p, (size_t)n + 1, fmt, ap);
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	p = arena_vprintf(a, fmt, ap);
	va_end(ap);
	return p;
}

void vec_grow(struct arena *a, void **v, size_t *cap, size_t n, size_t item)
{
	size_t bigger = *cap ? *cap * 2 : 8;
	void *p;

	if (bigger > SIZE_MAX / 2 / item)
		out_of_memory();
	p = arena_alloc(a, bigger * item);
	if (n > 0)
		memcpy(p, *v, n * item);
	*v = p;
	*cap = bigger;
}
