/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Multi-head latent attention: q, k and v come out of low-rank latents; part
 * of each head is rotated, one rotated key serves all heads.  Source:
 * transformers 5.12.1 modeling_deepseek_v3.py DeepseekV3Attention. */
#include "kernel/rows.h"

/* ---- rotary embedding of pairs of neighbours (apply_rotary_pos_emb_interleave) */

static tensor_id rotate_pairs(struct build *b, const tensor_id *half, tensor_id cos, tensor_id sin)
{
	struct tape *t = b->t;
	tensor_id a = aten_mul(t, half[0], cos);
	tensor_id first = aten_sub(t, a, aten_mul(t, half[1], sin));
	a = aten_mul(t, half[1], cos);
	tensor_id second = aten_add(t, a, aten_mul(t, half[0], sin));
	return aten_cat(t, first, second, 3);
}

/* cos[..., : d / 2].unsqueeze(1): angles have no gradient */
static tensor_id half_angles(struct build *b, tensor_id x)
{
	struct tensor v = *T(b->t, x);
	size_ref half = size_ceil_div(b->a, v.dim[2], size_const(b->a, 2));
	x = aten_slice(b->t, x, 2, half);
	return aten_reshape(b->t, x, 4, SHAPE(v.dim[0], size_const(b->a, 1), v.dim[1], half));
}

static void rope_pairs(struct build *b, tensor_id *q, tensor_id *k)
{
	struct tape *t = b->t;
	tensor_id cos = half_angles(b, b->in.cos[0]), sin = half_angles(b, b->in.sin[0]), hq[2], hk[2];
	for (int i = 0; i < 2; i++)
		hq[i] = aten_slice_step(t, *q, 2);
	for (int i = 0; i < 2; i++)
		hk[i] = aten_slice_step(t, *k, 2);
	*q = rotate_pairs(b, hq, cos, sin);
	*k = rotate_pairs(b, hk, cos, sin);
}

/* ---- rotary embedding by complex products (modeling_deepseek_v2.py apply_rotary_emb), in fp32: a complex number is two
 * numbers here */

/* grad * other.conj(), which is resolved first; saved: angles */
static void back_complex_mul(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id angles = node_saved(t, n, 0), conj = tape_like(t, angles, DT_FP32);
	tape_op1(t, "clone", angles, NO_TENSOR, conj);
	out[0] = tape_like(t, grad[0], DT_FP32);
	tape_op1(t, "mul", grad[0], conj, out[0]);
	tape_hold(t, conj);
}

/* view_as_complex(grad.contiguous()) */
static void back_view_as_real(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	(void)n;
	out[0] = aten_contiguous(t, grad[0]);
}

static tensor_id rotate_complex(struct tape *t, tensor_id x, tensor_id angles)
{
	struct anode *n = node_begin(t, "MulBackward0", back_complex_mul, &x, 1);
	node_save(t, n, angles);
	tensor_id y = tape_like(t, x, DT_FP32);
	tape_op1(t, "mul", x, angles, y);
	node_end(t, n, &y, 1);
	n = node_begin(t, "ViewAsRealBackward0", back_view_as_real, &y, 1);
	tensor_id z = aten_detach(t, y);
	node_end(t, n, &z, 1);
	return z;
}

static void rope_by_complex(struct build *b, tensor_id *q, tensor_id *k)
{
	struct tape *t = b->t;
	tensor_id *x[2] = { q, k }, up[2];
	for (int i = 0; i < 2; i++)
		up[i] = aten_cast(t, *x[i], DT_FP32);
	for (int i = 0; i < 2; i++)
		*x[i] = aten_cast(t, rotate_complex(t, up[i], b->in.cos[0]), (enum dtype)T(t, *x[i])->dtype);
	tape_holdv(t, up, 2);
}

static void rope_latent(struct build *b, tensor_id *q, tensor_id *k)
{
	label(b, "rope");
	if (b->m->family->rope == ROPE_COMPLEX)
		rope_by_complex(b, q, k);
	else if (b->m->rope_interleave)
		rope_pairs(b, q, k);
	else
		rope_torch(b, q, k, b->in.cos[0], b->in.sin[0]);
}

/* ---- projections */

static tensor_id to_heads(struct build *b, tensor_id x, size_ref width)
{
	return aten_transpose(b->t, aten_reshape(b->t, x, 4, SHAPE(b->B, b->S, b->d.H, width)), 1, 2);
}

static tensor_id query(struct layer *l, tensor_id x)
{
	if (l->b->m->q_lora == 0)
		return emit_linear(l, "self_attn.q_proj", x);
	tensor_id latent = emit_linear(l, "self_attn.q_a_proj", x);
	tensor_id normed = emit_layer_norm(l, "self_attn.q_a_layernorm", latent);
	tape_hold(l->b->t, latent);
	return emit_linear(l, "self_attn.q_b_proj", normed);
}

tensor_id emit_latent_attention(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	const struct model_dims *d = &b->d;
	tensor_id q[2], c[2], kv[2];
	tensor_id whole = query(l, x);
	aten_split(t, to_heads(b, whole, size_add(b->a, d->dn, d->dr)), 3, 2, SHAPE(d->dn, d->dr), q);
	tensor_id latent = emit_linear(l, "self_attn.kv_a_proj_with_mqa", x);
	aten_split(t, latent, 2, 2, SHAPE(d->rkv, d->dr), c);
	tensor_id up = emit_linear(l, "self_attn.kv_b_proj", emit_layer_norm(l, "self_attn.kv_a_layernorm", c[0]));
	aten_split(t, to_heads(b, up, size_add(b->a, d->dn, d->dv)), 3, 2, SHAPE(d->dn, d->dv), kv);
	tensor_id k = aten_reshape(t, c[1], 4, SHAPE(b->B, size_const(b->a, 1), b->S, d->dr));
	rope_latent(b, &q[1], &k);
	tensor_id k_all = aten_expand(t, k, 4, SHAPE(b->B, d->H, b->S, d->dr));
	label(b, "query and key of both parts");
	tensor_id query = aten_cat(t, q[0], q[1], 3), key = aten_cat(t, kv[0], k_all, 3);
	struct attention_in in = { query, key, kv[1], b->in.mask[l->sliding], true, b->m->dropout_attn, b->m->attn_softcap };
	tensor_id o = emit_attention(b, &in);
	o = aten_reshape(t, o, 3, SHAPE(b->B, b->S, size_mul(b->a, d->H, d->dv)));
	tensor_id y = emit_linear(l, "self_attn.o_proj", o);
	tape_holdv(t, (tensor_id[]){ whole, latent, up, q[1], k, query, key, o }, 8);
	return y;
}
