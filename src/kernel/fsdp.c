/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * FSDP2 and HSDP: fully_shard on each decoder layer, maybe on the embedding
 * and on final norm and head, and then on the root, which holds the rest.  A
 * unit's parameters are gathered before its forward and again before its
 * backward; its gradients are reduced when the gradient of its input is there.
 * Source: torch 2.14.1 distributed/fsdp/_fully_shard/_fsdp_state.py,
 * _fsdp_param_group.py. */
#include "kernel/fsdp.h"

#include "kernel/step.h"

#include <string.h>

bool fsdp_applies(const struct spec *s)
{
	return s->par.zero == 3;
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

static struct fsdp_unit unit_new(struct build *b, size_t n, bool reshards)
{
	return (struct fsdp_unit){ .param = NEWN(b->a, size_t, n + 1), .shard = size_const(b->a, 0),
		.reshards = reshards };
}

static void unit_add(struct build *b, struct fsdp_unit *u, int32_t id, size_t i)
{
	struct pslot *p = &b->t->params.v[i];
	if (p->local == p->tensor)     /* a buffer */
		return;
	p->unit = id;
	u->param[u->n++] = i;
	u->shard = size_add(b->a, u->shard, tensor_numel(b->t, p->local));
}

static void load_layers(struct build *b, struct fsdp *f)
{
	f->layer = NEWN(b->a, struct fsdp_unit, b->nlayer);
	for (size_t i = 0; i < b->nlayer; i++) {
		const struct layer *l = &b->layers[i];
		f->layer[i] = unit_new(b, l->nparam, b->spec->par.reshard_after_forward != RESHARD_NEVER);
		for (size_t k = l->first_param; k < l->first_param + l->nparam; k++)
			unit_add(b, &f->layer[i], (int32_t)i, k);
	}
}

/* Tied weights put embedding, final norm and head into one group (torchtitan b5bcd76 distributed/fsdp.py). */
static struct fsdp_unit *outer_unit(struct build *b, struct fsdp *f, size_t param, bool before)
{
	if (b->spec->par.units == UNITS_LAYERS)
		return &f->root;
	if (!before)
		return &f->head;
	if (strcmp(b->t->params.v[param].name, arch_of(b->m)->embedding))
		return &f->root;
	return b->m->tied ? &f->head : &f->embedding;
}

static void load_outer(struct build *b, struct fsdp *f)
{
	enum reshard reshard = b->spec->par.reshard_after_forward;
	size_t n = b->outer[0].n + b->outer[1].n;
	f->root = unit_new(b, n, false);
	f->embedding = unit_new(b, n, reshard != RESHARD_NEVER);
	f->head = unit_new(b, n, reshard == RESHARD_ALWAYS);
	f->head.early = b->m->tied;
	for (int k = 0; k < 2; k++)
		for (size_t i = b->outer[k].first; i < b->outer[k].first + b->outer[k].n; i++)
			unit_add(b, outer_unit(b, f, i, k == 0), (int32_t)b->nlayer, i);
}

void fsdp_load(struct build *b)
{
	struct fsdp *f = NEW(b->a, struct fsdp);
	const struct precision *prec = &b->spec->prec;
	*f = (struct fsdp){ .W = shard_ranks(b), .param = prec->compute, .reduce = prec->reduce };
	if (prec->autocast)            /* no MixedPrecisionPolicy then */
		f->param = f->reduce = prec->params;
	b->dp_state = f;
	load_layers(b, f);
	load_outer(b, f);
}

/* ---- places in the order of forward: embedding, layers, head; the root comes after them */

static uint64_t head_place(const struct build *b) { return b->m->layers + 1; }
static uint64_t root_place(const struct build *b) { return b->m->layers + 2; }
static uint64_t layer_place(const struct build *b, size_t layer) { return b->layers[layer].index + 1; }

static struct fsdp_unit *unit_at(struct build *b, uint64_t place)
{
	struct fsdp *f = fsdp_of(b);
	if (place == 0)
		return &f->embedding;
	return place == head_place(b) ? &f->head : &f->layer[layer_instance(b, place - 1)];
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

/* Units that stay gathered from forward on need none in backward, a group that began with the embedding none at its end. */
static void prefetch(struct build *b, uint64_t depth, uint64_t place, bool forward)
{
	tensor_id *next = b->state + STATE_PENDING, *end = next + (depth < MAX_PENDING ? depth : MAX_PENDING);
	while (next < end && (forward ? place < head_place(b) : place > 0)) {
		place = forward ? place + 1 : place - 1;
		const struct fsdp_unit *u = unit_at(b, place);
		if (u->n == 0)
			continue;
		if (*next < 0 && (forward ? !u->early : u->reshards))
			*next = fsdp_all_gather(b, u);
		next++;
	}
}

static tensor_id take_gathered(struct build *b, const struct fsdp_unit *u)
{
	tensor_id next = take_pending(b);
	return next < 0 ? fsdp_all_gather(b, u) : next;
}

/* ---- forward */

static void drop_states(struct build *b)
{
	for (int i = STATE_GATHERED; i < NSTATE; i++)
		b->state[i] = NO_TENSOR;
}

/* The previous unit's output is kept until this one is copied out, so that the copy overlaps the next gather. */
static void gather_for_forward(struct build *b, struct fsdp_unit *u, uint64_t place)
{
	if (u->n == 0)
		return;
	tensor_id next = take_gathered(b, u);
	fsdp_copy_out(b, u, next);
	tape_hold(b->t, b->state[STATE_GATHERED]);
	b->state[STATE_GATHERED] = next;
	prefetch(b, b->spec->par.forward_prefetch, place, true);
}

static void unit_forward_end(struct build *b, struct fsdp_unit *u)
{
	if (u->reshards)
		fsdp_reshard(b, u);
}

/* RegisterPostBackwardFunction: the gradient of the unit's input is there. */
static void back_unit_input(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct build *b = t->hooks.ctx;
	out[0] = grad[0];
	fsdp_reduce(b, n->iarg[0] < b->nlayer ? &fsdp_of(b)->layer[n->iarg[0]] : &fsdp_of(b)->head);
}

static tensor_id alias(struct build *b, tensor_id x)
{
	struct tensor *y = VEC_PUSH(b->a, &b->g->tensors);
	*y = *T(b->t, x);
	y->node = -1;
	y->needs_grad = false;
	return (tensor_id)b->g->tensors.n - 1;
}

static tensor_id unit_input(struct build *b, size_t unit, tensor_id x)
{
	tensor_id y = alias(b, x);
	struct anode *n = node_begin(b->t, "RegisterPostBackwardFunction", back_unit_input, &x, 1);
	if (n)
		n->iarg[0] = unit;
	node_end(b->t, n, &y, 1);
	return y;
}

/* The embedding is the first module that runs. */
void fsdp_forward_begin(struct build *b)
{
	struct fsdp *f = fsdp_of(b);
	drop_states(b);
	f->head_done = false;
	gather_for_forward(b, &f->root, root_place(b));
	gather_for_forward(b, f->head.early ? &f->head : &f->embedding, 0);
}

void fsdp_layer_begin(struct build *b, size_t layer)
{
	gather_for_forward(b, &fsdp_of(b)->layer[layer], layer_place(b, layer));
}

tensor_id fsdp_layer_input(struct build *b, size_t layer, tensor_id x)
{
	return unit_input(b, layer, x);
}

void fsdp_layer_end(struct build *b, size_t layer)
{
	unit_forward_end(b, &fsdp_of(b)->layer[layer]);
}

/* A group registers its first module's input only: here the token numbers, which have no gradient. */
tensor_id fsdp_head_input(struct build *b, tensor_id x)
{
	struct fsdp *f = fsdp_of(b);
	if (f->head.n == 0 || f->head.early)
		return x;
	gather_for_forward(b, &f->head, head_place(b));
	return unit_input(b, b->nlayer, x);
}

/* A group whose last module was not called ends with the root (_force_complete_incomplete_states). */
void fsdp_forward_end(struct build *b)
{
	if (!fsdp_of(b)->head_done)
		unit_forward_end(b, &fsdp_of(b)->head);
	tape_hold(b->t, b->state[STATE_GATHERED]);
	b->state[STATE_GATHERED] = NO_TENSOR;
}

/* ---- backward: the output of a gather is freed when it is copied out, then the next unit is gathered */

static void prefetch_backward(struct build *b, uint64_t place)
{
	uint64_t depth = b->spec->par.backward_prefetch;
	prefetch(b, depth > 1 && place < root_place(b) ? depth : 1, place, false);
}

/* _pre_backward: a hook on the output of the unit */
static void unit_backward(struct build *b, struct fsdp_unit *u, uint64_t place)
{
	if (u->n && u->reshards) {
		tensor_id next = take_gathered(b, u);
		fsdp_copy_out(b, u, next);
		tape_hold(b->t, next);
	}
	if (u->n)
		prefetch_backward(b, place);
}

static void embedding_backward(void *build)
{
	struct build *b = build;
	unit_backward(b, &fsdp_of(b)->embedding, 0);
}

static void head_backward(void *build)
{
	struct build *b = build;
	unit_backward(b, &fsdp_of(b)->head, head_place(b));
}

void fsdp_embedding_output(struct build *b, tensor_id x)
{
	unit_forward_end(b, &fsdp_of(b)->embedding);
	tape_on_grad(b->t, x, embedding_backward);
}

void fsdp_head_output(struct build *b, tensor_id x)
{
	struct fsdp *f = fsdp_of(b);
	unit_forward_end(b, &f->head);
	f->head_done = true;
	tape_on_grad(b->t, x, head_backward);
}

void fsdp_backward_begin(struct build *b)
{
	struct fsdp *f = fsdp_of(b);
	drop_states(b);
	unit_backward(b, &f->root, root_place(b));
	if (!f->head_done)
		head_backward(b);
}

/* A reentrant checkpoint runs the layer's forward again with its hooks: the gathered buffer is kept to its end, and
 * the next unit is gathered when the backward inside begins. */
static bool is_reentrant(struct build *b, size_t layer)
{
	return b->recipe.reentrant && recipe_checkpoints(&b->recipe, b->layers[layer].index);
}

void fsdp_layer_backward(struct build *b, size_t layer)
{
	struct fsdp_unit *u = &fsdp_of(b)->layer[layer];
	if (!is_reentrant(b, layer)) {
		unit_backward(b, u, layer_place(b, layer));
	} else if (u->reshards) {
		b->state[STATE_GATHERED] = take_gathered(b, u);
		fsdp_copy_out(b, u, b->state[STATE_GATHERED]);
	}
}

void fsdp_layer_output(struct build *b, size_t layer)
{
	if (!b->t->in_backward || !is_reentrant(b, layer))
		return;
	tape_hold(b->t, b->state[STATE_GATHERED]);
	b->state[STATE_GATHERED] = NO_TENSOR;
	prefetch_backward(b, layer_place(b, layer));
}

static void reduce_late(struct build *b, struct fsdp_unit *u)
{
	if (fsdp_is_gathered(b, u))
		fsdp_reduce(b, u);
}

/* _root_post_backward_final_callback: units whose input wanted no gradient, in the order of modules, and gathers that
 * nobody waited for */
void fsdp_backward_end(struct build *b)
{
	struct fsdp *f = fsdp_of(b);
	reduce_late(b, &f->root);
	reduce_late(b, f->head.early ? &f->head : &f->embedding);
	for (size_t i = 0; i < b->nlayer; i++)
		reduce_late(b, &f->layer[i]);
	reduce_late(b, &f->head);
	tape_hold(b->t, b->state[STATE_REDUCED]);
	tape_holdv(b->t, b->state + STATE_PENDING, MAX_PENDING);
	b->state[STATE_REDUCED] = NO_TENSOR;
	tape_holdv(b->t, b->until_backward_end.v, b->until_backward_end.n);
	b->until_backward_end.n = 0;
}
