/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The tape: making tensors and ops, and recording what autograd would. */
#include "kernel/tape.h"

#include <assert.h>
#include <string.h>

#include "kernel/aten/aten.h"

struct tape *tape_new(struct graph *g, struct arena *a)
{
	struct tape *t = NEW(a, struct tape);
	*t = (struct tape){ .g = g, .a = a, .region = -1, .scope = -1, .layer = -1, .cls = -1, .leaf = NO_TENSOR,
		.input = { .tensor = NO_TENSOR, .grad = NO_TENSOR },
		.label = "", .low = DT_BF16 };
	return t;
}

void tape_reset(struct tape *t)
{
	t->nodes.n = t->regions.n = 0;
	t->nkwarg = 0;
	t->reentrant = false;
	t->cast_epoch++;
	for (size_t i = 0; i < t->params.n; i++) {
		t->params.v[i].cast = t->params.v[i].sum = NO_TENSOR;
		t->params.v[i].uses = 0;
	}
}

/* ---- tensors and ops */

static enum tensor_class new_class(const struct tape *t, enum dtype dt, unsigned ndim, const size_ref *dims)
{
	if (t->cls >= 0)
		return (enum tensor_class)t->cls;
	if (t->vocab && ndim >= 2 && dims[ndim - 1] == t->vocab && dtypes[dt].floating)
		return CLASS_LOGITS;
	return t->mode == TAPE_RECOMPUTE ? CLASS_RECOMPUTE : CLASS_TEMPORARY;
}

tensor_id tape_tensor(struct tape *t, enum dtype dt, unsigned ndim, const size_ref *dims)
{
	size_ref n = size_const(t->a, dtypes[dt].bytes);
	for (unsigned i = 0; i < ndim; i++)
		n = size_mul(t->a, n, dims[i]);
	int32_t s = graph_storage(t->g, t->label, new_class(t, dt, ndim, dims), PLACE_GPU, dt, n);
	t->g->storages.v[s].layer = t->layer;
	t->g->storages.v[s].by = t->by;
	t->g->storages.v[s].rule = t->rule;
	return graph_tensor(t->g, s, dt, ndim, dims);
}

tensor_id tape_like(struct tape *t, tensor_id x, enum dtype dt)
{
	size_ref dims[MAX_DIMS];
	unsigned n = T(t, x)->ndim;
	memcpy(dims, T(t, x)->dim, sizeof dims);
	tensor_id y = tape_tensor(t, dt, n, dims);
	tensor_dense_strides(t, x, T(t, y)->stride);
	return y;
}

tensor_id tape_scalar(struct tape *t, enum dtype dt)
{
	return tape_tensor(t, dt, 0, NULL);
}

tensor_id tape_workspace(struct tape *t, enum dtype dt, size_ref n)
{
	int32_t cls = t->cls;
	t->cls = CLASS_WORKSPACE;
	tensor_id x = tape_tensor(t, dt, 1, &n);
	t->cls = cls;
	return x;
}

/* In recomputation a kept output takes the place of the tensor that the emitter just made. */
static void take_kept(struct tape *t, struct region *r, const tensor_id *writes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		tensor_id old = r->kept.v[r->nused++];
		T(t, writes[i])->storage = T(t, old)->storage;
		graph_hold(t->g, &old, 1);
	}
}

struct op *tape_op(struct tape *t, const char *name, const tensor_id *reads, size_t nreads,
		   const tensor_id *writes, size_t nwrites)
{
	if (t->stopped)
		return &t->dummy;
	struct region *r = t->region >= 0 ? &t->regions.v[t->region] : NULL;
	if (r && r->sac && t->mode == TAPE_REGION && sac_keeps(r->sac, name, &r->mm))
		for (size_t i = 0; i < nwrites; i++)
			*VEC_PUSH(t->a, &r->kept) = writes[i];
	if (r && r->sac && t->mode == TAPE_RECOMPUTE && sac_keeps(r->sac, name, &r->mm_again)) {
		take_kept(t, r, writes, nwrites);
		return &t->dummy;
	}
	return graph_op(t->g, name, reads, nreads, writes, nwrites);
}

struct op *tape_op1(struct tape *t, const char *name, tensor_id r0, tensor_id r1, tensor_id w)
{
	tensor_id r[2] = { r0, r1 };
	return tape_op(t, name, r, 2, &w, 1);
}

/* The early stop unwinds all frames at once: what they hold lives up to there, if it was made by then. */
void tape_holdv(struct tape *t, const tensor_id *x, size_t n)
{
	if (!t->stopped) {
		graph_hold(t->g, x, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (x[i] >= 0 && (size_t)T(t, x[i])->storage < t->made)
			graph_hold(t->g, &x[i], 1);
}

void tape_hold(struct tape *t, tensor_id x)
{
	tape_holdv(t, &x, 1);
}

tensor_id tape_param(struct tape *t, int32_t param)
{
	return t->params.v[param].tensor;
}

void tape_require_grad(struct tape *t, tensor_id x)
{
	if (T(t, x)->needs_grad)
		return;
	T(t, x)->needs_grad = true;
	t->input = (struct pslot){ .grad_label = arena_printf(t->a, "gradient of %s", t->label), .tensor = x,
		.local = NO_TENSOR, .grad = NO_TENSOR, .sum = NO_TENSOR, .unit = -1, .layer = -1 };
}

void tape_drop_input(struct tape *t)
{
	tape_holdv(t, (tensor_id[]){ t->input.tensor, t->input.grad }, 2);
	t->input.tensor = t->input.grad = NO_TENSOR;
}

/* ---- recording */

static bool needs_grad(struct tape *t, tensor_id x)
{
	return x >= 0 && T(t, x)->needs_grad;
}

struct anode *node_begin(struct tape *t, const char *name, back_fn *back, const tensor_id *in, size_t nin)
{
	bool any = false;
	for (size_t i = 0; i < nin; i++)
		any |= needs_grad(t, in[i]);
	if (!any || t->mode == TAPE_NOGRAD || t->stopped)
		return NULL;
	struct anode *n = t->mode == TAPE_RECOMPUTE ? &t->sink : VEC_PUSH(t->a, &t->nodes);
	*n = (struct anode){ .name = name, .back = back, .nin = (uint32_t)nin, .scope = t->scope, .label = t->label, .rule = t->rule,
		.region = t->mode == TAPE_REGION ? t->region : -1 };
	n->in = NEWN(t->a, tensor_id, nin);
	n->want = NEWN(t->a, bool, nin);
	for (size_t i = 0; i < nin; i++) {
		n->in[i] = in[i];
		n->want[i] = needs_grad(t, in[i]);
	}
	return n;
}

/* In recomputation what is packed goes, in order, to the nodes of the first forward (checkpoint.py
 * _recomputation_hook); the last pack may end it. */
static void repack(struct tape *t, tensor_id x)
{
	struct region *r = &t->regions.v[t->region];
	if (t->stopped)
		return;
	const struct slot *s = &r->packs.v[r->packed++];
	t->nodes.v[s->node].saved[s->index] = x;
	if (r->packed == r->packs.n && r->early_stop) {
		t->stopped = true;
		t->made = t->g->storages.n;
	}
}

void node_save(struct tape *t, struct anode *n, tensor_id x)
{
	if (!n || x < 0)
		return;
	if (n == &t->sink) {
		repack(t, x);
		return;
	}
	assert(n->nsaved < NODE_SAVED);
	if (n->region >= 0)
		*VEC_PUSH(t->a, &t->regions.v[n->region].packs) =
			(struct slot){ (int32_t)(n - t->nodes.v), n->nsaved };
	n->saved[n->nsaved++] = x;
}

void node_end(struct tape *t, struct anode *n, const tensor_id *out, size_t nout)
{
	if (!n)
		return;
	bool sink = n == &t->sink;
	if (!sink) {
		n->nout = (uint32_t)nout;
		n->buf = NEWN(t->a, tensor_id, nout);
		memset(n->buf, 0xff, sizeof *n->buf * nout);   /* NO_TENSOR */
	}
	for (size_t i = 0; i < nout; i++) {
		T(t, out[i])->needs_grad = true;
		T(t, out[i])->node = sink ? -1 : (int32_t)(n - t->nodes.v);
		T(t, out[i])->out = (int32_t)i;
	}
}

void tape_on_grad(struct tape *t, tensor_id x, void (*fn)(void *ctx))
{
	if (T(t, x)->node >= 0)
		t->nodes.v[T(t, x)->node].on_grad = fn;
}

tensor_id node_saved(struct tape *t, const struct anode *n, size_t i)
{
	tensor_id x = n->saved[i];
	return T(t, x)->param >= 0 ? tape_param(t, T(t, x)->param) : x;
}
