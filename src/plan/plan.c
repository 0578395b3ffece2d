/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The pipeline in one function: refuse what has no honest answer, let the
 * optimizations write the recipe, trace the program, fold and walk it, and
 * say what the peak is made of. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/step.h"
#include "kernel/trained.h"
#include "opt/opt.h"
#include "plan/advice.h"
#include "plan/refuse.h"

/* The plan's choice of an optimization; NULL: not chosen. */
static const struct choice *chosen(const struct spec *s, const struct opt *o)
{
	for (size_t i = 0; i < s->memory.n; i++)
		if (s->memory.v[i].opt == o)
			return &s->memory.v[i];
	return NULL;
}

static struct recipe recipe_of(const struct spec *s)
{
	struct recipe r = { .checkpoint = CKPT_NONE };
	for (size_t i = 0; i < nopt; i++) {
		const struct choice *c = chosen(s, opts[i]);
		if (c && c->opt->apply)
			c->opt->apply(&r, c->knobs);
	}
	return r;
}

static void edit_graph(const struct spec *s, struct graph *g)
{
	bool edited = false;
	for (size_t i = 0; i < nopt; i++) {
		const struct choice *c = chosen(s, opts[i]);
		if (c && c->opt->edit) {
			c->opt->edit(g, c->knobs);
			edited = true;
		}
	}
	if (edited)
		trace_finish(g);
}

/* ---- what the peak is made of */

static const char *op_place(const struct graph *g, struct arena *a, int32_t op)
{
	if (op < 0)
		return NULL;
	const struct op *o = &g->ops.v[op];
	return arena_printf(a, "%s in %s", o->name, g->blocks.v[o->block].name);
}

static size_ref storage_formula(struct arena *a, const struct storage *s)
{
	return s->size->value == s->bytes ? s->size : size_round_up(a, s->size, 512);
}

/* What the framework names keeps its name; other tensors are told apart by the op that made them. */
static bool has_own_name(enum tensor_class c)
{
	return c == CLASS_PARAMETER || c == CLASS_MASTER || c == CLASS_BUFFER || c == CLASS_GRADIENT ||
		c == CLASS_OPTIMIZER || c == CLASS_INPUT || c == CLASS_UNSHARDED || c == CLASS_UNSHARDED_GRAD;
}

static void name_alive(struct result *r, struct arena *a)
{
	for (size_t i = 0; i < r->walked.nalive; i++) {
		struct storage *s = &r->graph->storages.v[r->walked.alive[i].storage];
		const struct op *o = &r->graph->ops.v[s->birth];
		bool grad = r->graph->blocks.v[o->block].window == WIN_BACKWARD && s->cls != CLASS_RECOMPUTE;
		if (!has_own_name((enum tensor_class)s->cls))
			s->name = arena_printf(a, "%s%s: %s", s->name, grad ? ", backward" : "", o->name);
	}
}

/* Alive storages of one name, class, creating op and size. */
struct row { const struct storage *s; const char *op; uint64_t count; };

static size_t gather_rows(const struct result *r, struct row *rows)
{
	const struct graph *g = r->graph;
	size_t n = 0;
	for (size_t i = 0; i < r->walked.nalive; i++) {
		const struct storage *s = &g->storages.v[r->walked.alive[i].storage];
		const char *op = g->ops.v[s->birth].name;
		size_t k = 0;
		while (k < n && (rows[k].s->bytes != s->bytes || rows[k].s->cls != s->cls || strcmp(rows[k].op, op) ||
				 strcmp(rows[k].s->name, s->name)))
			k++;
		if (k == n)
			rows[n++] = (struct row){ .s = s, .op = op };
		rows[k].count += r->walked.alive[i].copies;
	}
	return n;
}

/* Bytes of all; like tensors of all layers are a multiple of L. */
static size_ref row_formula(struct arena *a, const struct row *row, size_ref L)
{
	size_ref one = storage_formula(a, row->s);
	if (row->count > 1 && L->value > 1 && row->count % L->value == 0)
		return size_mulc(a, size_mul(a, L, one), row->count / L->value);
	return size_mulc(a, one, row->count);
}

static struct tensor_bytes tensor_of(const struct result *r, struct arena *a, const struct row *row)
{
	const struct storage *s = row->s;
	return (struct tensor_bytes){ .name = s->name, .cls = (enum tensor_class)s->cls, .by = s->by, .rule = s->rule,
		.born = op_place(r->graph, a, s->birth), .freed = op_place(r->graph, a, s->death),
		.formula = size_const(a, 0) };
}

static int by_bytes(const void *x, const void *y)
{
	const struct tensor_bytes *a = x, *b = y;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return strcmp(a->name, b->name);
}

static int class_by_bytes(const void *x, const void *y)
{
	const struct class_bytes *a = x, *b = y;
	return a->bytes != b->bytes ? (a->bytes < b->bytes ? 1 : -1) : (int)a->cls - (int)b->cls;
}

/* One line for each name, class and creating op, whatever the sizes. */
static void compose_tensors(struct result *r, struct arena *a)
{
	size_ref L = size_dim(a, "L", r->spec->model.layers, "decoder layers");
	struct row *rows = NEWN(a, struct row, r->walked.nalive + 1), **key = NEWN(a, struct row *, r->walked.nalive + 1);
	name_alive(r, a);
	size_t n = gather_rows(r, rows);
	r->by_tensor = NEWN(a, struct tensor_bytes, n + 1);
	for (size_t i = 0; i < n; i++) {
		size_t k = 0;
		while (k < r->ntensor && (key[k]->s->cls != rows[i].s->cls || strcmp(key[k]->op, rows[i].op) ||
					  strcmp(key[k]->s->name, rows[i].s->name)))
			k++;
		if (k == r->ntensor) {
			key[r->ntensor] = &rows[i];
			r->by_tensor[r->ntensor++] = tensor_of(r, a, &rows[i]);
		}
		r->by_tensor[k].count += rows[i].count;
		r->by_tensor[k].bytes = add_u64(r->by_tensor[k].bytes, mul_u64(rows[i].s->bytes, rows[i].count));
		r->by_tensor[k].formula = size_add(a, r->by_tensor[k].formula, row_formula(a, &rows[i], L));
	}
	qsort(r->by_tensor, r->ntensor, sizeof *r->by_tensor, by_bytes);
	r->formula = size_const(a, 0);
	for (size_t i = 0; i < r->ntensor; i++)
		r->formula = size_add(a, r->formula, r->by_tensor[i].formula);
}

static void compose_classes(struct result *r, struct arena *a)
{
	uint64_t sum[CLASS_N] = { 0 };
	for (size_t i = 0; i < r->ntensor; i++)
		sum[r->by_tensor[i].cls] = add_u64(sum[r->by_tensor[i].cls], r->by_tensor[i].bytes);
	r->by_class = NEWN(a, struct class_bytes, CLASS_N);
	for (int c = 0; c < CLASS_N; c++)
		if (sum[c])
			r->by_class[r->nclass++] = (struct class_bytes){ (enum tensor_class)c, sum[c] };
	qsort(r->by_class, r->nclass, sizeof *r->by_class, class_by_bytes);
}

/* ---- from allocated to process */

/* Process groups that run collectives: one for the shards, one for the replicas. */
static uint64_t communicators(const struct spec *s)
{
	return (s->par.shard > 1 ? 1u : 0u) + (s->par.replicate > 1 ? 1u : 0u);
}

/* cuBLAS keeps one workspace per handle and stream: the forward's thread has one, the engine's another
 * (torch 2.14.1 CUDABlas.cpp, CublasHandlePool.cpp). */
enum { CUBLAS_HANDLES = 2 };

static uint64_t use_constant(struct result *r, enum constant_id id, uint64_t times)
{
	const struct constant *c = &r->spec->hw.gpu.c[id];
	if (!c->set || times == 0)
		return 0;
	r->constants[r->nconstant++] = (struct used_constant){ c->name, c->value, c->prov, c->source };
	return mul_u64(c->value, times);
}

static void compose_levels(struct result *r, struct arena *a)
{
	const struct spec *s = r->spec;
	r->constants = NEWN(a, struct used_constant, CONST_N);
	r->capacity = use_constant(r, CONST_CAPACITY, 1);
	if (s->hw.capacity)
		r->capacity = s->hw.capacity;
	r->limit = r->capacity - (uint64_t)((double)r->capacity * s->hw.headroom / 100.0);
	r->process = r->allocated;
	r->process = add_u64(r->process, use_constant(r, CONST_CUBLAS_WORKSPACE, CUBLAS_HANDLES));
	r->process = add_u64(r->process, use_constant(r, CONST_CONTEXT, 1));
	r->process = add_u64(r->process, use_constant(r, CONST_LIBRARY, 1));
	r->process = add_u64(r->process, use_constant(r, CONST_NCCL, communicators(s)));
	r->fits = r->process <= r->limit;
	r->host_pinned = r->walked.peak[PLACE_PINNED];
	r->host_pageable = r->walked.peak[PLACE_HOST];
}

static void compose_peak(struct result *r)
{
	const struct walked *w = &r->walked;
	r->allocated = w->peak[PLACE_GPU];
	r->allocated_first = w->peak_first;
	r->allocated_steady = w->peak_steady;
	r->peak_window = (enum window)w->peak_window;
	r->peak_op = r->graph->ops.v[w->peak_op].name;
	r->peak_step = w->peak_step;
	r->peak_micro = w->peak_micro;
	r->peak_layer = w->peak_layer;
	r->windows = w->windows;
	r->nwindow = w->nwindow;
	r->saved_per_layer = w->saved_per_layer;
	r->nlayer = w->nlayer;
}

/* Data-parallel ranks are alike; of uneven shards the first rank holds the largest. */
static void compose_ranks(struct result *r, struct arena *a)
{
	r->ranks = NEW(a, struct rank_peak);
	r->ranks[r->nrank++] = (struct rank_peak){ 0, 0, r->allocated };
}

const struct result *plan(const struct spec *spec, struct arena *a, struct diag *d)
{
	struct result *r = NEW(a, struct result);
	r->spec = spec;
	plan_refuse(spec, d);
	if (diag_status(d))
		return NULL;
	struct recipe recipe = recipe_of(spec);
	r->graph = trace_program(a, spec, &recipe);
	edit_graph(spec, r->graph);
	if (r->graph->overflow) {
		diag_error(d, spec->train.loc, "the plan's sizes do not fit 64 bits");
		return NULL;
	}
	r->folded = fold(r->graph, a);
	r->walked = walk(r->graph, a, NULL, NULL);
	struct parameter_count count = trained_count(a, spec);
	r->parameters = count.all;
	r->trainable = count.trained;
	compose_peak(r);
	compose_tensors(r, a);
	compose_classes(r, a);
	compose_levels(r, a);
	compose_ranks(r, a);
	plan_not_modelled(r, a);
	r->advice = advise(r, a);
	return r;
}
