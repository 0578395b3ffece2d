/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The training program of one rank: load, first step, steady step.  Every
 * block is traced once; the program tree says how often it runs. */
#include "kernel/step.h"

#include <inttypes.h>
#include <string.h>

#include "kernel/data_parallel.h"
#include "kernel/optimizer.h"

/* ---- blocks and the program */

static void block(struct build *b, const char *name, enum window w, const struct layer *l)
{
	if (l && l->times > 1)
		name = arena_printf(b->a, "layers %" PRIu64 "-%" PRIu64 " %s", l->index,
				    l->index + l->period * (l->times - 1), name);
	else if (l)
		name = arena_printf(b->a, "layer %" PRIu64 " %s", l->index, name);
	uint32_t id = graph_block(b->g, name, w);
	struct block *bl = &b->g->blocks.v[id];
	bl->layer = l ? (int32_t)l->index : -1;
	bl->group = l ? l->group : -1;
	bl->micro = b->micro;
	prog_add(l && l->group >= 0 ? b->body : b->at, prog_call(b->g, id));
}

static struct prog *window(struct build *b, struct prog *parent, enum window w, int32_t micro)
{
	struct prog *p = prog_seq(b->g, 1);
	p->is_window = true;
	p->window = (uint8_t)w;
	p->micro = micro;
	prog_add(parent, p);
	b->at = p;
	return p;
}

/* ---- layer runs: what the first call finds and what each call leaves */

static void run_begin(struct build *b, int32_t group)
{
	b->body = prog_seq(b->g, b->g->groups.v[group].times);
	b->body->group = group;
	prog_add(b->at, b->body);
	for (int i = 0; i < NSTATE; i++)
		b->outer_state[i] = b->state[i];
}

static void run_end(struct build *b, int32_t group)
{
	struct group *gr = &b->g->groups.v[group];
	for (int i = 0; i < NSTATE; i++) {
		if (b->outer_state[i] < 0 || b->state[i] < 0)
			continue;
		int32_t outer = T(b->t, b->outer_state[i])->storage, inner = T(b->t, b->state[i])->storage;
		if (outer != inner)
			*VEC_PUSH(b->a, &gr->carries) =
				(struct carry){ outer, inner, b->g->blocks.v[b->g->blocks.n - 1].window };
	}
}

static bool starts_run(const struct build *b, size_t i)
{
	return b->layers[i].group >= 0 && (i == 0 || b->layers[i - 1].group != b->layers[i].group);
}

static bool ends_run(const struct build *b, size_t i)
{
	return b->layers[i].group >= 0 && (i + 1 == b->nlayer || b->layers[i + 1].group != b->layers[i].group);
}

/* ---- forward */

/* The wrapped layer, as a checkpoint calls it. */
static tensor_id wrapped_layer(void *layer, tensor_id x)
{
	struct layer *l = layer;
	struct build *b = l->b;
	size_t i = (size_t)(l - b->layers);
	tensor_id y = emit_layer(l, b->dp->layer_input(b, i, x));
	b->dp->layer_output(b, i);
	return y;
}

static tensor_id run_layer(struct build *b, struct layer *l, tensor_id x)
{
	if (!recipe_checkpoints(&b->recipe, l->index))
		return wrapped_layer(l, x);
	if (b->recipe.reentrant)
		return tape_checkpoint_reentrant(b->t, wrapped_layer, l, x);
	return tape_checkpoint(b->t, wrapped_layer, l, x, b->recipe.checkpoint == CKPT_FULL);
}

/* Keyword arguments of a layer's call: a checkpoint's closure refers to them.  Reentrant contexts live until the
 * graph goes, those of both kinds of layer. */
static void remember_kwargs(struct build *b, const struct layer *l)
{
	const struct shared_inputs *in = &b->in;
	bool all = b->recipe.reentrant, local = local_angles(b, l->sliding);
	const struct { tensor_id x; bool used; } args[] = {
		{ in->position_ids, true }, { in->alibi, true },
		{ in->cos[0], !local }, { in->sin[0], !local }, { in->cos[1], local }, { in->sin[1], local },
		{ in->mask[0], !l->sliding }, { in->mask[1], l->sliding },
	};
	b->t->nkwarg = 0;
	for (size_t i = 0; i < COUNT(args); i++)
		if (args[i].x >= 0 && (all || args[i].used))
			b->t->kwargs[b->t->nkwarg++] = args[i].x;
}

static tensor_id run_layers(struct build *b, tensor_id x)
{
	b->state[STATE_RETURNED] = NO_TENSOR;
	for (size_t i = 0; i < b->nlayer; i++) {
		struct layer *l = &b->layers[i];
		remember_kwargs(b, l);
		b->state[STATE_STREAM] = x;
		if (starts_run(b, i))
			run_begin(b, l->group);
		block(b, "forward", WIN_FORWARD, l);
		b->t->scope = (int32_t)i;
		b->t->layer = (int32_t)l->index;
		b->layer_in[i] = x;
		b->dp->layer_begin(b, i);
		x = run_layer(b, l, x);
		b->dp->layer_end(b, i);
		tape_holdv(b->t, (tensor_id[]){ b->layer_in[i], b->state[STATE_RETURNED] }, 2);
		b->state[STATE_RETURNED] = arch_of(b->m)->keeps_results ? b->weights : NO_TENSOR;
		b->layer_out[i] = b->state[STATE_STREAM] = x;
		if (arch_of(b->m)->after_layer)
			arch_of(b->m)->after_layer(l, x);
		if (ends_run(b, i))
			run_end(b, l->group);
	}
	b->t->scope = b->t->layer = -1;
	block(b, "head forward", WIN_FORWARD, NULL);
	return b->dp->head_input(b, x);
}

static tensor_id forward(struct build *b)
{
	struct tape *t = b->t;
	block(b, "embedding forward", WIN_FORWARD, NULL);
	memset(&b->in, 0xff, sizeof b->in);    /* all NO_TENSOR */
	b->dp->forward_begin(b);
	tensor_id hidden = emit_model(b, run_layers);
	tensor_id loss = emit_head_loss(b, hidden);
	b->dp->forward_end(b);
	label(b, "loss");
	b->whole_loss = loss;
	if (b->spec->train.grad_accum > 1) {
		loss = aten_div_scalar(t, loss);
		if (!b->spec->train.hold_logits)
			tape_hold(t, b->whole_loss);
	}
	aten_autocast_exit(t);
	return loss;
}

/* ---- backward: the engine tells when it comes to another layer */

static tensor_id stream_grad(struct build *b, tensor_id x)
{
	const struct tensor *v = T(b->t, x);
	return v->node < 0 ? NO_TENSOR : b->t->nodes.v[v->node].buf[v->out];
}

static void scope_leave(void *ctx, int32_t scope)
{
	struct build *b = ctx;
	if (scope < 0)
		return;
	b->state[STATE_STREAM] = stream_grad(b, b->layer_in[scope]);
	if (starts_run(b, (size_t)scope))
		run_end(b, b->layers[scope].group);
}

static void scope_enter(void *ctx, int32_t scope)
{
	struct build *b = ctx;
	b->t->layer = -1;
	if (scope < 0) {
		block(b, "embedding backward", WIN_BACKWARD, NULL);
		return;
	}
	struct layer *l = &b->layers[scope];
	b->t->layer = (int32_t)l->index;
	b->state[STATE_STREAM] = stream_grad(b, b->layer_out[scope]);
	if (ends_run(b, (size_t)scope))
		run_begin(b, l->group);
	block(b, "backward", WIN_BACKWARD, l);
	b->dp->layer_backward(b, (size_t)scope);
}

/* Callbacks that were queued for the end of backward. */
static void backward_finish(void *ctx)
{
	struct build *b = ctx;
	if (b->t->scope >= 0) {
		scope_leave(b, b->t->scope);
		scope_enter(b, -1);
		b->t->scope = -1;
	}
	b->dp->backward_end(b);
}

static void backward(struct build *b, tensor_id loss)
{
	block(b, "head backward", WIN_BACKWARD, NULL);
	label(b, "loss");
	b->t->scope = -1;
	b->dp->backward_begin(b);
	tensor_id scaled = scale_loss(b, loss);
	tape_backward(b->t, scaled);
	if (scaled != loss)
		tape_hold(b->t, scaled);
	if (!b->spec->train.hold_logits) {
		tape_hold(b->t, loss);
		tape_drop_input(b->t);
	}
	b->t->layer = -1;
}

/* ---- one micro-batch, one step */

/* Without sync only the last micro-batch of a step reduces gradients. */
static struct prog *micro_batch(struct build *b, uint64_t micro)
{
	struct prog *seq = prog_seq(b->g, 1);
	b->micro = (int32_t)micro;
	b->reduces = !b->spec->par.no_sync || micro + 1 == b->spec->train.grad_accum;
	tape_reset(b->t);
	window(b, seq, WIN_FORWARD, b->micro);
	tensor_id loss = forward(b);
	window(b, seq, WIN_BACKWARD, b->micro);
	backward(b, loss);
	if (b->spec->train.hold_logits) {
		b->at = seq;
		block(b, "drop outputs", WIN_BACKWARD, NULL);
		tape_holdv(b->t, (tensor_id[]){ b->logits, b->whole_loss, loss }, 3);
		tape_drop_input(b->t);
	}
	b->micro = -1;
	return seq;
}

typedef void part_fn(struct build *b);

static struct prog *part(struct build *b, const char *name, enum window w, part_fn *fn)
{
	struct prog *seq = prog_seq(b->g, 1);
	window(b, seq, w, -1);
	block(b, name, w, NULL);
	label(b, name);
	fn(b);
	return seq;
}

static void first_step(struct build *b) { trace_optimizer(b, true); }
static void steady_step(struct build *b) { trace_optimizer(b, false); }

static struct prog *step(struct build *b, struct prog *const *parts, size_t n, int32_t number)
{
	struct prog *seq = prog_seq(b->g, 1);
	seq->step = number;
	for (size_t i = 0; i < n; i++)
		if (parts[i]) {
			struct prog *p = NEW(b->a, struct prog);
			*p = *parts[i];
			p->next = NULL;
			prog_add(seq, p);
		}
	return seq;
}

static struct prog *times(struct build *b, const struct prog *p, uint64_t n)
{
	if (!p || n == 0)
		return NULL;
	struct prog *q = NEW(b->a, struct prog);
	*q = *p;
	q->times = n;
	return q;
}

/* What the program never frees. */
static bool is_persistent(const struct build *b, enum tensor_class c)
{
	return c == CLASS_PARAMETER || c == CLASS_MASTER || c == CLASS_BUFFER || c == CLASS_INPUT ||
		c == CLASS_OPTIMIZER || (c == CLASS_GRADIENT && !b->spec->train.zero_grad_to_none);
}

static void hold_to_end(struct build *b)
{
	VEC(tensor_id) all = { 0 };
	for (size_t i = 0; i < b->g->tensors.n; i++)
		if (is_persistent(b, b->g->storages.v[b->g->tensors.v[i].storage].cls))
			*VEC_PUSH(b->a, &all) = (tensor_id)i;
	graph_block(b->g, "end", WIN_LOAD);
	graph_hold(b->g, all.v, all.n);
	graph_hold(b->g, b->to_end.v, b->to_end.n);
}

/* The micro-batches of a step: the first, those like the second, and, where only the last reduces, the last. */
enum { FIRST, MORE, LAST, MICROS };
static void trace_micros(struct build *b, struct prog **micro)
{
	uint64_t m = b->spec->train.grad_accum, last = b->spec->par.no_sync && m > 1;
	micro[FIRST] = micro_batch(b, 0);
	micro[MORE] = m > 1 + last ? times(b, micro_batch(b, 1), m - 1 - last) : NULL;
	micro[LAST] = last ? micro_batch(b, m - 1) : NULL;
}

static void trace_steps(struct build *b)
{
	bool keeps_grads = !b->spec->train.zero_grad_to_none;
	struct prog *one[MICROS], *two[MICROS];
	trace_micros(b, one);
	memcpy(two, one, sizeof two);
	if (keeps_grads)               /* from the second step on gradients are there */
		trace_micros(b, two);
	struct prog *clip = b->spec->train.clip_grad_norm > 0 ? part(b, "clip", WIN_CLIP, trace_clip) : NULL;
	struct prog *first = part(b, "optimizer first step", WIN_OPTIMIZER, first_step);
	struct prog *steady = part(b, "optimizer step", WIN_OPTIMIZER, steady_step);
	struct prog *zero = part(b, "zero_grad", WIN_ZERO_GRAD, trace_zero_grad);
	b->g->first = step(b, (struct prog *[]){ one[FIRST], one[MORE], one[LAST], clip, first, zero }, 6, 1);
	b->g->steady = step(b, (struct prog *[]){ two[FIRST], two[MORE], two[LAST], clip, steady, zero }, 6, 2);
}

/* Storages of the forward pass that outlive it are what autograd saved. */
void trace_finish(struct graph *g)
{
	graph_lives(g);
	for (size_t i = 0; i < g->storages.n; i++) {
		struct storage *s = &g->storages.v[i];
		if (s->birth < 0 || s->cls != CLASS_TEMPORARY)
			continue;
		if (g->blocks.v[g->ops.v[s->birth].block].window == WIN_FORWARD &&
		    g->blocks.v[g->ops.v[s->death].block].window != WIN_FORWARD)
			s->cls = CLASS_SAVED;
	}
}

static struct build *build_new(struct arena *a, const struct spec *s, const struct recipe *r)
{
	struct build *b = NEW(a, struct build);
	struct graph *g = graph_new(a);
	*b = (struct build){ .spec = s, .m = &s->model, .a = a, .g = g, .t = tape_new(g, a), .recipe = *r, .micro = -1 };
	b->d = model_dims(a, b->m);
	b->B = size_dim(a, "b", s->train.micro_batch, "micro-batch size");
	b->S = size_dim(a, "s", s->train.seq_len, "sequence length");
	b->rotary = rotary_width(b);
	b->unroll = r->unroll;
	for (int i = 0; i < NSTATE; i++)
		b->state[i] = b->outer_state[i] = NO_TENSOR;
	b->t->vocab = b->d.V;
	b->t->rule = arena_printf(a, "transformers 5.12.1 %s", b->m->family->source);
	b->t->autocast = s->prec.autocast;
	b->t->low = s->prec.compute;
	b->t->sac = b->recipe.sac.ops ? &b->recipe.sac : NULL;
	b->dp = data_parallel_of(s);
	b->t->hooks = (struct tape_hooks){ .ctx = b, .scope_enter = scope_enter, .scope_leave = scope_leave,
		.grad_ready = b->dp->grad_ready, .finish = backward_finish };
	return b;
}

struct graph *trace_program(struct arena *a, const struct spec *s, const struct recipe *r)
{
	struct build *b = build_new(a, s, r);
	layout_layers(b);
	b->layer_in = NEWN(a, tensor_id, b->nlayer + 1);
	b->layer_out = NEWN(a, tensor_id, b->nlayer + 1);
	b->g->load = prog_seq(b->g, 1);
	window(b, b->g->load, WIN_LOAD, -1);
	block(b, "load", WIN_LOAD, NULL);
	trace_load(b);
	trace_steps(b);
	hold_to_end(b);
	trace_finish(b->g);
	return b->g;
}
