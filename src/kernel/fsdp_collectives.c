/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What gathering a unit's parameters and reducing its gradients allocates.
 * Source: torch 2.14.1 distributed/fsdp/_fully_shard/_fsdp_collectives.py,
 * _fsdp_param.py, _fsdp_param_group.py. */
#include "kernel/fsdp.h"

static struct pslot *slot(struct build *b, const struct fsdp_unit *u, size_t i)
{
	return &b->t->params.v[u->param[i]];
}

static bool is_shared(struct build *b)
{
	return fsdp_of(b)->W->value > 1;
}

/* ---- buffers */

static tensor_id flat(struct build *b, const char *name, enum tensor_class cls, enum dtype dt, size_ref n)
{
	int32_t s = graph_storage(b->g, name, cls, PLACE_GPU, dt, size_mulc(b->a, n, dtypes[dt].bytes));
	b->g->storages.v[s].layer = b->t->layer;
	b->g->storages.v[s].rule = b->dp->source;
	return graph_tensor(b->g, s, dt, 1, &n);
}

static tensor_id new_flat(struct build *b, const char *op, tensor_id from, const char *name, enum tensor_class cls,
			  enum dtype dt, size_ref n)
{
	tensor_id x = flat(b, name, cls, dt, n);
	tape_op1(b->t, op, from, NO_TENSOR, x);
	return x;
}

static uint64_t link_share(struct build *b, tensor_id whole)
{
	uint64_t W = fsdp_of(b)->W->value;
	return b->g->storages.v[T(b->t, whole)->storage].size->value / W * (W - 1);
}

/* ---- gather: foreach_all_gather */

static enum dtype shard_dtype(struct build *b, const struct pslot *p)
{
	return (enum dtype)T(b->t, p->local)->dtype;
}

/* Shards that have the right type go in as they are; the others through one flat cast. */
static size_t gather_cast(struct build *b, const struct fsdp_unit *u, tensor_id *in)
{
	const struct fsdp *f = fsdp_of(b);
	tensor_id *local = NEWN(b->a, tensor_id, u->n + 1);
	size_ref sum = size_const(b->a, 0);
	size_t n = 0;
	for (size_t i = 0; i < u->n; i++) {
		const struct pslot *p = slot(b, u, i);
		if (shard_dtype(b, p) == f->param)
			continue;
		local[n++] = p->local;
		sum = size_add(b->a, sum, tensor_numel(b->t, p->local));
	}
	if (n == 0)
		return 0;
	in[0] = flat(b, "shards in the compute type", CLASS_COMM, f->param, sum);
	tape_op(b->t, "empty", local, n, in, 1);
	return 1;
}

/* FSDPParam.all_gather_inputs: one shard, copied from the host and cast where it must be; NO_TENSOR: as it is */
static tensor_id gather_one(struct build *b, const struct pslot *p)
{
	const struct fsdp *f = fsdp_of(b);
	size_ref n = tensor_numel(b->t, p->local);
	tensor_id x = p->local;
	if (b->spec->par.cpu_offload)
		x = new_flat(b, "_to_copy", x, "shard copied from the host", CLASS_COMM, shard_dtype(b, p), n);
	if (shard_dtype(b, p) != f->param)
		x = new_flat(b, "_to_copy", x, "shard in the compute type", CLASS_COMM, f->param, n);
	return x == p->local ? NO_TENSOR : x;
}

static size_t gather_from_host(struct build *b, const struct fsdp_unit *u, tensor_id *in)
{
	for (size_t i = 0; i < u->n; i++)
		in[i] = gather_one(b, slot(b, u, i));
	return u->n;
}

tensor_id fsdp_all_gather(struct build *b, const struct fsdp_unit *u)
{
	const struct fsdp *f = fsdp_of(b);
	if (!is_shared(b))
		return NO_TENSOR;
	tensor_id *in = NEWN(b->a, tensor_id, u->n + 1);
	size_t n = b->spec->par.cpu_offload ? gather_from_host(b, u, in) : gather_cast(b, u, in);
	tensor_id out = flat(b, "all-gather output", CLASS_COMM, f->param, size_mul(b->a, f->W, u->shard));
	struct op *o = tape_op(b->t, "empty", in, n, &out, 1);
	o->stream = STREAM_COPY_IN;
	o->link_bytes = link_share(b, out);
	return out;
}

/* The whole parameter in a storage of its own, as long as all shards together. */
static tensor_id whole_param(struct build *b, size_t index)
{
	const struct fsdp *f = fsdp_of(b);
	const struct pslot *p = &b->t->params.v[index];
	size_ref n = size_mul(b->a, f->W, tensor_numel(b->t, p->local));
	int32_t s = graph_storage(b->g, p->name, CLASS_UNSHARDED, PLACE_GPU, f->param,
				  size_mulc(b->a, n, dtypes[f->param].bytes));
	b->g->storages.v[s].layer = p->layer;
	b->g->storages.v[s].rule = b->dp->source;
	tensor_id x = graph_tensor(b->g, s, f->param, p->ndim, p->dim);
	T(b->t, x)->param = (int32_t)index;
	T(b->t, x)->needs_grad = p->trainable;
	return x;
}

/* One rank: each shard is cast and copied; the name of the cast is bound again in the next round. */
static void copy_alone(struct build *b, struct fsdp_unit *u)
{
	tensor_id old = NO_TENSOR;
	for (size_t i = 0; i < u->n; i++) {
		struct pslot *p = slot(b, u, i);
		tensor_id input = gather_one(b, p);
		tape_hold(b->t, old);
		p->tensor = whole_param(b, u->param[i]);
		tape_op1(b->t, "resize_", input, p->local, p->tensor);
		old = input;
	}
	tape_hold(b->t, old);
}

/* foreach_all_gather_copy_out */
void fsdp_copy_out(struct build *b, struct fsdp_unit *u, tensor_id gathered)
{
	tensor_id *all = NEWN(b->a, tensor_id, u->n + 1);
	if (!is_shared(b)) {
		copy_alone(b, u);
		return;
	}
	for (size_t i = 0; i < u->n; i++)
		all[i] = slot(b, u, i)->tensor = whole_param(b, u->param[i]);
	tape_op(b->t, "resize_", &gathered, 1, all, u->n);
}

void fsdp_reshard(struct build *b, struct fsdp_unit *u)
{
	for (size_t i = 0; i < u->n; i++) {
		tape_hold(b->t, slot(b, u, i)->tensor);
		slot(b, u, i)->tensor = NO_TENSOR;
	}
}

bool fsdp_is_gathered(struct build *b, const struct fsdp_unit *u)
{
	return u->n && slot(b, u, 0)->tensor >= 0;
}

/* ---- accumulation without reduction (set_requires_gradient_sync(False)) */

static void add_to_kept(struct build *b, struct fsdp_unit *u)
{
	for (size_t i = 0; i < u->n; i++) {
		struct pslot *p = slot(b, u, i);
		if (p->kept < 0 || p->grad < 0)
			continue;
		tape_op1(b->t, "add_", p->grad, NO_TENSOR, p->kept);
		p->grad = NO_TENSOR;
	}
}

static void keep_gradients(struct build *b, struct fsdp_unit *u)
{
	const struct fsdp *f = fsdp_of(b);
	for (size_t i = 0; i < u->n; i++) {
		struct pslot *p = slot(b, u, i);
		if (p->grad < 0 || f->reduce == f->param)
			continue;
		p->kept = tape_like(b->t, p->grad, f->reduce);
		struct storage *s = &b->g->storages.v[T(b->t, p->kept)->storage];
		s->cls = CLASS_UNSHARDED_GRAD;
		s->name = p->grad_label;
		tape_op1(b->t, "_to_copy", p->grad, NO_TENSOR, p->kept);
		p->grad = NO_TENSOR;
	}
}

/* ---- reduce: foreach_reduce */

static size_t take_gradients(struct build *b, struct fsdp_unit *u, tensor_id *grad, struct pslot **owner)
{
	size_t n = 0;
	for (size_t i = 0; i < u->n; i++) {
		struct pslot *p = slot(b, u, i);
		tensor_id g = p->kept >= 0 ? p->kept : p->grad;
		if (g < 0)
			continue;
		owner[n] = p;
		grad[n++] = g;
		p->kept = p->grad = NO_TENSOR;
	}
	return n;
}

/* HSDP: every replica group sums its shards in place; the buffer is kept until backward is over. */
static void all_reduce(struct build *b, tensor_id sum)
{
	if (b->spec->par.replicate < 2)
		return;
	struct op *o = tape_op1(b->t, "all_reduce", sum, NO_TENSOR, sum);
	o->stream = STREAM_REDUCE;
	o->link_bytes = 2 * b->g->storages.v[T(b->t, sum)->storage].size->value;
	*VEC_PUSH(b->a, &b->until_backward_end) = sum;
}

static tensor_id local_view(struct build *b, tensor_id flat_grad, const struct pslot *p)
{
	const struct tensor shard = *T(b->t, p->local);
	tensor_id v = graph_tensor(b->g, T(b->t, flat_grad)->storage, (enum dtype)T(b->t, flat_grad)->dtype, shard.ndim,
				   shard.dim);
	T(b->t, v)->is_view = true;
	return v;
}

/* CPUOffloadPolicy: each shard's gradient is copied to pinned memory; one that is added to the old to pageable. */
static tensor_id to_host(struct build *b, tensor_id view, const struct pslot *p)
{
	const struct tensor v = *T(b->t, view);
	size_ref n = tensor_numel(b->t, view);
	bool again = p->local_grad >= 0;
	int32_t s = graph_storage(b->g, p->grad_label, again ? CLASS_TEMPORARY : CLASS_GRADIENT,
				  again ? PLACE_HOST : PLACE_PINNED, (enum dtype)v.dtype,
				  size_mulc(b->a, n, dtypes[v.dtype].bytes));
	b->g->storages.v[s].layer = p->layer;
	tensor_id x = graph_tensor(b->g, s, (enum dtype)v.dtype, v.ndim, v.dim);
	tape_op1(b->t, "_to_copy", view, NO_TENSOR, x)->stream = STREAM_HOST_COPY;
	return x;
}

static void set_local_grads(struct build *b, tensor_id sum, struct pslot **owner, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		tensor_id g = local_view(b, sum, owner[i]);
		if (b->spec->par.cpu_offload)
			g = to_host(b, g, owner[i]);
		if (owner[i]->local_grad >= 0)
			tape_op1(b->t, "add_", g, NO_TENSOR, owner[i]->local_grad);
		else
			owner[i]->local_grad = g;
	}
}

/* The flat buffer of a unit's sharded gradients: the sum in the reduce type, then a cast to that of the shards. */
static tensor_id reduce_scatter(struct build *b, tensor_id in, size_ref n, enum dtype orig, enum tensor_class cls)
{
	enum dtype reduce = fsdp_of(b)->reduce;
	bool cast = reduce != orig;
	tensor_id out = flat(b, cast ? "reduce-scatter output" : "sharded gradients", cast ? CLASS_COMM : cls, reduce, n);
	struct op *o = tape_op1(b->t, "empty", in, NO_TENSOR, out);
	o->stream = STREAM_REDUCE;
	o->link_bytes = link_share(b, in);
	all_reduce(b, out);
	return cast ? new_flat(b, "_to_copy", out, "sharded gradients", cls, orig, n) : out;
}

/* post_backward */
void fsdp_reduce(struct build *b, struct fsdp_unit *u)
{
	const struct fsdp *f = fsdp_of(b);
	tensor_id *grad = NEWN(b->a, tensor_id, u->n + 1);
	struct pslot **owner = NEWN(b->a, struct pslot *, u->n + 1);
	add_to_kept(b, u);
	fsdp_reshard(b, u);
	if (!b->reduces) {
		keep_gradients(b, u);
		return;
	}
	tape_hold(b->t, b->state[STATE_REDUCED]);
	b->state[STATE_REDUCED] = NO_TENSOR;
	size_t n = take_gradients(b, u, grad, owner);
	if (n == 0)
		return;
	size_ref shard = size_const(b->a, 0);
	for (size_t i = 0; i < n; i++)
		shard = size_add(b->a, shard, tensor_numel(b->t, owner[i]->local));
	bool keeps = owner[0]->local_grad < 0 && !b->spec->par.cpu_offload;
	tensor_id in = flat(b, "reduce-scatter input", CLASS_COMM, f->reduce, size_mul(b->a, f->W, shard));
	tape_op(b->t, "empty", grad, n, &in, 1);
	tensor_id sum = reduce_scatter(b, in, shard, shard_dtype(b, owner[0]), keeps ? CLASS_GRADIENT : CLASS_COMM);
	set_local_grads(b, sum, owner, n);
	tape_hold(b->t, sum);
	if (is_shared(b))              /* the loop over gradients keeps its name for the last */
		tape_hold(b->t, grad[n - 1]);
	b->state[STATE_REDUCED] = in;
}
