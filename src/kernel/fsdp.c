/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * FSDP2 and HSDP: fully_shard on each decoder layer and then on the root
 * (embedding, final norm, head).  A unit's parameters are gathered before its
 * forward and again before its backward; its gradients are reduced when the
 * gradient of its input is there.  Source: torch 2.14.1
 * distributed/fsdp/_fully_shard/_fsdp_param_group.py, _fsdp_collectives.py. */
#include "kernel/data_parallel.h"
#include "kernel/step.h"

#include <string.h>

struct fsdp_unit {
	size_t n, *param;              /* of tape.params */
	size_ref shard;                /* elements of one rank's shards, padded */
};
struct fsdp {
	struct fsdp_unit *unit; size_t nunit;       /* by layer instance; the last is the root */
	size_ref W;                            /* ranks that share one copy */
	enum dtype param, reduce;              /* param_dtype and reduce_dtype of the MixedPrecisionPolicy */
};

bool fsdp_applies(const struct spec *s)
{
	return s->par.zero == 3;
}

static struct fsdp *fsdp_of(struct build *b)
{
	return b->dp_state;
}

static struct fsdp_unit *root_of(struct build *b)
{
	struct fsdp *f = fsdp_of(b);
	return &f->unit[f->nunit - 1];
}

static struct pslot *slot(struct build *b, const struct fsdp_unit *u, size_t i)
{
	return &b->t->params.v[u->param[i]];
}

static bool is_shared(struct build *b)
{
	return fsdp_of(b)->W->value > 1;
}

/* ---- load: Shard(0), rows padded to a multiple of the ranks; rank 0 has a full shard */

static size_ref shard_ranks(struct build *b)
{
	if (!b->dp_ranks)
		b->dp_ranks = size_dim(b->a, "dp", b->spec->par.shard, "ranks that share the model states");
	return b->dp_ranks;
}

void fsdp_shard(struct build *b, size_ref *dim, enum place *place)
{
	dim[0] = size_ceil_div(b->a, dim[0], shard_ranks(b));
	if (b->spec->par.cpu_offload)
		*place = PLACE_PINNED;
}

static struct fsdp_unit unit_new(struct build *b, size_t n)
{
	return (struct fsdp_unit){ .param = NEWN(b->a, size_t, n + 1), .shard = size_const(b->a, 0) };
}

static void unit_add(struct build *b, struct fsdp_unit *u, int32_t id, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++) {
		struct pslot *p = &b->t->params.v[i];
		if (p->local == p->tensor)     /* a buffer */
			continue;
		p->unit = id;
		u->param[u->n++] = i;
		u->shard = size_add(b->a, u->shard, tensor_numel(b->t, p->local));
	}
}

void fsdp_load(struct build *b)
{
	struct fsdp *f = NEW(b->a, struct fsdp);
	const struct precision *prec = &b->spec->prec;
	*f = (struct fsdp){ .nunit = b->nlayer + 1, .W = shard_ranks(b), .param = prec->compute, .reduce = prec->reduce,
		.unit = NEWN(b->a, struct fsdp_unit, b->nlayer + 1) };
	if (prec->autocast)            /* no MixedPrecisionPolicy then */
		f->param = f->reduce = prec->params;
	b->dp_state = f;
	for (size_t i = 0; i < b->nlayer; i++) {
		f->unit[i] = unit_new(b, b->layers[i].nparam);
		unit_add(b, &f->unit[i], (int32_t)i, b->layers[i].first_param, b->layers[i].nparam);
	}
	*root_of(b) = unit_new(b, b->outer[0].n + b->outer[1].n);
	for (int i = 0; i < 2; i++)
		unit_add(b, root_of(b), (int32_t)b->nlayer, b->outer[i].first, b->outer[i].n);
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

static tensor_id all_gather(struct build *b, const struct fsdp_unit *u)
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
static void copy_out(struct build *b, struct fsdp_unit *u, tensor_id gathered)
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

static void reshard(struct build *b, struct fsdp_unit *u)
{
	for (size_t i = 0; i < u->n; i++) {
		tape_hold(b->t, slot(b, u, i)->tensor);
		slot(b, u, i)->tensor = NO_TENSOR;
	}
}

/* ---- prefetch: state[STATE_PENDING + j] is the all-gather output of the j-th next unit */

static tensor_id take_pending(struct build *b)
{
	tensor_id first = b->state[STATE_PENDING];
	for (int j = STATE_PENDING; j + 1 < NSTATE; j++)
		b->state[j] = b->state[j + 1];
	b->state[NSTATE - 1] = NO_TENSOR;
	return first;
}

/* Units that stay gathered from forward on need none in backward. */
static void prefetch(struct build *b, uint64_t depth, uint64_t index, bool forward)
{
	if (!forward && !b->spec->par.reshard_after_forward)
		return;
	for (uint64_t j = 0; j < depth && j < MAX_PENDING; j++) {
		tensor_id *next = &b->state[STATE_PENDING + j];
		bool exists = forward ? index + j + 1 < b->m->layers : index > j;
		if (!exists || *next >= 0)
			continue;
		size_t i = layer_instance(b, forward ? index + j + 1 : index - j - 1);
		*next = all_gather(b, &fsdp_of(b)->unit[i]);
	}
}

/* ---- forward */

/* The previous unit's output is kept until this one is copied out, so that the copy overlaps the next gather. */
static void gather_for_forward(struct build *b, struct fsdp_unit *u)
{
	tensor_id next = take_pending(b);
	if (next < 0)
		next = all_gather(b, u);
	copy_out(b, u, next);
	tape_hold(b->t, b->state[STATE_GATHERED]);
	b->state[STATE_GATHERED] = next;
}

void fsdp_forward_begin(struct build *b)
{
	for (int i = STATE_GATHERED; i < NSTATE; i++)
		b->state[i] = NO_TENSOR;
	gather_for_forward(b, root_of(b));
}

static void reduce_unit(struct build *b, struct fsdp_unit *u);

/* RegisterPostBackwardFunction: the gradient of the layer's input is there. */
static void back_layer_input(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct build *b = t->hooks.ctx;
	out[0] = grad[0];
	reduce_unit(b, &fsdp_of(b)->unit[n->iarg[0]]);
}

static tensor_id alias(struct build *b, tensor_id x)
{
	struct tensor *y = VEC_PUSH(b->a, &b->g->tensors);
	*y = *T(b->t, x);
	y->node = -1;
	y->needs_grad = false;
	return (tensor_id)b->g->tensors.n - 1;
}

void fsdp_layer_begin(struct build *b, size_t layer)
{
	gather_for_forward(b, &fsdp_of(b)->unit[layer]);
	prefetch(b, b->spec->par.forward_prefetch, b->layers[layer].index, true);
}

tensor_id fsdp_layer_input(struct build *b, size_t layer, tensor_id x)
{
	tensor_id y = alias(b, x);
	struct anode *n = node_begin(b->t, "RegisterPostBackwardFunction", back_layer_input, &x, 1);
	if (n)
		n->iarg[0] = layer;
	node_end(b->t, n, &y, 1);
	return y;
}

void fsdp_layer_end(struct build *b, size_t layer)
{
	if (b->spec->par.reshard_after_forward)
		reshard(b, &fsdp_of(b)->unit[layer]);
}

void fsdp_forward_end(struct build *b)
{
	tape_hold(b->t, b->state[STATE_GATHERED]);
	b->state[STATE_GATHERED] = NO_TENSOR;
}

/* ---- backward: the output of a gather is freed when it is copied out, then the next unit is gathered */

static uint64_t backward_depth(const struct build *b)
{
	return b->spec->par.backward_prefetch > 1 ? b->spec->par.backward_prefetch : 1;
}

void fsdp_backward_begin(struct build *b)
{
	for (int i = STATE_GATHERED; i < NSTATE; i++)
		b->state[i] = NO_TENSOR;
	prefetch(b, 1, b->m->layers, false);
}

static void prefetch_backward(struct build *b, size_t layer)
{
	prefetch(b, backward_depth(b), b->layers[layer].index, false);
}

/* A reentrant checkpoint runs the layer's forward again with its hooks: the gathered buffer is kept to its end, and
 * the next unit is gathered when the backward inside begins. */
static bool is_reentrant(struct build *b, size_t layer)
{
	return b->recipe.reentrant && recipe_checkpoints(&b->recipe, b->layers[layer].index);
}

void fsdp_layer_backward(struct build *b, size_t layer)
{
	struct fsdp_unit *u = &fsdp_of(b)->unit[layer];
	if (b->spec->par.reshard_after_forward) {
		tensor_id next = take_pending(b);
		if (next < 0)
			next = all_gather(b, u);
		copy_out(b, u, next);
		if (is_reentrant(b, layer))
			b->state[STATE_GATHERED] = next;
		else
			tape_hold(b->t, next);
	}
	if (!is_reentrant(b, layer))
		prefetch_backward(b, layer);
}

void fsdp_layer_output(struct build *b, size_t layer)
{
	if (!b->t->in_backward || !is_reentrant(b, layer))
		return;
	tape_hold(b->t, b->state[STATE_GATHERED]);
	b->state[STATE_GATHERED] = NO_TENSOR;
	prefetch_backward(b, layer);
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
static void reduce_unit(struct build *b, struct fsdp_unit *u)
{
	const struct fsdp *f = fsdp_of(b);
	tensor_id *grad = NEWN(b->a, tensor_id, u->n + 1);
	struct pslot **owner = NEWN(b->a, struct pslot *, u->n + 1);
	add_to_kept(b, u);
	reshard(b, u);
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

static bool is_gathered(struct build *b, const struct fsdp_unit *u)
{
	return u->n && slot(b, u, 0)->tensor >= 0;
}

/* _root_post_backward_final_callback: the root, units whose input wanted no gradient, gathers that nobody waited for */
void fsdp_backward_end(struct build *b)
{
	reduce_unit(b, root_of(b));
	for (size_t i = 0; i < b->nlayer; i++)
		if (is_gathered(b, &fsdp_of(b)->unit[i]))
			reduce_unit(b, &fsdp_of(b)->unit[i]);
	tape_hold(b->t, b->state[STATE_REDUCED]);
	tape_holdv(b->t, b->state + STATE_PENDING, MAX_PENDING);
	b->state[STATE_REDUCED] = NO_TENSOR;
	tape_holdv(b->t, b->until_backward_end.v, b->until_backward_end.n);
	b->until_backward_end.n = 0;
}
