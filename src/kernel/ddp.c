/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * DDP: gradients are copied into flat buckets that are summed over the ranks.
 * The buckets stay for the whole run.  Source: torch 2.14.1
 * nn/parallel/distributed.py, csrc/distributed/c10d/reducer.cpp. */
#include "kernel/data_parallel.h"
#include "kernel/step.h"
#include "kernel/trained.h"

enum { MIB = 1 << 20, DEFAULT_CAP_MB = 25, ROUND = 512 };

bool ddp_applies(const struct spec *s)
{
	return s->par.zero == 0 && s->par.replicate > 1;
}

/* Buckets being filled: one closes when it has reached its limit; each is rounded up by the allocator. */
struct filling { uint64_t fill, limit, cap, padding; };

static void fill(struct filling *f, uint64_t bytes)
{
	f->fill = add_u64(f->fill, bytes);
	if (f->fill < f->limit)
		return;
	f->padding = add_u64(f->padding, round_up_u64(f->fill, ROUND) - f->fill);
	f->fill = 0;
	f->limit = f->cap;
}

/* ---- load: one flat buffer for all parameters at first; from the second iteration on, buckets in the order in
 * which gradients came, a small one first.  Their sizes are the same but for the rounding, so only the latter are
 * in the graph. */

static size_ref gradient_bytes(struct build *b, const struct pslot *p)
{
	return size_mulc(b->a, tensor_numel(b->t, p->local), dtypes[T(b->t, p->local)->dtype].bytes);
}

static void fill_backwards(struct build *b, struct filling *f, size_t first, size_t n)
{
	for (size_t i = first + n; i-- > first;)
		if (b->t->params.v[i].trainable)
			fill(f, gradient_bytes(b, &b->t->params.v[i])->value);
}

static uint64_t bucket_padding(struct build *b)
{
	const double mb = b->spec->par.bucket_mb;
	uint64_t cap = (uint64_t)((mb > 0 ? mb : DEFAULT_CAP_MB) * MIB);
	struct filling f = { .limit = mb > 0 ? cap : MIB, .cap = cap };
	fill_backwards(b, &f, b->outer[1].first, b->outer[1].n);
	for (uint64_t i = b->m->layers; i-- > 0;) {
		const struct layer *l = &b->layers[layer_instance(b, i)];
		fill_backwards(b, &f, l->first_param, l->nparam);
	}
	fill_backwards(b, &f, b->outer[0].first, b->outer[0].n);
	return f.padding + round_up_u64(f.fill, ROUND) - f.fill;
}

void ddp_load(struct build *b)
{
	enum dtype dt = trained_dtype(b->spec);
	size_ref sum = size_const(b->a, 0);
	for (size_t i = 0; i < b->t->params.n; i++) {
		const struct pslot *p = &b->t->params.v[i];
		if (p->trainable)
			sum = size_add(b->a, sum, size_mulc(b->a, gradient_bytes(b, p), p->copies));
	}
	sum = size_add(b->a, sum, size_const(b->a, bucket_padding(b)));
	int32_t s = graph_storage(b->g, "gradient buckets", CLASS_COMM, PLACE_GPU, dt, sum);
	b->g->storages.v[s].rule = b->dp->source;
	size_ref n = size_ceil_div(b->a, sum, size_const(b->a, dtypes[dt].bytes));
	b->buckets = graph_tensor(b->g, s, dt, 1, &n);
	graph_op(b->g, "initialize_buckets", NULL, 0, &b->buckets, 1);
	*VEC_PUSH(b->a, &b->to_end) = b->buckets;
}

/* mark_variable_ready_dense: the gradient is copied into its bucket; with bucket views it becomes a view of it. */
void ddp_grad_ready(void *build, struct pslot *p)
{
	struct build *b = build;
	tensor_id grad = p->grad;
	bool is_bucket = T(b->t, grad)->storage == T(b->t, b->buckets)->storage;
	if (!b->reduces || is_bucket)
		return;
	tape_op1(b->t, "copy_", grad, NO_TENSOR, b->buckets);
	if (!b->spec->par.bucket_view)
		return;
	const struct tensor v = *T(b->t, grad);
	p->grad = graph_tensor(b->g, T(b->t, b->buckets)->storage, (enum dtype)v.dtype, v.ndim, v.dim);
	T(b->t, p->grad)->is_view = true;
}
