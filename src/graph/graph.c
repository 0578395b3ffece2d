/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Building the graph: storages, tensors, ops, blocks and the program tree.
 * Ids everywhere, never pointers; op order is program order. */
#include "graph/graph.h"

#include <assert.h>
#include <string.h>

const char *const class_names[CLASS_N] = {
	[CLASS_PARAMETER] = "parameter", [CLASS_MASTER] = "master", [CLASS_BUFFER] = "buffer",
	[CLASS_GRADIENT] = "gradient", [CLASS_OPTIMIZER] = "optimizer_state", [CLASS_INPUT] = "input",
	[CLASS_SAVED] = "saved_activation", [CLASS_LOGITS] = "logits_loss", [CLASS_TEMPORARY] = "temporary",
	[CLASS_RECOMPUTE] = "recompute", [CLASS_WEIGHT_CAST] = "weight_cast",
	[CLASS_UNSHARDED] = "unsharded_parameter", [CLASS_UNSHARDED_GRAD] = "unsharded_gradient",
	[CLASS_COMM] = "communication", [CLASS_WORKSPACE] = "workspace",
};

const char *const window_names[WIN_N] = {
	[WIN_LOAD] = "load", [WIN_FORWARD] = "forward", [WIN_BACKWARD] = "backward",
	[WIN_CLIP] = "clip", [WIN_OPTIMIZER] = "optimizer", [WIN_ZERO_GRAD] = "zero_grad",
};

/* CUDA: CUDACachingAllocator round_size, 512 B; pinned: CachingHostAllocator, next power of two (torch 2.14.1). */
enum { GPU_ROUND = 512 };

static uint64_t next_pow2(uint64_t n)
{
	uint64_t p = 1;
	while (p < n && p < (UINT64_C(1) << 63))
		p <<= 1;
	return n ? p : 0;
}

static uint64_t place_round(enum place place, uint64_t n)
{
	switch (place) {
	case PLACE_GPU: return round_up_u64(n, GPU_ROUND);
	case PLACE_PINNED: return n == BYTES_OVERFLOW ? n : next_pow2(n);
	case PLACE_HOST:
	case PLACE_N: break;
	}
	return n;
}

struct graph *graph_new(struct arena *a)
{
	struct graph *g = NEW(a, struct graph);
	g->a = a;
	return g;
}

int32_t graph_storage(struct graph *g, const char *name, enum tensor_class cls, enum place place,
		      enum dtype dt, size_ref size)
{
	struct storage *s = VEC_PUSH(g->a, &g->storages);
	*s = (struct storage){ .name = name, .size = size, .bytes = place_round(place, size->value), .ncopies = 1,
		.cls = (uint8_t)cls, .place = (uint8_t)place, .dtype = (uint8_t)dt,
		.birth = -1, .death = -1, .layer = -1 };
	if (s->bytes == BYTES_OVERFLOW)
		g->overflow = true;
	return (int32_t)g->storages.n - 1;
}

tensor_id graph_tensor(struct graph *g, int32_t storage, enum dtype dt, unsigned ndim, const size_ref *dims)
{
	struct tensor *t = VEC_PUSH(g->a, &g->tensors);
	assert(ndim <= MAX_DIMS);
	*t = (struct tensor){ .storage = storage, .ndim = (uint8_t)ndim, .dtype = (uint8_t)dt, .node = -1, .param = -1 };
	uint64_t stride = 1;
	for (unsigned i = ndim; i-- > 0;) {
		t->dim[i] = dims[i];
		t->stride[i] = stride;
		stride = mul_u64(stride, dims[i]->value);
	}
	return (tensor_id)g->tensors.n - 1;
}

static uint32_t pool_add(struct graph *g, const tensor_id *t, size_t n, uint32_t *count)
{
	uint32_t off = (uint32_t)g->pool.n;
	for (size_t i = 0; i < n; i++)
		if (t[i] >= 0)
			*VEC_PUSH(g->a, &g->pool) = t[i];
	*count = (uint32_t)(g->pool.n - off);
	return off;
}

struct op *graph_op(struct graph *g, const char *name, const tensor_id *reads, size_t nreads,
		    const tensor_id *writes, size_t nwrites)
{
	struct op op = { .name = name, .block = (uint32_t)g->blocks.n - 1 };
	assert(g->blocks.n);
	op.reads = pool_add(g, reads, nreads, &op.nreads);
	op.writes = pool_add(g, writes, nwrites, &op.nwrites);
	struct op *o = VEC_PUSH(g->a, &g->ops);
	*o = op;
	g->blocks.v[op.block].end = (uint32_t)g->ops.n;
	return o;
}

void graph_hold(struct graph *g, const tensor_id *t, size_t n)
{
	if (n)
		graph_op(g, "hold", t, n, NULL, 0);
}

void graph_drop_reads(struct graph *g, uint32_t op, enum tensor_class cls)
{
	struct op *o = &g->ops.v[op];
	uint32_t n = 0;
	for (uint32_t i = 0; i < o->nreads; i++) {
		tensor_id x = g->pool.v[o->reads + i];
		if (g->storages.v[g->tensors.v[x].storage].cls != cls)
			g->pool.v[o->reads + n++] = x;
	}
	o->nreads = n;
}

uint32_t graph_block(struct graph *g, const char *name, enum window w)
{
	struct block *b = VEC_PUSH(g->a, &g->blocks);
	*b = (struct block){ .name = name, .first = (uint32_t)g->ops.n, .end = (uint32_t)g->ops.n,
		.window = (uint8_t)w, .layer = -1, .group = -1, .micro = -1 };
	return (uint32_t)g->blocks.n - 1;
}

struct prog *prog_call(struct graph *g, uint32_t block)
{
	struct prog *p = NEW(g->a, struct prog);
	*p = (struct prog){ .kind = NODE_CALL, .times = 1, .group = -1, .block = block };
	return p;
}

struct prog *prog_seq(struct graph *g, uint64_t times)
{
	struct prog *p = NEW(g->a, struct prog);
	*p = (struct prog){ .kind = NODE_SEQ, .times = times, .group = -1 };
	return p;
}

void prog_add(struct prog *seq, struct prog *child)
{
	struct prog **at = &seq->child;
	while (*at)
		at = &(*at)->next;
	*at = child;
}
