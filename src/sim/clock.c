/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The roofline of each block, summed over the program tree. */
#include "sim/clock.h"

/* cuBLAS does fp32 products outside the tensor cores by default (torch.backends.cuda.matmul.allow_tf32 = False):
 * a sixteenth of the bf16 rate (vendor datasheets: A100 19.5 of 312, H100 67 of 989 TFLOP/s). */
enum { FP32_SLOWDOWN = 16 };

struct rates { double matrix, memory, link, host; };

static uint64_t tensor_bytes(const struct graph *g, tensor_id x)
{
	const struct tensor *t = &g->tensors.v[x];
	uint64_t n = dtypes[t->dtype].bytes;
	for (unsigned i = 0; i < t->ndim; i++)
		n = mul_u64(n, t->stride[i] || t->dim[i]->value == 1 ? t->dim[i]->value : 1);
	return n;
}

/* What an op moves through memory; holds and markers move nothing. */
static double op_traffic(const struct graph *g, const struct op *o)
{
	uint64_t n = 0;
	if (o->nwrites == 0)
		return 0;
	for (uint32_t k = 0; k < o->nreads; k++)
		n = add_u64(n, tensor_bytes(g, g->pool.v[o->reads + k]));
	for (uint32_t k = 0; k < o->nwrites; k++)
		n = add_u64(n, tensor_bytes(g, g->pool.v[o->writes + k]));
	return (double)n;
}

static double op_arithmetic(const struct graph *g, const struct op *o, const struct rates *r)
{
	bool fp32 = o->nreads && g->tensors.v[g->pool.v[o->reads]].dtype == DT_FP32;
	return o->flops ? (double)o->flops * (fp32 ? FP32_SLOWDOWN : 1) / r->matrix : 0;
}

static void add_op(const struct graph *g, const struct op *o, const struct rates *r, struct timing *t)
{
	double traffic = op_traffic(g, o), arithmetic = op_arithmetic(g, o, r);
	if (o->stream == STREAM_HOST_COPY) {
		t->host_s += traffic / 2 / r->host;
		t->host_bytes += (uint64_t)(traffic / 2);
		return;
	}
	if (o->link_bytes)
		t->link_s += (double)o->link_bytes / r->link;
	else
		t->compute_s += arithmetic > traffic / r->memory ? arithmetic : traffic / r->memory;
	t->flops += (double)o->flops;
}

static double longest(double a, double b, double c)
{
	double m = a > b ? a : b;
	return m > c ? m : c;
}

static struct timing time_block(const struct graph *g, const struct block *b, const struct rates *r)
{
	struct timing t = { 0 };
	for (uint32_t i = b->first; i < b->end; i++)
		add_op(g, &g->ops.v[i], r, &t);
	t.step_s = longest(t.compute_s, t.link_s, t.host_s);
	return t;
}

static void add_timing(struct timing *t, const struct timing *x, uint64_t times)
{
	double n = (double)times;
	t->step_s += n * x->step_s;
	t->compute_s += n * x->compute_s;
	t->link_s += n * x->link_s;
	t->host_s += n * x->host_s;
	t->flops += n * x->flops;
	t->host_bytes = add_u64(t->host_bytes, mul_u64(x->host_bytes, times));
}

static struct timing time_prog(const struct prog *p, const struct timing *blocks)
{
	struct timing t = { 0 }, all = { 0 };
	if (p->kind == NODE_CALL)
		t = blocks[p->block];
	for (const struct prog *c = p->child; c; c = c->next) {
		struct timing part = time_prog(c, blocks);
		add_timing(&t, &part, 1);
	}
	add_timing(&all, &t, p->times);
	return all;
}

struct timing clock_step(const struct graph *g, const struct gpu *gpu, struct arena *scratch)
{
	const struct constant *c = gpu->c;
	struct timing none = { 0 };
	if (!c[CONST_MATRIX_RATE].set || !c[CONST_MEMORY_BANDWIDTH].set)
		return none;
	struct rates r = { .matrix = (double)c[CONST_MATRIX_RATE].value, .memory = (double)c[CONST_MEMORY_BANDWIDTH].value };
	r.host = c[CONST_HOST_BANDWIDTH].set ? (double)c[CONST_HOST_BANDWIDTH].value : r.memory;
	r.link = c[CONST_LINK_BANDWIDTH].set ? (double)c[CONST_LINK_BANDWIDTH].value : r.host;   /* over PCIe */
	struct timing *blocks = NEWN(scratch, struct timing, g->blocks.n + 1);
	for (size_t i = 0; i < g->blocks.n; i++)
		blocks[i] = time_block(g, &g->blocks.v[i], &r);
	struct timing t = time_prog(g->steady, blocks);
	t.known = c[CONST_HOST_BANDWIDTH].set;
	return t;
}
