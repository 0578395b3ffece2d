/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The engine: runs the nodes of a tape backward.  It takes the ready node with
 * the highest sequence number; as consumers always have higher numbers than
 * producers, that is simply descending order. */
#include <string.h>

#include "kernel/aten/aten.h"

/* ---- gradients meet */

static uint16_t *pending(struct tape *t, tensor_id x)
{
	size_t s = (size_t)T(t, x)->storage;
	while (t->pending.n <= s)
		*VEC_PUSH(t->a, &t->pending) = 0;
	return &t->pending.v[s];
}

/* input_buffer.cpp accumulate(): in place when the first gradient is dense and nobody else refers to it. */
static tensor_id sum_grads(struct tape *t, tensor_id old, tensor_id x)
{
	bool in_place = !T(t, old)->is_view && *pending(t, old) == 1 && T(t, old)->storage != T(t, x)->storage &&
		tensor_is_dense(t, old);
	if (in_place) {
		tape_op1(t, "add", old, x, old);
		return old;
	}
	tensor_id y = tape_like(t, old, T(t, old)->dtype);
	tape_op1(t, "add", old, x, y);
	--*pending(t, old);
	++*pending(t, y);
	return y;
}

static void buffer_add(struct tape *t, tensor_id *buf, tensor_id x)
{
	if (*buf < 0) {
		*buf = x;
		++*pending(t, x);
	} else {
		*buf = sum_grads(t, *buf, x);
	}
}

/* accumulate_grad.h: the first gradient is stolen when it is laid out like the parameter and unshared, else
 * cloned; later ones are added in place. */
static void set_grad(struct tape *t, struct pslot *p, tensor_id x)
{
	if (p->grad >= 0) {
		tape_op1(t, "add_", p->grad, x, p->grad);
		return;
	}
	if (*pending(t, x) > 0 || !tensor_is_contiguous(t, x)) {
		tensor_id y = tape_like(t, x, T(t, x)->dtype);
		tape_op1(t, "clone", x, NO_TENSOR, y);
		x = y;
	}
	struct storage *s = &t->g->storages.v[T(t, x)->storage];
	if (p->local >= 0)
		s->cls = p->unit >= 0 ? CLASS_UNSHARDED_GRAD : CLASS_GRADIENT;
	s->name = p->grad_label;
	s->layer = p->layer;
	p->grad = x;
}

static void accumulate_grad(struct tape *t, struct pslot *p, tensor_id x)
{
	if (--p->uses > 0 || p->sum >= 0) {
		buffer_add(t, &p->sum, x);
		if (p->uses > 0)
			return;
		x = p->sum;
		--*pending(t, x);
		p->sum = NO_TENSOR;
	}
	set_grad(t, p, x);
	if (t->hooks.grad_ready && p->local >= 0)
		t->hooks.grad_ready(t->hooks.ctx, p);
}

static void route(struct tape *t, tensor_id input, tensor_id x)
{
	const struct tensor *in = T(t, input);
	if (in->node >= 0)
		buffer_add(t, &t->nodes.v[in->node].buf[in->out], x);
	else if (in->param >= 0)
		accumulate_grad(t, &t->params.v[in->param], x);
	else if (input == t->input.tensor)
		accumulate_grad(t, &t->input, x);
	else if (input == t->leaf)
		buffer_add(t, &t->leaf_grad, x);
}

/* ---- running nodes */

static void recompute(struct tape *t, int32_t region)
{
	struct region *r = &t->regions.v[region];
	enum tape_mode mode = t->mode;
	int32_t old_region = t->region;
	const char *label = t->label, *rule = t->rule, *by = t->by;
	size_t casts = t->casts.n;
	t->mode = TAPE_RECOMPUTE;
	t->region = region;
	t->by = "recompute";
	t->cast_epoch++;
	r->recomputed = true;
	r->emit(r->ctx, r->x);
	tape_holdv(t, t->casts.v + casts, t->casts.n - casts);   /* the autocast context that recomputation entered ends */
	t->casts.n = casts;
	t->stopped = false;
	t->mode = mode;
	t->region = old_region;
	t->label = label;
	t->rule = rule;
	t->by = by;
}

static void note_unpacked(struct tape *t, struct anode *n)
{
	if (n->region < 0 || n->nsaved == 0)
		return;
	struct region *r = &t->regions.v[n->region];
	r->unpacked += n->nsaved;
	if (r->unpacked == r->packs.n) {
		tape_hold(t, r->x);
		tape_holdv(t, r->kwargs, r->nkwarg);
	}
}

static void enter_scope(struct tape *t, int32_t scope)
{
	if (scope == t->scope)
		return;
	int32_t old = t->scope;
	t->scope = scope;
	if (t->hooks.scope_leave)
		t->hooks.scope_leave(t->hooks.ctx, old);
	if (t->hooks.scope_enter)
		t->hooks.scope_enter(t->hooks.ctx, scope);
}

/* engine.cpp validate_outputs(): gradients take their input's shape and dtype. */
static tensor_id validate(struct tape *t, tensor_id input, tensor_id x)
{
	x = aten_sum_to_size(t, x, input);
	return T(t, x)->dtype == T(t, input)->dtype ? x : aten_cast(t, x, T(t, input)->dtype);
}

/* Takes the gradients that arrived out of the buffers; false: none did. */
static bool take_grads(struct tape *t, const struct anode *n)
{
	bool any = false;
	for (size_t k = 0; k < n->nout; k++)
		if (n->buf[k] >= 0) {
			--*pending(t, n->buf[k]);
			any = true;
		}
	return any;
}

static void hold_saved(struct tape *t, const struct anode *n)
{
	tensor_id saved[NODE_SAVED];
	for (size_t k = 0; k < n->nsaved; k++)
		saved[k] = node_saved(t, n, k);
	tape_holdv(t, saved, n->nsaved);
}

/* The incoming gradients go when the node's function returns, its saved tensors right after. */
static void release(struct tape *t, struct anode *n)
{
	tape_holdv(t, n->buf, n->nout);
	if (n->region < 0)
		hold_saved(t, n);
	note_unpacked(t, n);
}

static bool has_grads(const struct anode *n)
{
	for (size_t k = 0; k < n->nout; k++)
		if (n->buf[k] >= 0)
			return true;
	return false;
}

static void run_node(struct tape *t, size_t i)
{
	struct anode *n = &t->nodes.v[i];
	tensor_id *out;
	enter_scope(t, n->scope);
	if (n->on_grad && has_grads(n))
		n->on_grad(t->hooks.ctx);
	if (n->region >= 0 && n->nsaved && !t->regions.v[n->region].recomputed)
		recompute(t, n->region);
	if (!take_grads(t, n))
		return;
	size_t ops = t->g->ops.n;
	out = NEWN(t->a, tensor_id, n->nin);
	memset(out, 0xff, sizeof *out * n->nin);       /* NO_TENSOR */
	t->mode = TAPE_NOGRAD;
	t->label = n->label;
	t->rule = n->rule;
	n->back(t, n, n->buf, out);
	n = &t->nodes.v[i];
	if (n->region >= 0)            /* what recomputation made goes when the function that unpacked it returns */
		hold_saved(t, n);
	for (size_t k = 0; k < n->nin; k++)
		if (n->want[k] && out[k] >= 0)
			out[k] = validate(t, n->in[k], out[k]);
	if (n->nsaved || t->g->ops.n != ops)
		release(t, n);
	for (size_t k = 0; k < n->nin; k++)
		if (n->want[k] && out[k] >= 0)
			route(t, n->in[k], out[k]);
	t->mode = TAPE_RECORD;
}

/* Nodes [lo, hi): which can be reached from the last, and how many gradients each parameter will get. */
static void mark_reachable(struct tape *t, size_t lo, size_t hi)
{
	t->nodes.v[hi - 1].reachable = true;
	for (size_t i = hi; i-- > lo;) {
		struct anode *n = &t->nodes.v[i];
		for (size_t k = 0; n->reachable && k < n->nin; k++) {
			if (!n->want[k])
				continue;
			const struct tensor *in = T(t, n->in[k]);
			if (in->node >= (int32_t)lo)
				t->nodes.v[in->node].reachable = true;
			else if (in->param >= 0)
				t->params.v[in->param].uses++;
			else if (n->in[k] == t->input.tensor)
				t->input.uses++;
		}
	}
}

void tape_drop_unused(struct tape *t, tensor_id root)
{
	size_t n = t->nodes.n;
	bool *used = NEWN(t->a, bool, n + 1);
	if (T(t, root)->node >= 0)
		used[T(t, root)->node] = true;
	for (size_t i = n; i-- > 0;) {
		const struct anode *a = &t->nodes.v[i];
		for (size_t k = 0; used[i] && k < a->nin; k++)
			if (a->want[k] && T(t, a->in[k])->node >= 0)
				used[T(t, a->in[k])->node] = true;
		if (!used[i] && a->region < 0)
			tape_holdv(t, a->saved, a->nsaved);
	}
}

static void run_range(struct tape *t, size_t lo, size_t hi, tensor_id root, tensor_id grad)
{
	bool nested = t->in_backward;
	mark_reachable(t, lo, hi);
	t->in_backward = true;
	buffer_add(t, &t->nodes.v[T(t, root)->node].buf[T(t, root)->out], grad);
	for (size_t i = hi; i-- > lo;)
		if (t->nodes.v[i].reachable)
			run_node(t, i);
	t->in_backward = nested;
}

void tape_backward(struct tape *t, tensor_id loss)
{
	tensor_id one = tape_like(t, loss, T(t, loss)->dtype);
	tape_op1(t, "ones_like", NO_TENSOR, NO_TENSOR, one);
	run_range(t, 0, (size_t)T(t, loss)->node + 1, loss, one);
	if (t->hooks.finish)
		t->hooks.finish(t->hooks.ctx);
	tape_hold(t, one);
	if (t->reentrant)              /* CheckpointFunction's context refers to its kwargs until the graph goes */
		tape_holdv(t, t->kwargs, t->nkwarg);
}

/* ---- checkpointing */

tensor_id tape_checkpoint(struct tape *t, tensor_id (*emit)(void *, tensor_id), void *ctx, tensor_id x, bool early_stop)
{
	int32_t id = (int32_t)t->regions.n;
	*VEC_PUSH(t->a, &t->regions) = (struct region){ .emit = emit, .ctx = ctx, .x = x,
		.early_stop = early_stop, .sac = t->sac, .nkwarg = t->nkwarg };
	memcpy(t->regions.v[id].kwargs, t->kwargs, sizeof t->kwargs);
	t->mode = TAPE_REGION;
	t->region = id;
	tensor_id y = emit(ctx, x);
	t->mode = TAPE_RECORD;
	t->region = -1;
	return y;
}

static tensor_id detach(struct tape *t, tensor_id x)
{
	struct tensor *d = VEC_PUSH(t->a, &t->g->tensors);
	*d = *T(t, x);
	d->node = -1;
	d->needs_grad = true;
	return (tensor_id)t->g->tensors.n - 1;
}

/* CheckpointFunction.backward: the whole forward again on a detached input, then a backward inside. */
static void back_reentrant(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct region *r = &t->regions.v[n->iarg[0]];
	tensor_id old_leaf = t->leaf, old_grad = t->leaf_grad, x = detach(t, n->saved[0]);
	size_t lo = t->nodes.n;
	const char *by = t->by;
	t->by = "recompute";
	t->leaf = x;
	t->leaf_grad = NO_TENSOR;
	t->mode = TAPE_RECORD;
	tensor_id y = r->emit(r->ctx, x);
	t->by = by;
	++*pending(t, grad[0]);        /* backward()'s arguments refer to it */
	run_range(t, lo, t->nodes.n, y, grad[0]);
	--*pending(t, grad[0]);
	tape_hold(t, y);
	out[0] = t->leaf_grad;
	if (out[0] >= 0)
		--*pending(t, out[0]);
	t->leaf = old_leaf;
	t->leaf_grad = old_grad;
}

tensor_id tape_checkpoint_reentrant(struct tape *t, tensor_id (*emit)(void *, tensor_id), void *ctx, tensor_id x)
{
	uint64_t id = t->regions.n;
	*VEC_PUSH(t->a, &t->regions) = (struct region){ .emit = emit, .ctx = ctx, .x = x };
	t->mode = TAPE_NOGRAD;
	t->reentrant = true;
	tensor_id y = emit(ctx, x);
	t->mode = TAPE_RECORD;
	struct anode *n = node_begin(t, "CheckpointFunctionBackward", back_reentrant, &x, 1);
	if (n)
		n->iarg[0] = id;
	node_save(t, n, x);
	node_end(t, n, &y, 1);
	return y;
}
