/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Qwen3-VL's vision tower as a model of its own: the patches of all images
 * are rows of one tensor, attention goes image by image, some layers have a
 * merger.  The batch holds what the class lets a collator compute (positions,
 * weights of the position table's rows, where images begin).
 * Source: transformers 5.12.1 models/qwen3_vl/modeling_qwen3_vl.py. */
#include "kernel/rows.h"

static size_ref all_rows(const struct build *b)
{
	return size_mul(b->a, b->B, b->S);
}

/* ---- the batch */

enum { CORNERS = 4 };                  /* of a cell of the position table */

static void batch(struct build *b)
{
	const struct vision *v = &b->m->vision;
	size_ref n = all_rows(b), corners = size_const(b->a, CORNERS), two = size_const(b->a, 2);
	size_ref values = size_const(b->a, v->channels * v->temporal * v->patch * v->patch);
	enum dtype dt = b->spec->prec.params;
	b->pixels = add_input(b, "pixel_values", dt, 2, SHAPE(n, values));
	b->corners = add_input(b, "bilinear_indices", DT_INT64, 2, SHAPE(corners, n));
	b->corner_weights = add_input(b, "bilinear_weights", dt, 2, SHAPE(corners, n));
	b->patch_ids = add_input(b, "position_ids", DT_INT64, 2, SHAPE(n, two));
	b->image_ends = add_input(b, "cu_seqlens", DT_INT32, 1, SHAPE(size_add(b->a, b->B, size_const(b->a, 1))));
}

/* Qwen3VLVisionRotaryEmbedding of half a head */
static size_ref frequencies(const struct build *b)
{
	return size_const(b->a, ceil_div_u64(b->m->head_dim / 2, 2));
}

static void buffers(struct build *b)
{
	size_ref n = frequencies(b);
	b->inv_freq = add_buffer(b, "rotary inv_freq", DT_FP32, 1, &n, 1);
}

/* ---- a layer */

/* (x * cos) + (rotate_half(x) * sin), heads in the second dimension */
static tensor_id rotate(struct build *b, tensor_id x)
{
	struct tape *t = b->t;
	size_ref half = size_const(b->a, b->m->head_dim / 2);
	tensor_id a = aten_mul(t, x, b->in.cos[0]);
	tensor_id x1 = aten_slice(t, x, 2, half), x2 = aten_slice(t, x, 2, half);
	tensor_id turned = aten_cat(t, aten_neg(t, x2), x1, 2);
	return aten_add(t, a, aten_mul(t, turned, b->in.sin[0]));
}

/* apply_rotary_pos_emb_vision: in fp32 */
static void rotate_both(struct build *b, tensor_id *q, tensor_id *k)
{
	struct tape *t = b->t;
	enum dtype dt = (enum dtype)T(t, *q)->dtype;
	label(b, "rotary embedding");
	tensor_id q32 = aten_cast(t, *q, DT_FP32), k32 = aten_cast(t, *k, DT_FP32);
	tensor_id q_turned = rotate(b, q32), k_turned = rotate(b, k32);
	*q = aten_cast(t, q_turned, dt);
	tape_hold(t, q_turned);
	*k = aten_cast(t, k_turned, dt);
	tape_holdv(t, (tensor_id[]){ k_turned, q32, k32 }, 3);
}

/* [rows,H,d] -> [1,H,rows,d], cut into images */
static tensor_id *images(struct build *b, tensor_id x)
{
	size_t n = (size_t)b->B->value;
	size_ref *len = NEWN(b->a, size_ref, n);
	tensor_id *part = NEWN(b->a, tensor_id, n);
	for (size_t i = 0; i < n; i++)
		len[i] = b->S;
	tensor_id heads = aten_transpose(b->t, x, 0, 1);
	heads = aten_reshape(b->t, heads, 4, SHAPE(size_const(b->a, 1), b->d.H, all_rows(b), b->d.d));
	aten_split(b->t, heads, 2, (unsigned)n, len, part);
	return part;
}

static tensor_id each_image(struct build *b, const tensor_id *qkv, tensor_id *out)
{
	size_t n = (size_t)b->B->value;
	const tensor_id *q = images(b, qkv[0]), *k = images(b, qkv[1]), *v = images(b, qkv[2]);
	for (size_t i = 0; i < n; i++) {
		struct attention_in in = { q[i], k[i], v[i], NO_TENSOR, false, 0, 0 };
		out[i] = emit_attention(b, &in);
	}
	label(b, "attention");
	return aten_cat_list(b->t, out, n, 1);
}

/* Qwen3VLVisionAttention.forward */
static tensor_id attention(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	tensor_id part[3], *out = NEWN(b->a, tensor_id, b->B->value);
	tensor_id all = emit_linear(l, "attn.qkv", x);
	tensor_id parts = aten_reshape(t, all, 4, SHAPE(all_rows(b), size_const(b->a, 3), b->d.H, b->d.d));
	aten_unbind(t, aten_transpose(t, parts, 0, 1), part);
	rotate_both(b, &part[0], &part[1]);
	label(b, "lengths of images");
	tensor_id lengths = aten_new(t, "sub", DT_INT32, 1, &b->B, b->image_ends, NO_TENSOR);
	tensor_id joined = each_image(b, part, out);
	tensor_id z = emit_linear(l, "attn.proj", aten_reshape(t, joined, 2, SHAPE(all_rows(b), b->d.h)));
	tape_holdv(t, (tensor_id[]){ joined, all, part[0], part[1], lengths }, 5);
	tape_holdv(t, out, (size_t)b->B->value);
	return z;
}

/* Qwen3VLVisionBlock.forward */
static tensor_id layer(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	tensor_id h = emit_layer_norm(l, "norm1", x);
	tensor_id a = attention(l, h);
	tape_hold(b->t, h);
	label(b, "residual stream");
	tensor_id mid = aten_add(b->t, x, a);
	tape_hold(b->t, a);
	h = emit_layer_norm(l, "norm2", mid);
	tensor_id up = emit_linear(l, "mlp.linear_fc1", h);
	label(b, "mlp activation");
	tensor_id down = emit_linear(l, "mlp.linear_fc2", emit_act(b, up));
	tape_hold(b->t, h);
	label(b, "residual stream");
	tensor_id y = aten_add(b->t, mid, down);
	tape_holdv(b->t, (tensor_id[]){ down, mid }, 2);
	return y;
}

/* ---- Qwen3VLVisionPatchMerger.forward: neighbouring patches become one row */

static tensor_id merged(struct build *b, tensor_id x)
{
	const struct vision *v = &b->m->vision;
	size_ref cell = size_const(b->a, v->merge * v->merge);
	return aten_reshape(b->t, x, 2, SHAPE(size_ceil_div(b->a, all_rows(b), cell), size_mul(b->a, b->d.h, cell)));
}

static tensor_id merge(struct build *b, const char *name, tensor_id x, bool after)
{
	tensor_id h = emit_outer_norm(b, arena_printf(b->a, "%s.norm", name), after ? merged(b, x) : x);
	tensor_id up = emit_outer_linear(b, arena_printf(b->a, "%s.linear_fc1", name), after ? h : merged(b, h));
	tensor_id act = aten_unary(b->t, UNARY_GELU, up);
	tensor_id y = emit_outer_linear(b, arena_printf(b->a, "%s.linear_fc2", name), act);
	tape_hold(b->t, h);
	return y;
}

static void after_layer(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	const uint8_t *deep = b->m->vision.deep;
	unsigned long long before = 0;
	for (uint64_t i = 0; i < l->index; i++)
		before += deep[i];
	if (deep[l->index])
		*VEC_PUSH(b->a, &b->results) = merge(b, arena_printf(b->a, "deepstack_merger_list.%llu", before), x, true);
}

/* ---- Qwen3VLVisionModel.forward */

static tensor_id embed(struct build *b, tensor_id *positions)
{
	const struct vision *v = &b->m->vision;
	struct tape *t = b->t;
	size_ref n = all_rows(b), one = size_const(b->a, 1), p = size_const(b->a, v->patch), corners = size_const(b->a, CORNERS);
	label(b, "patch embeddings");
	tensor_id cubes = aten_reshape(t, b->pixels, 5,
				       SHAPE(n, size_const(b->a, v->channels), size_const(b->a, v->temporal), p, p));
	tensor_id patches = aten_patches(t, cubes, outer_param(b, "patch_embed.proj.weight"),
					 outer_param(b, "patch_embed.proj.bias"), one);
	label(b, "position embeddings");
	tensor_id table = aten_embedding(t, outer_param(b, "pos_embed.weight"), b->corners);
	tensor_id weights = aten_reshape(t, b->corner_weights, 3, SHAPE(corners, n, one));
	*positions = aten_sum_first(t, aten_mul(t, table, weights));
	tensor_id rows = aten_reshape(t, patches, 2, SHAPE(n, b->d.h));
	label(b, "embeddings");
	tensor_id y = aten_add(t, rows, aten_cast(t, *positions, (enum dtype)T(t, rows)->dtype));
	tape_hold(t, patches);
	return y;
}

/* position_ids * inv_freq, twice, and its cosine and sine */
static void angles(struct build *b, tensor_id *held)
{
	struct tape *t = b->t;
	size_ref n = all_rows(b), f = frequencies(b), two = size_const(b->a, 2), d = b->d.d, one = size_const(b->a, 1);
	label(b, "rotary embedding");
	held[0] = aten_new(t, "mul", DT_FP32, 3, SHAPE(n, two, f), b->patch_ids, b->inv_freq);
	held[1] = aten_new(t, "cat", DT_FP32, 2, SHAPE(n, d), held[0], NO_TENSOR);
	b->in.cos[0] = aten_new(t, "cos", DT_FP32, 3, SHAPE(n, one, d), held[1], NO_TENSOR);
	b->in.sin[0] = aten_new(t, "sin", DT_FP32, 3, SHAPE(n, one, d), held[1], NO_TENSOR);
}

static tensor_id model(struct build *b, run_layers_fn *run_layers)
{
	struct tape *t = b->t;
	tensor_id positions, held[2], embedded = embed(b, &positions);
	angles(b, held);
	tensor_id x = run_layers(b, embedded);
	*VEC_PUSH(b->a, &b->results) = merge(b, "merger", x, false);
	tape_holdv(t, (tensor_id[]){ positions, held[0], held[1], b->in.cos[0], b->in.sin[0] }, 5);
	return x;
}

const struct arch arch_qwen3_tower = {
	.model = model, .layer = layer, .buffers = buffers, .batch = batch, .after_layer = after_layer, .loss = emit_square_loss,
};
