/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Mixture of experts: the router and the block around the experts. */
#include "kernel/rows.h"

static tensor_id weight_of(struct layer *l, const char *name)
{
	return layer_param(l, arena_printf(l->b->a, "%s.weight", name));
}

/* ---- routers: logits, and for each token k experts with their weights */

/* MixtralTopKRouter, Qwen3MoeTopKRouter.forward: softmax in fp32, the k largest, their sum made 1; the weights go back
 * to the type of the logits, Mixtral's do not */
static void route_softmax(struct layer *l, tensor_id x, struct routing *r)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	struct tensor v = *T(t, x);
	label(b, "router logits");
	r->logits = aten_linear(t, aten_reshape(t, x, 2, v.dim), weight_of(l, "mlp.gate"), NO_TENSOR);
	enum dtype dt = (enum dtype)T(t, r->logits)->dtype;
	bool fp32 = b->m->family->gate == GATE_SOFTMAX_FP32;
	label(b, "router probabilities");
	tensor_id p = aten_softmax(t, fp32 ? aten_cast(t, r->logits, DT_FP32) : r->logits, DT_FP32);
	label(b, "routing weights");
	r->weights = aten_topk(t, p, b->d.k, &r->index);
	if (b->m->norm_topk)
		r->weights = aten_div_(t, r->weights, aten_sum(t, r->weights, 1, true));
	if (!fp32)
		r->weights = aten_cast(t, r->weights, dt);
	tape_hold(t, p);
}

/* hidden_states.type(float32) times gate.weight.type(float32) */
static tensor_id fp32_logits(struct layer *l, tensor_id x)
{
	struct tape *t = l->b->t;
	label(l->b, "router logits");
	x = aten_cast(t, aten_flatten(t, x), DT_FP32);
	int32_t cls = t->cls;
	t->cls = CLASS_WEIGHT_CAST;
	tensor_id w = aten_cast(t, weight_of(l, "mlp.gate"), DT_FP32);
	t->cls = cls;
	return aten_linear(t, x, w, NO_TENSOR);
}

/* DeepseekV2Moe.route_tokens_to_experts, greedy */
static void route_scaled(struct layer *l, tensor_id x, struct routing *r)
{
	struct tape *t = l->b->t;
	r->logits = fp32_logits(l, x);
	label(l->b, "router probabilities");
	tensor_id p = aten_softmax(t, r->logits, DT_FP32);
	label(l->b, "routing weights");
	tensor_id w = aten_topk(t, p, l->b->d.k, &r->index);
	r->weights = aten_mul_scalar(t, w);
	tape_holdv(t, (tensor_id[]){ w, p }, 2);
}

/* Of each group of experts the best two count; the best groups' experts can be chosen.  `kept`: what Python still
 * refers to at the end of route_tokens_to_experts, and what autograd saved in graphs that these tensors hold. */
struct chosen { tensor_id index, kept[8]; };

static struct chosen choose_experts(struct layer *l, tensor_id scores)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	size_ref N = T(t, scores)->dim[0], G = size_const(b->a, b->m->expert_groups), one = size_const(b->a, 1);
	size_ref dims[2] = { N, b->d.E }, groups[3] = { N, G, size_ceil_div(b->a, b->d.E, G) };
	tensor_id best2, group, index;
	label(b, "router choice");
	tensor_id choice = aten_add(t, aten_detach(t, scores), layer_param(l, "mlp.gate.e_score_correction_bias"));
	tensor_id best = aten_topk(t, aten_reshape(t, choice, 3, groups), size_const(b->a, 2), &best2);
	tensor_id of_group = aten_sum(t, best, 2, false);
	aten_topk(t, of_group, size_const(b->a, b->m->topk_groups), &group);
	tensor_id mask = aten_new(t, "zeros_like", DT_FP32, 2, groups, NO_TENSOR, NO_TENSOR);
	tape_op1(t, "scatter_", group, NO_TENSOR, mask);
	tensor_id wide = aten_expand(t, aten_reshape(t, mask, 3, SHAPE(N, G, one)), 3, groups);
	wide = aten_reshape(t, wide, 2, dims);
	tensor_id allowed = aten_new(t, "_to_copy", DT_BOOL, 2, dims, wide, NO_TENSOR);
	tensor_id barred = aten_new(t, "bitwise_not", DT_BOOL, 2, dims, allowed, NO_TENSOR);
	tensor_id left = aten_new(t, "masked_fill", DT_FP32, 2, dims, choice, barred);
	aten_topk(t, left, b->d.k, &index);
	bool graph = t->mode != TAPE_NOGRAD;
	return (struct chosen){ index, { choice, of_group, group, mask, wide, left, graph ? best2 : NO_TENSOR,
		graph ? barred : NO_TENSOR } };
}

/* DeepseekV3MoE.route_tokens_to_experts */
static void route_sigmoid(struct layer *l, tensor_id x, struct routing *r)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	r->logits = fp32_logits(l, x);
	label(b, "router probabilities");
	tensor_id scores = aten_unary(t, UNARY_SIGMOID, r->logits), sum = NO_TENSOR;
	struct chosen c = choose_experts(l, scores);
	label(b, "routing weights");
	tensor_id w = aten_gather(t, scores, c.index);
	if (b->m->norm_topk) {
		sum = aten_add_scalar(t, aten_sum(t, w, 1, true));
		w = aten_div_(t, w, sum);
	}
	r->weights = aten_mul_scalar(t, w);
	r->index = c.index;
	tape_holdv(t, c.kept, COUNT(c.kept));
	tape_holdv(t, (tensor_id[]){ scores, sum }, 2);
}

static struct routing emit_router(struct layer *l, tensor_id x)
{
	static void (*const routers[])(struct layer *, tensor_id, struct routing *) = {
		[GATE_SOFTMAX] = route_softmax, [GATE_SOFTMAX_FP32] = route_softmax, [GATE_SOFTMAX_SCALED] = route_scaled,
		[GATE_SIGMOID] = route_sigmoid,
	};
	struct routing r = { NO_TENSOR, NO_TENSOR, NO_TENSOR };
	routers[l->b->m->family->gate](l, x, &r);
	return r;
}

/* ---- blocks */

static tensor_id emit_experts(struct layer *l, tensor_id x, const struct routing *r)
{
	const struct kernel_row *row = kernel_row(l->b->spec, K_EXPERTS);
	const char *rule = set_rule(l->b, row->source);
	tensor_id y = ((experts_fn *)row->emit)(l, x, r);
	set_rule(l->b, rule);
	return y;
}

/* DeepseekV3MLP, Qwen2MoeMLP */
static tensor_id shared_experts(struct layer *l, const char *name, tensor_id x)
{
	struct build *b = l->b;
	tensor_id gate = emit_linear(l, arena_printf(b->a, "%s.gate_proj", name), x);
	label(b, "shared expert activation");
	tensor_id act = emit_act(b, gate);
	tensor_id up = emit_linear(l, arena_printf(b->a, "%s.up_proj", name), x);
	label(b, "shared expert product");
	return emit_linear(l, arena_printf(b->a, "%s.down_proj", name), aten_mul(b->t, act, up));
}

static tensor_id add_shared(struct build *b, tensor_id x, tensor_id shared)
{
	label(b, "expert output");
	tensor_id y = aten_add(b->t, x, shared);
	tape_holdv(b->t, (tensor_id[]){ shared, x }, 2);
	return y;
}

/* Qwen2MoeSparseMoeBlock.forward: sigmoid(shared_expert_gate(x)) * shared_expert(x) */
static tensor_id block_shared_gate(struct layer *l, tensor_id x, struct routing *r)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	tensor_id shared = shared_experts(l, "mlp.shared_expert", x);
	*r = emit_router(l, x);
	tensor_id y = emit_experts(l, x, r);
	tensor_id gate = aten_unary(t, UNARY_SIGMOID, emit_linear(l, "mlp.shared_expert_gate", x));
	tensor_id gated = aten_mul(t, gate, shared);
	tape_hold(t, shared);
	return add_shared(b, y, gated);
}

/* MixtralSparseMoeBlock, Qwen3MoeSparseMoeBlock, DeepseekV3MoE.forward */
tensor_id emit_moe(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	struct tensor v = *T(t, x);
	struct routing r;
	tensor_id y;
	if (b->m->shared_gate) {
		y = aten_reshape(t, block_shared_gate(l, aten_flatten(t, x), &r), 3, v.dim);
	} else if (b->m->shared_ffn > 0) {
		r = emit_router(l, x);
		y = aten_reshape(t, emit_experts(l, aten_flatten(t, x), &r), 3, v.dim);
		y = add_shared(b, y, shared_experts(l, "mlp.shared_experts", x));
	} else {
		tensor_id rows = aten_flatten(t, x);
		r = emit_router(l, rows);
		y = aten_reshape(t, emit_experts(l, rows, &r), 3, v.dim);
	}
	tape_holdv(t, (tensor_id[]){ r.logits, r.weights, r.index }, 3);
	return y;
}
