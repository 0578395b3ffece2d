/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Positions: rotary embedding as transformers and Liger apply it. */
#include "kernel/rows.h"

/* modeling_llama.py rotate_half: cat((-x2, x1)) of the two halves */
static tensor_id rotate_half(struct build *b, tensor_id x)
{
	struct tape *t = b->t;
	size_ref d = T(t, x)->dim[3], half = size_ceil_div(b->a, d, size_const(b->a, 2));
	tensor_id x1 = aten_slice(t, x, 3, half), x2 = aten_slice(t, x, 3, half);
	tensor_id in[2] = { aten_neg(t, x2), x1 };
	tensor_id y = aten_cat(t, in[0], in[1], 3);
	T(t, y)->dim[3] = d;
	return y;
}

/* (x * cos) + (rotate_half(x) * sin) */
static tensor_id rotate(struct build *b, tensor_id x, tensor_id cos, tensor_id sin)
{
	struct tape *t = b->t;
	tensor_id a = aten_mul(t, x, cos);
	return aten_add(t, a, aten_mul(t, rotate_half(b, x), sin));
}

/* modeling_gpt_neox.py, modeling_phi3.py: only the first part of each head is rotated */
static tensor_id rotate_part(struct build *b, tensor_id x, tensor_id cos, tensor_id sin)
{
	struct tape *t = b->t;
	struct tensor v = *T(t, x);
	if (v.dim[3]->value == b->rotary->value)
		return rotate(b, x, cos, sin);
	size_ref rest = size_sub(b->a, v.dim[3], b->rotary);
	tensor_id rot = aten_slice(t, x, 3, b->rotary), pass = aten_slice(t, x, 3, rest);
	tensor_id y = rotate(b, rot, cos, sin);
	tensor_id z = aten_cat(t, y, pass, 3);
	T(t, z)->dim[3] = v.dim[3];
	tape_hold(t, y);
	return z;
}

void rope_torch(struct build *b, tensor_id *q, tensor_id *k, tensor_id cos, tensor_id sin)
{
	struct tensor c = *T(b->t, cos);
	size_ref dims[4] = { c.dim[0], size_const(b->a, 1), c.dim[1], c.dim[2] };
	cos = aten_reshape(b->t, cos, 4, dims);
	sin = aten_reshape(b->t, sin, 4, dims);
	tensor_id old[2] = { *q, *k };
	*q = rotate_part(b, *q, cos, sin);
	*k = rotate_part(b, *k, cos, sin);
	tape_holdv(b->t, old, 2);
}

/* Liger rope.py: rotates q and k in place; the node remembers cos and sin */
static void back_liger_rope(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id r[2] = { node_saved(t, n, 0), node_saved(t, n, 1) };
	for (int i = 0; i < 2; i++)
		out[i] = aten_contiguous(t, grad[i]);
	tensor_id io[4] = { out[0], out[1], r[0], r[1] };
	tape_op(t, "liger_rope_backward", io, 4, out, 2);
}

void rope_liger(struct build *b, tensor_id *q, tensor_id *k, tensor_id cos, tensor_id sin)
{
	struct tape *t = b->t;
	tensor_id in[2], out[2], old[2] = { *q, *k };
	for (int i = 0; i < 2; i++)       /* q and k arrive as [B,S,H,d] memory, which the kernel works on */
		in[i] = aten_transpose(t, aten_contiguous(t, aten_transpose(t, old[i], 1, 2)), 1, 2);
	struct anode *n = node_begin(t, "LigerRopeFunctionBackward", back_liger_rope, in, 2);
	node_save(t, n, cos);
	node_save(t, n, sin);
	for (int i = 0; i < 2; i++)
		out[i] = aten_detach(t, in[i]);
	tensor_id r[4] = { in[0], in[1], cos, sin };
	tape_op(t, "liger_rope", r, 4, out, 2);
	node_end(t, n, out, 2);
	*q = out[0];
	*k = out[1];
}

void emit_rope(struct build *b, tensor_id *q, tensor_id *k, bool local)
{
	label(b, "rope");
	((rope_fn *)kernel_row(b->spec, K_ROPE)->emit)(b, q, k, b->in.cos[local], b->in.sin[local]);
}

/* modeling_llama.py LlamaRotaryEmbedding.forward: fp32 angles, cos and sin in the dtype of the hidden states */
static void emit_cos_sin(struct build *b, int which, enum dtype dt)
{
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1), half = size_ceil_div(b->a, b->rotary, size_const(b->a, 2));
	struct tensor pos = *T(t, b->in.position_ids);
	size_ref rows = pos.dim[0];
	size_ref emb_dims[3] = { rows, b->S, b->rotary };
	label(b, "rotary embedding");
	tensor_id p = aten_new(t, "_to_copy", DT_FP32, 3, SHAPE(rows, one, b->S), b->in.position_ids, NO_TENSOR);
	tensor_id freqs = aten_new(t, "bmm", DT_FP32, 3, SHAPE(rows, half, b->S), p, NO_TENSOR);
	tensor_id emb = aten_new(t, "cat", DT_FP32, 3, emb_dims, freqs, NO_TENSOR);
	tensor_id c = aten_new(t, "mul", DT_FP32, 3, emb_dims,
			       aten_new(t, "cos", DT_FP32, 3, emb_dims, emb, NO_TENSOR), NO_TENSOR);
	tensor_id s = aten_new(t, "mul", DT_FP32, 3, emb_dims,
			       aten_new(t, "sin", DT_FP32, 3, emb_dims, emb, NO_TENSOR), NO_TENSOR);
	b->in.cos[which] = aten_cast(t, c, dt);
	b->in.sin[which] = aten_cast(t, s, dt);
	tape_holdv(t, (tensor_id[]){ s, c, emb, freqs, p }, 5);
}

void emit_position_ids(struct build *b)
{
	struct tape *t = b->t;
	size_ref dims[2] = { size_const(b->a, 1), b->S };
	label(b, "position ids");
	if (b->batch_positions >= 0) {
		b->in.position_ids = b->batch_positions;
		return;
	}
	tensor_id r = aten_new(t, "arange", DT_INT64, 2, dims, NO_TENSOR, NO_TENSOR);
	b->in.position_ids = aten_new(t, "add", DT_INT64, 2, dims, r, NO_TENSOR);
}

void emit_rotary(struct build *b, tensor_id embedded, unsigned kinds)
{
	for (unsigned i = 0; i < kinds; i++)
		emit_cos_sin(b, (int)i, (enum dtype)T(b->t, embedded)->dtype);
}
