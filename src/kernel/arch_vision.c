/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * CLIP's and SigLIP's vision towers as models of their own: patches instead
 * of tokens, layers without a mask, the mean square of the last hidden states
 * as the loss.  The pooled result is made, but no gradient comes back.
 * Source: transformers 5.12.1 models/clip, models/siglip. */
#include "kernel/rows.h"

tensor_id emit_outer_norm(struct build *b, const char *name, tensor_id x)
{
	return emit_norm(b, name, x, outer_param(b, arena_printf(b->a, "%s.weight", name)),
			 outer_param(b, arena_printf(b->a, "%s.bias", name)));
}

tensor_id emit_outer_linear(struct build *b, const char *name, tensor_id x)
{
	label(b, name);
	return aten_linear(b->t, x, outer_param(b, arena_printf(b->a, "%s.weight", name)),
			   outer_param(b, arena_printf(b->a, "%s.bias", name)));
}

/* ---- the batch */

static void image_batch(struct build *b)
{
	const struct vision *v = &b->m->vision;
	size_ref side = size_dim(b->a, "i", v->image, "side of the image");
	b->pixels = add_input(b, "pixel_values", b->spec->prec.params, 4,
			      SHAPE(b->B, size_const(b->a, v->channels), side, side));
}

static void buffers(struct build *b)
{
	b->patch_ids = add_buffer(b, "position_ids", DT_INT64, 2, SHAPE(size_const(b->a, 1), b->S), 1);
}

/* patch_embedding(pixels).flatten(2).transpose(1, 2) */
static tensor_id patch_rows(struct build *b, tensor_id *whole)
{
	struct tape *t = b->t;
	const struct vision *v = &b->m->vision;
	size_ref side = size_const(b->a, v->image / v->patch);
	size_ref rest = size_sub(b->a, b->S, size_const(b->a, side->value * side->value == b->S->value ? 0 : 1));
	label(b, "patch embeddings");
	*whole = aten_patches(t, b->pixels, outer_param(b, "embeddings.patch_embedding.weight"),
			      outer_param(b, "embeddings.patch_embedding.bias"), side);
	tensor_id rows = aten_reshape(t, *whole, 3, SHAPE(b->B, b->d.h, rest));
	return aten_transpose(t, rows, 1, 2);
}

static tensor_id add_positions(struct build *b, tensor_id x)
{
	label(b, "position embeddings");
	tensor_id p = aten_embedding(b->t, outer_param(b, "embeddings.position_embedding.weight"), b->patch_ids);
	label(b, "embeddings");
	return aten_add(b->t, x, p);
}

/* ---- a layer: CLIPEncoderLayer.forward, SiglipEncoderLayer.forward */

static tensor_id to_heads(struct build *b, tensor_id x)
{
	return aten_transpose(b->t, aten_reshape(b->t, x, 4, SHAPE(b->B, b->S, b->d.H, b->d.d)), 1, 2);
}

static tensor_id attention(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	tensor_id q = to_heads(b, emit_linear(l, "self_attn.q_proj", x));
	tensor_id k = to_heads(b, emit_linear(l, "self_attn.k_proj", x));
	tensor_id v = to_heads(b, emit_linear(l, "self_attn.v_proj", x));
	struct attention_in in = { q, k, v, NO_TENSOR, false, b->m->dropout_attn, 0 };
	tensor_id o = aten_reshape(b->t, emit_attention(b, &in), 3, SHAPE(b->B, b->S, b->d.h));
	tensor_id z = emit_linear(l, "self_attn.out_proj", o);
	tape_holdv(b->t, (tensor_id[]){ o, v, k, q }, 4);
	return z;
}

static tensor_id residual_add(struct build *b, tensor_id residual, tensor_id x)
{
	label(b, "residual stream");
	return aten_add(b->t, residual, x);
}

static tensor_id layer(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	tensor_id h = emit_layer_norm(l, "layer_norm1", x);
	tensor_id a = attention(l, h);
	tape_hold(b->t, h);
	tensor_id mid = residual_add(b, x, a);
	tape_hold(b->t, a);
	h = emit_layer_norm(l, "layer_norm2", mid);
	tensor_id up = emit_linear(l, "mlp.fc1", h);
	label(b, "mlp activation");
	tensor_id down = emit_linear(l, "mlp.fc2", emit_act(b, up));
	tape_hold(b->t, h);
	tensor_id y = residual_add(b, mid, down);
	tape_holdv(b->t, (tensor_id[]){ down, mid }, 2);
	return y;
}

/* ---- the loss: (hidden.float() ** 2).mean(); then the model's output goes */

tensor_id emit_square_loss(struct build *b, tensor_id hidden)
{
	struct tape *t = b->t;
	label(b, "loss");
	tensor_id square = aten_pow(t, aten_cast(t, hidden, DT_FP32));
	tensor_id loss = aten_mean(t, square);
	tape_holdv(t, (tensor_id[]){ square, hidden }, 2);
	tape_holdv(t, b->results.v, b->results.n);
	b->results.n = 0;
	tape_drop_unused(t, loss);
	b->logits = NO_TENSOR;
	return loss;
}

/* ---- CLIPVisionModel.forward */

static tensor_id clip_model(struct build *b, run_layers_fn *run_layers)
{
	struct tape *t = b->t;
	tensor_id whole, rows = patch_rows(b, &whole);
	tensor_id class = aten_expand(t, outer_param(b, "embeddings.class_embedding"), 3,
				      SHAPE(b->B, size_const(b->a, 1), b->d.h));
	tensor_id joined = aten_cat(t, class, rows, 1);
	tensor_id embedded = add_positions(b, joined);
	tape_holdv(t, (tensor_id[]){ joined, whole }, 2);
	tensor_id x = emit_outer_norm(b, "pre_layrnorm", embedded);
	tensor_id y = run_layers(b, x);
	*VEC_PUSH(b->a, &b->results) = emit_outer_norm(b, "post_layernorm", aten_select(t, y, 1));
	tape_hold(t, x);
	return y;
}

/* ---- SiglipVisionModel.forward */

/* torch.nn.functional.multi_head_attention_forward: one query for each image; weights are wanted */
static tensor_id probe_attention(struct build *b, tensor_id probe, tensor_id rows)
{
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1), two = size_const(b->a, 2), h = b->d.h, n = size_mul(b->a, b->B, b->d.H);
	size_ref parts[2] = { h, size_mul(b->a, two, h) };
	tensor_id w[2], bias[2];
	aten_split(t, outer_param(b, "head.attention.in_proj_weight"), 0, 2, parts, w);
	aten_split(t, outer_param(b, "head.attention.in_proj_bias"), 0, 2, parts, bias);
	tensor_id q = aten_linear(t, aten_transpose(t, probe, 0, 1), w[0], bias[0]);
	tensor_id both = product_then_bias(t, aten_transpose(t, rows, 0, 1), w[1], bias[1]), kv[2];
	both = aten_reshape(t, both, 4, SHAPE(b->S, b->B, two, h));
	aten_unbind(t, aten_contiguous(t, aten_transpose(t, aten_transpose(t, both, 1, 2), 0, 1)), kv);
	for (int i = 0; i < 2; i++)
		kv[i] = aten_transpose(t, aten_reshape(t, kv[i], 3, SHAPE(b->S, n, b->d.d)), 0, 1);
	tensor_id query = aten_transpose(t, aten_reshape(t, q, 3, SHAPE(one, n, b->d.d)), 0, 1);
	tensor_id scaled = aten_mul_scalar(t, query);
	tensor_id p = aten_softmax(t, aten_bmm(t, scaled, aten_transpose(t, kv[0], 1, 2)), (enum dtype)T(t, scaled)->dtype);
	tensor_id o = aten_reshape(t, aten_transpose(t, aten_bmm(t, p, kv[1]), 0, 1), 2, SHAPE(b->B, h));
	tensor_id y = emit_outer_linear(b, "head.attention.out_proj", o);
	tensor_id mean = aten_new(t, "mean", (enum dtype)T(t, p)->dtype, 3, SHAPE(b->B, one, b->S), p, NO_TENSOR);
	tape_holdv(t, (tensor_id[]){ mean, q }, 2);
	return aten_reshape(t, y, 3, SHAPE(b->B, one, h));
}

/* SiglipMultiheadAttentionPoolingHead.forward */
static tensor_id pooling_head(struct build *b, tensor_id rows)
{
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1);
	label(b, "pooling head");
	tensor_id probe = aten_repeat(t, outer_param(b, "head.probe"), 3, SHAPE(b->B, one, b->d.h));
	tensor_id x = probe_attention(b, probe, rows);
	tensor_id h = emit_outer_norm(b, "head.layernorm", x);
	tensor_id down = emit_outer_linear(b, "head.mlp.fc2", emit_act(b, emit_outer_linear(b, "head.mlp.fc1", h)));
	tape_hold(t, h);
	return aten_add(t, x, down);
}

static tensor_id siglip_model(struct build *b, run_layers_fn *run_layers)
{
	tensor_id whole, rows = patch_rows(b, &whole);
	tensor_id embedded = add_positions(b, rows);
	tape_hold(b->t, whole);
	tensor_id x = run_layers(b, embedded);
	tensor_id y = emit_outer_norm(b, "post_layernorm", x);
	if (b->m->vision.head)
		*VEC_PUSH(b->a, &b->results) = pooling_head(b, y);
	tape_hold(b->t, embedded);
	return y;
}

const struct arch arch_clip = {
	.model = clip_model, .layer = layer, .buffers = buffers, .batch = image_batch, .loss = emit_square_loss,
};
const struct arch arch_siglip = {
	.model = siglip_model, .layer = layer, .buffers = buffers, .batch = image_batch, .loss = emit_square_loss,
};
