/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Feed-forward blocks and their activations. */
#include "kernel/rows.h"

/* activations.py NewGELUActivation: 0.5 * x * (1 + tanh(c * (x + 0.044715 * pow(x, 3)))) */
static tensor_id gelu_new(struct build *b, tensor_id x)
{
	struct tape *t = b->t;
	tensor_id half = aten_mul_scalar(t, x);
	tensor_id cube = aten_mul_scalar(t, aten_pow(t, x));
	tensor_id in = aten_mul_scalar(t, aten_add(t, x, cube));
	return aten_mul(t, half, aten_add_scalar(t, aten_unary(t, UNARY_TANH, in)));
}

static tensor_id silu(struct build *b, tensor_id x) { return aten_unary(b->t, UNARY_SILU, x); }
static tensor_id gelu(struct build *b, tensor_id x) { return aten_unary(b->t, UNARY_GELU, x); }
static tensor_id relu(struct build *b, tensor_id x) { return aten_unary(b->t, UNARY_RELU, x); }
static tensor_id relu2(struct build *b, tensor_id x) { return aten_pow(b->t, aten_unary(b->t, UNARY_RELU, x)); }

/* activations.py QuickGELUActivation: input * sigmoid(1.702 * input) */
static tensor_id quick_gelu(struct build *b, tensor_id x)
{
	return aten_mul(b->t, x, aten_unary(b->t, UNARY_SIGMOID, aten_mul_scalar(b->t, x)));
}

typedef tensor_id act_fn(struct build *b, tensor_id x);

tensor_id emit_act(struct build *b, tensor_id x)
{
	static act_fn *const acts[] = {
		[ACT_SILU] = silu, [ACT_GELU] = gelu, [ACT_GELU_TANH] = gelu, [ACT_GELU_NEW] = gelu_new,
		[ACT_GELU_BLOOM] = gelu, [ACT_RELU2] = relu2, [ACT_RELU] = relu, [ACT_QUICK_GELU] = quick_gelu,
	};
	return acts[b->m->act](b, x);
}

/* Liger ops/swiglu.py, ops/geglu.py: the backward writes the gradients over the saved gate and up */
struct liger_act { const char *op, *node, *back; };
static const struct liger_act liger_acts[] = {
	{ "liger_silu_mul", "LigerSiLUMulFunctionBackward", "liger_silu_mul_backward" },
	{ "liger_gelu_mul", "LigerGELUMulFunctionBackward", "liger_gelu_mul_backward" },
};

static void back_liger_act_mul(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id r[3] = { grad[0], node_saved(t, n, 0), node_saved(t, n, 1) };
	for (size_t i = 0; i < 2; i++)
		out[i] = aten_detach(t, r[1 + i]);
	tape_op(t, liger_acts[n->iarg[0]].back, r, 3, out, 2);
}

/* ensure_contiguous: halves of one projection are copied, which leaves no node */
static tensor_id rows_of(struct tape *t, tensor_id x)
{
	if (tensor_is_contiguous(t, x))
		return x;
	struct tensor v = *T(t, x);
	tensor_id y = tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim);
	tape_op1(t, "clone", x, NO_TENSOR, y);
	return y;
}

static tensor_id liger_act_mul(struct build *b, tensor_id gate, tensor_id up)
{
	struct tape *t = b->t;
	unsigned act = b->m->act != ACT_SILU;
	tensor_id in[2] = { gate, up }, rows[2] = { rows_of(t, gate), rows_of(t, up) };
	struct anode *n = node_begin(t, liger_acts[act].node, back_liger_act_mul, in, 2);
	if (n)
		n->iarg[0] = act;
	node_save(t, n, rows[0]);
	node_save(t, n, rows[1]);
	tensor_id y = tape_like(t, rows[0], (enum dtype)T(t, gate)->dtype);
	tape_op1(t, liger_acts[act].op, rows[0], rows[1], y);
	node_end(t, n, &y, 1);
	return y;
}

static tensor_id gate_proj(struct layer *l, tensor_id x)
{
	return emit_linear(l, "mlp.gate_proj", x);
}

static tensor_id up_proj(struct layer *l, tensor_id x)
{
	return emit_linear(l, "mlp.up_proj", x);
}

static tensor_id down_proj(struct layer *l, tensor_id x)
{
	return emit_linear(l, "mlp.down_proj", x);
}

/* Phi3MLP: the two halves of one projection */
static tensor_id gate_up_proj(struct layer *l, tensor_id x, tensor_id *half)
{
	struct build *b = l->b;
	tensor_id both = emit_linear(l, "mlp.gate_up_proj", x);
	aten_split(b->t, both, T(b->t, both)->ndim - 1u, 2, SHAPE(b->d.f, b->d.f), half);
	return both;
}

/* LlamaMLP: down(act(gate(x)) * up(x)) */
static tensor_id gated(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	tensor_id gate = gate_proj(l, x);
	label(b, "mlp activation");
	tensor_id act = emit_act(b, gate);
	tensor_id up = up_proj(l, x);
	label(b, "mlp product");
	return down_proj(l, aten_mul(b->t, act, up));
}

/* Phi3MLP: up_states = up_states * act(gate); down(up_states) */
static tensor_id gated_fused(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	tensor_id half[2], both = gate_up_proj(l, x, half);
	label(b, "mlp activation");
	tensor_id act = emit_act(b, half[0]);
	label(b, "mlp product");
	tensor_id y = aten_mul(b->t, half[1], act);
	tensor_id z = down_proj(l, y);
	tape_holdv(b->t, (tensor_id[]){ both, y }, 2);
	return z;
}

tensor_id mlp_torch(struct layer *l, tensor_id x)
{
	return l->b->m->family->mlp == MLP_GATED_FUSED ? gated_fused(l, x) : gated(l, x);
}

/* Liger swiglu.py LigerSwiGLUMLP, LigerPhi3SwiGLUMLP, geglu.py LigerGEGLUMLP; it has no other activations */
tensor_id mlp_liger(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	tensor_id half[2], both = NO_TENSOR;
	if (b->m->act != ACT_SILU && b->m->act != ACT_GELU_TANH)
		return mlp_torch(l, x);
	if (b->m->family->mlp == MLP_GATED_FUSED) {
		both = gate_up_proj(l, x, half);
	} else {
		half[0] = gate_proj(l, x);
		half[1] = up_proj(l, x);
	}
	label(b, "mlp product");
	tensor_id y = down_proj(l, liger_act_mul(b, half[0], half[1]));
	tape_hold(b->t, both);
	return y;
}

tensor_id emit_mlp(struct layer *l, tensor_id x)
{
	if (l->b->m->moe && l->b->m->moe[l->index])
		return emit_moe(l, x);
	const struct kernel_row *row = kernel_row(l->b->spec, K_MLP);
	const char *rule = set_rule(l->b, row->source);
	tensor_id y = ((mlp_fn *)row->emit)(l, x);
	set_rule(l->b, rule);
	return y;
}
