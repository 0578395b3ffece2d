/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The peak taken apart: its closed form with the values of the dimensions,
 * and for one tensor the rule, the numbers and the ops that keep it alive. */
#include "report/report.h"

#include <inttypes.h>
#include <string.h>

enum { WIDTH = 100, MAX_DIMENSIONS = 64, MAX_READERS = 12 };

void explain_head(FILE *f, const struct result *r, const struct style *st)
{
	fprintf(f, "%s allocated at the peak: ", words_paint(st, PAINT_BOLD, fmt_bytes(st->a, r->allocated, st->unit)));
	words_wrap(f, words_peak(r, st->a), 4, WIDTH, st);
	fputc('\n', f);
}

static void put_dimensions(FILE *f, size_ref x, const struct style *st)
{
	size_ref dim[MAX_DIMENSIONS];
	size_t n = size_dims(x, dim, MAX_DIMENSIONS);
	for (size_t i = 1; i < n; i++)
		for (size_t k = i; k > 0 && strcmp(dim[k - 1]->dim, dim[k]->dim) > 0; k--) {
			size_ref t = dim[k];
			dim[k] = dim[k - 1];
			dim[k - 1] = t;
		}
	for (size_t i = 0; i < n; i++)
		fprintf(f, "  %-8s = %-14s %s\n", dim[i]->dim, fmt_count(st->a, dim[i]->value), dim[i]->doc ? dim[i]->doc : "");
}

static void put_formula(FILE *f, const char *left, size_ref x, const struct style *st)
{
	fprintf(f, "%s = ", left);
	words_wrap(f, words_formula(st, x), utf8_width(left) + 3, WIDTH, st);
}

static void put_value(FILE *f, const char *left, size_ref x, const struct style *st)
{
	fprintf(f, "%s = %s bytes (%s)\n", left, fmt_count(st->a, x->value), fmt_bytes(st->a, x->value, st->unit));
}

/* The same expression with every dimension replaced by its value. */
static size_ref with_numbers(struct arena *a, size_ref x)
{
	struct size *y = NEW(a, struct size);
	*y = *x;
	if (x->kind == SIZE_DIM)
		y->dim = arena_printf(a, "%" PRIu64, x->value);
	if (x->a)
		y->a = with_numbers(a, x->a);
	if (x->b)
		y->b = with_numbers(a, x->b);
	return y;
}

void explain_formula(FILE *f, const struct result *r, const struct style *st)
{
	explain_head(f, r, st);
	put_formula(f, "peak", r->formula, st);
	put_dimensions(f, r->formula, st);
	put_value(f, "peak", r->formula, st);
}

/* ---- one tensor */

static bool op_reads(const struct graph *g, const struct op *o, int32_t storage)
{
	for (uint32_t i = 0; i < o->nreads; i++) {
		tensor_id t = g->pool.v[o->reads + i];
		if (t >= 0 && g->tensors.v[t].storage == storage)
			return true;
	}
	return false;
}

static const char *op_place(const struct graph *g, int32_t op, struct arena *a)
{
	const struct op *o = &g->ops.v[op];
	const struct block *b = &g->blocks.v[o->block];
	return arena_printf(a, "%s (%s, %s)", o->name, window_names[b->window], b->name);
}

static void put_readers(FILE *f, const struct graph *g, int32_t storage, const struct style *st)
{
	const struct storage *s = &g->storages.v[storage];
	size_t shown = 0, more = 0;
	for (int32_t i = s->birth + 1; s->birth >= 0 && i <= s->death; i++) {
		if (!op_reads(g, &g->ops.v[i], storage))
			continue;
		if (shown < MAX_READERS) {
			fprintf(f, "%s%s\n", shown ? "             " : "  read by    ", op_place(g, i, st->a));
			shown++;
		} else {
			more++;
		}
	}
	if (!shown)
		fputs("  read by    nothing\n", f);
	if (more)
		fprintf(f, "             and %zu more\n", more);
}

static void put_storage(FILE *f, const struct graph *g, int32_t storage, const struct style *st)
{
	const struct storage *s = &g->storages.v[storage];
	if (s->birth >= 0)
		fprintf(f, "  created by %s\n", op_place(g, s->birth, st->a));
	put_readers(f, g, storage, st);
	if (s->death >= 0)
		fprintf(f, "  freed by   %s\n", op_place(g, s->death, st->a));
}

static int32_t storage_named(const struct graph *g, const char *name)
{
	for (size_t i = 0; g && i < g->storages.n; i++)
		if (!strcmp(g->storages.v[i].name, name))
			return (int32_t)i;
	return -1;
}

/* The storage that a row of by_tensor is named after: its name and class, alive at the peak, made by the same op. */
static int32_t storage_of(const struct result *r, const struct tensor_bytes *t, struct arena *a)
{
	const struct graph *g = r->graph;
	for (size_t i = 0; i < r->walked.nalive; i++) {
		int32_t id = r->walked.alive[i].storage;
		const struct storage *s = &g->storages.v[id];
		const struct op *o = s->birth >= 0 ? &g->ops.v[s->birth] : NULL;
		if (strcmp(s->name, t->name) || s->cls != t->cls || !o || !t->born)
			continue;
		if (!strcmp(t->born, arena_printf(a, "%s in %s", o->name, g->blocks.v[o->block].name)))
			return id;
	}
	return -1;
}

static const char *nearest_tensor(const struct result *r, const char *name, struct arena *a)
{
	size_t n = 0, ng = r->graph ? r->graph->storages.n : 0;
	const char **names = NEWN(a, const char *, r->ntensor + ng + 1);
	for (size_t i = 0; i < r->ntensor; i++)
		names[n++] = r->by_tensor[i].name;
	for (size_t i = 0; i < ng; i++)
		names[n++] = r->graph->storages.v[i].name;
	const char *near = nearest(name, names, n);
	for (size_t i = 0; !near && i < n; i++)
		if (strstr(names[i], name))
			near = names[i];
	return near;
}

static void put_rule(FILE *f, const char *rule, const char *by, size_ref size, const struct style *st)
{
	put_formula(f, "  bytes", size, st);
	put_formula(f, "       ", with_numbers(st->a, size), st);
	put_value(f, "       ", size, st);
	put_dimensions(f, size, st);
	fputs("  rule       ", f);
	words_wrap(f, rule ? rule : "-", 13, WIDTH, st);
	if (by)
		fprintf(f, "  changed by %s\n", by);
}

static void why_alive(FILE *f, const struct result *r, const struct tensor_bytes *t, const struct style *st)
{
	int32_t id = storage_of(r, t, st->a);
	fprintf(f, "%s: %s, %" PRIu64 " alive at the peak, %s (%.1f %% of it)\n", words_paint(st, PAINT_BOLD, t->name),
		class_names[t->cls], t->count, fmt_bytes(st->a, t->bytes, st->unit),
		r->allocated ? 100.0 * (double)t->bytes / (double)r->allocated : 0.0);
	put_rule(f, t->rule, t->by, t->formula, st);
	if (id >= 0)
		put_storage(f, r->graph, id, st);
}

bool explain_why(FILE *f, const struct result *r, const char *name, const char **near, const struct style *st)
{
	size_t n = 0;
	*near = NULL;
	for (size_t i = 0; i < r->ntensor; i++)
		if (!strcmp(r->by_tensor[i].name, name)) {
			if (n++)
				fputc('\n', f);
			why_alive(f, r, &r->by_tensor[i], st);
		}
	int32_t id = n ? -1 : storage_named(r->graph, name);
	if (id >= 0) {
		const struct storage *s = &r->graph->storages.v[id];
		fprintf(f, "%s: %s, not alive at the peak\n", words_paint(st, PAINT_BOLD, name), class_names[s->cls]);
		put_rule(f, s->rule, s->by, s->size, st);
		put_storage(f, r->graph, id, st);
	} else if (!n) {
		*near = nearest_tensor(r, name, st->a);
	}
	return n || id >= 0;
}
