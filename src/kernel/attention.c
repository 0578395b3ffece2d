/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Attention back ends as transformers 5.12 drives them (sdpa_attention.py,
 * eager_attention_forward). */
#include "kernel/rows.h"

/* repeat_kv: [B,K,S,d] -> [B,H,S,d]; the reshape of an expanded tensor copies */
static tensor_id repeat_kv(struct build *b, tensor_id x, size_ref heads)
{
	struct tape *t = b->t;
	struct tensor v = *T(t, x);
	if (v.dim[1]->value == heads->value)
		return x;
	size_ref rep = size_ceil_div(b->a, heads, v.dim[1]), one = size_const(b->a, 1);
	tensor_id y = aten_reshape(t, x, 5, SHAPE(v.dim[0], v.dim[1], one, v.dim[2], v.dim[3]));
	y = aten_expand(t, y, 5, SHAPE(v.dim[0], v.dim[1], rep, v.dim[2], v.dim[3]));
	return aten_reshape(t, y, 4, SHAPE(v.dim[0], heads, v.dim[2], v.dim[3]));
}

/* attn_output.transpose(1, 2).contiguous() */
static tensor_id rows_first(struct build *b, tensor_id x)
{
	return aten_contiguous(b->t, aten_transpose(b->t, x, 1, 2));
}

tensor_id attention_flash(struct build *b, const struct attention_in *x)
{
	return rows_first(b, aten_sdpa_flash(b->t, x->q, x->k, x->v));
}

tensor_id attention_eager(struct build *b, const struct attention_in *x)
{
	struct tape *t = b->t;
	size_ref heads = T(t, x->q)->dim[1];
	tensor_id k = repeat_kv(b, x->k, heads), v = repeat_kv(b, x->v, heads);
	tensor_id w = aten_mul_scalar(t, aten_matmul(t, x->q, aten_transpose(t, k, 2, 3)));
	if (x->mask >= 0)
		w = aten_add(t, w, x->mask);
	w = aten_cast(t, aten_softmax(t, w, DT_FP32), (enum dtype)T(t, x->q)->dtype);
	w = aten_dropout(t, w, x->dropout);
	tensor_id y = rows_first(b, aten_matmul(t, w, v));
	tape_holdv(t, (tensor_id[]){ k, v, w }, 3);
	return y;
}

tensor_id emit_attention(struct build *b, const struct attention_in *x)
{
	label(b, "attention");
	return ((attention_fn *)kernel_row(b->spec, K_ATTENTION)->emit)(b, x);
}

static tensor_id proj(struct layer *l, const char *name, const char *weight, const char *bias, tensor_id x)
{
	label(l->b, name);
	return aten_linear(l->b->t, x, layer_param(l, weight), layer_param(l, bias));
}

/* [B,S,n·d] -> [B,n,S,d], with an optional norm over each head */
static tensor_id to_heads(struct layer *l, tensor_id x, size_ref n, const char *norm)
{
	struct build *b = l->b;
	tensor_id y = aten_reshape(b->t, x, 4, SHAPE(b->B, b->S, n, b->d.d));
	if (b->m->qk_norm == QKNORM_HEAD && norm)
		y = emit_norm(b, norm, y, layer_param(l, arena_printf(b->a, "%s.weight", norm)), NO_TENSOR);
	return aten_transpose(b->t, y, 1, 2);
}

/* LlamaAttention.forward */
tensor_id emit_attention_block(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	tensor_id q = to_heads(l, proj(l, "self_attn.q_proj", "self_attn.q_proj.weight", "self_attn.q_proj.bias", x),
			       b->d.H, "self_attn.q_norm");
	tensor_id k = to_heads(l, proj(l, "self_attn.k_proj", "self_attn.k_proj.weight", "self_attn.k_proj.bias", x),
			       b->d.K, "self_attn.k_norm");
	tensor_id v = to_heads(l, proj(l, "self_attn.v_proj", "self_attn.v_proj.weight", "self_attn.v_proj.bias", x),
			       b->d.K, NULL);
	emit_rope(b, &q, &k, l->sliding);
	struct attention_in in = { q, k, v, b->in.mask[l->sliding], true, b->m->dropout_attn, b->m->attn_softcap };
	tensor_id y = emit_attention(b, &in);
	y = aten_reshape(b->t, y, 3, SHAPE(b->B, b->S, b->d.q));
	tensor_id z = proj(l, "self_attn.o_proj", "self_attn.o_proj.weight", "self_attn.o_proj.bias", y);
	tape_holdv(b->t, (tensor_id[]){ y, v, k, q }, 4);
	return z;
}
