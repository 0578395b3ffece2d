/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Falcon: attention and MLP side by side, one key and value head or groups of
 * them cut from one projection by lists of positions, biases added apart.
 * Source: transformers 5.12.1 models/falcon/modeling_falcon.py. */
#include "kernel/rows.h"

/* ---- FalconAttention */

struct heads { tensor_id q, k, v; };

/* fused_qkv[..., [-2], :]: the list is copied to the device at each use */
static tensor_id at_list(struct build *b, tensor_id x, unsigned dim)
{
	size_ref one = size_const(b->a, 1);
	tensor_id list = aten_new(b->t, "_to_copy", DT_INT64, 1, &one, NO_TENSOR, NO_TENSOR);
	return aten_index_dim(b->t, x, list, dim);
}

/* multi_query: [B,S,H+2,d], the last two heads are k and v */
static struct heads split_multi_query(struct build *b, tensor_id whole)
{
	struct tape *t = b->t;
	size_ref two = size_const(b->a, 2);
	tensor_id x = aten_reshape(t, whole, 4, SHAPE(b->B, b->S, size_add(b->a, b->d.H, two), b->d.d));
	struct heads y = { .q = aten_slice(t, x, 2, b->d.H) };
	y.k = at_list(b, x, 2);
	y.v = at_list(b, x, 2);
	return y;
}

/* broadcast_to(k, q.shape).flatten(2, 3) */
static tensor_id to_all_heads(struct build *b, tensor_id x, const size_ref *dims)
{
	return aten_reshape(b->t, aten_expand(b->t, x, 5, dims), 4, SHAPE(b->B, b->S, b->d.H, b->d.d));
}

/* new_decoder_architecture: [B,S,K,H/K+2,d], the last two of each group are its k and v */
static struct heads split_groups(struct build *b, tensor_id whole)
{
	struct tape *t = b->t;
	size_ref each = size_ceil_div(b->a, b->d.H, b->d.K), two = size_const(b->a, 2);
	tensor_id x = aten_reshape(t, whole, 5, SHAPE(b->B, b->S, b->d.K, size_add(b->a, each, two), b->d.d));
	const size_ref *dims = SHAPE(b->B, b->S, b->d.K, each, b->d.d);
	struct heads y = { .q = aten_slice(t, x, 3, each) };
	tensor_id k = at_list(b, x, 3), v = at_list(b, x, 3);
	k = aten_expand(t, k, 5, dims);
	v = aten_expand(t, v, 5, dims);
	y.q = to_all_heads(b, y.q, dims);
	y.k = to_all_heads(b, k, dims);
	y.v = to_all_heads(b, v, dims);
	return y;
}

/* [B,S,H,3,d] */
static struct heads split_plain(struct build *b, tensor_id whole)
{
	struct tape *t = b->t;
	tensor_id x = aten_reshape(t, whole, 5, SHAPE(b->B, b->S, b->d.H, size_const(b->a, 3), b->d.d));
	struct heads y;
	y.q = aten_select(t, x, 3);
	y.k = aten_select(t, x, 3);
	y.v = aten_select(t, x, 3);
	return y;
}

static struct heads split_heads(struct build *b, tensor_id whole)
{
	if (b->m->family->grouped_qkv)
		return split_groups(b, whole);
	return b->d.K->value == 1 ? split_multi_query(b, whole) : split_plain(b, whole);
}

/* x.transpose(1, 2).reshape(B, heads, S, d) */
static tensor_id heads_first(struct build *b, tensor_id x)
{
	struct tensor v = *T(b->t, x);
	return aten_reshape(b->t, aten_transpose(b->t, x, 1, 2), 4, SHAPE(v.dim[0], v.dim[2], v.dim[1], v.dim[3]));
}

/* Of its own: softmax in the dtype of the hidden states, scores divided in place. */
static tensor_id eager(struct build *b, const struct attention_in *x, enum dtype hidden)
{
	struct tape *t = b->t;
	tensor_id scores = aten_div_scalar_(t, aten_matmul(t, x->q, aten_transpose(t, x->k, 2, 3)));
	tensor_id probs = aten_softmax(t, aten_add(t, scores, x->mask), hidden);
	tape_hold(t, scores);
	b->weights = probs;
	return aten_contiguous(t, aten_transpose(t, aten_matmul(t, probs, x->v), 1, 2));
}

/* The same with ALiBi, in fp32 up to the softmax. */
static tensor_id eager_alibi(struct build *b, const struct attention_in *x, enum dtype hidden)
{
	struct tape *t = b->t;
	tensor_id product = aten_matmul(t, x->q, aten_transpose(t, x->k, 2, 3));
	tensor_id scores = aten_cast(t, product, DT_FP32);
	tensor_id logits = aten_mul_scalar_(t, aten_add(t, scores, b->in.alibi));
	tensor_id probs = aten_dropout(t, aten_softmax(t, aten_add(t, logits, x->mask), hidden), x->dropout);
	tensor_id y = aten_contiguous(t, aten_transpose(t, aten_matmul(t, probs, x->v), 1, 2));
	tape_holdv(t, (tensor_id[]){ product, scores, logits }, 3);
	b->weights = probs;
	return y;
}

static tensor_id attend(struct build *b, const struct attention_in *x, enum dtype hidden)
{
	label(b, "attention");
	if (!attention_is_eager(b))
		return emit_sdpa(b, x);
	return b->in.alibi >= 0 ? eager_alibi(b, x, hidden) : eager(b, x, hidden);
}

/* Without ALiBi there is no dropout. */
static tensor_id attention(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	bool alibi = b->in.alibi >= 0;
	tensor_id whole = emit_linear_apart(l, "self_attention.query_key_value", x);
	struct heads y = split_heads(b, whole);
	y.q = heads_first(b, y.q);
	y.k = heads_first(b, y.k);
	y.v = heads_first(b, y.v);
	if (!alibi)
		emit_rope(b, &y.q, &y.k, false);
	struct attention_in in = { y.q, y.k, y.v, b->in.mask[0], false, alibi ? b->m->dropout_attn : 0, 0 };
	tensor_id o = attend(b, &in, (enum dtype)T(t, x)->dtype);
	o = aten_reshape(t, o, 3, SHAPE(b->B, b->S, b->d.h));
	tensor_id z = emit_linear_apart(l, "self_attention.dense", o);
	tape_holdv(t, (tensor_id[]){ o, y.q, y.k, y.v, whole }, 5);
	return z;
}

/* ---- the layer */

/* FalconMLP.forward */
static tensor_id mlp(struct layer *l, tensor_id x)
{
	tensor_id up = emit_linear_apart(l, "mlp.dense_h_to_4h", x);
	label(l->b, "mlp activation");
	tensor_id act = emit_act(l->b, up);
	tensor_id y = emit_linear_apart(l, "mlp.dense_4h_to_h", act);
	tape_hold(l->b->t, act);
	return y;
}

/* dropout_add */
static tensor_id residual_add(struct build *b, tensor_id residual, tensor_id x, double p)
{
	tensor_id y = aten_dropout(b->t, x, p);
	label(b, "residual stream");
	return aten_add(b->t, residual, y);
}

/* parallel_attn: mlp_output += attention_output */
static tensor_id parallel(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	bool two = b->m->family->norms == 2;
	tensor_id h = emit_layer_norm(l, two ? "ln_attn" : "input_layernorm", x);
	tensor_id h2 = two ? emit_layer_norm(l, "ln_mlp", x) : h;
	tensor_id a = attention(l, h);
	tensor_id m = mlp(l, h2), both = aten_add_(t, m, a);
	tensor_id y = residual_add(b, x, both, b->m->dropout_resid);
	tape_holdv(t, (tensor_id[]){ h, h2, a, both }, 4);
	return y;
}

static tensor_id sequential(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	tensor_id h = emit_layer_norm(l, "input_layernorm", x);
	tensor_id a = attention(l, h);
	tensor_id mid = residual_add(b, x, a, b->m->dropout_attn);
	tensor_id h2 = emit_layer_norm(l, "post_attention_layernorm", mid);
	tensor_id m = mlp(l, h2);
	tensor_id y = residual_add(b, mid, m, b->m->dropout_resid);
	tape_holdv(b->t, (tensor_id[]){ h, a, mid, h2, m }, 5);
	return y;
}

static tensor_id layer(struct layer *l, tensor_id x)
{
	return l->b->m->family->block == BLOCK_PARALLEL ? parallel(l, x) : sequential(l, x);
}

/* FalconModel.forward: ALiBi, divided by the root of the head width, takes the place of the mask's zeros */
static tensor_id alibi_mask(struct build *b, tensor_id mask, enum dtype dt)
{
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1);
	const size_ref *dims = SHAPE(b->B, one, b->S, b->S), *heads = SHAPE(b->B, b->d.H, one, b->S);
	if (T(t, mask)->dtype == DT_BOOL) {
		tensor_id zero = aten_new(t, "empty", dt, 0, NULL, NO_TENSOR, NO_TENSOR);
		tensor_id low = aten_new(t, "scalar_tensor", dt, 0, NULL, NO_TENSOR, NO_TENSOR), bools = mask;
		mask = aten_new(t, "where", dt, 4, dims, bools, zero);
		tape_holdv(t, (tensor_id[]){ low, bools }, 2);
	}
	b->in.alibi = aten_reshape(t, b->in.alibi, 4, heads);
	tensor_id bias = aten_new(t, "div", dt, 4, heads, b->in.alibi, NO_TENSOR);
	tensor_id hidden = aten_new(t, "lt", DT_BOOL, 4, dims, mask, NO_TENSOR);
	tensor_id y = aten_new(t, "masked_fill", dt, 4, SHAPE(b->B, b->d.H, b->S, b->S), bias, hidden);
	tape_hold(t, mask);
	return y;
}

/* SDPA gets a boolean mask, eager attention one in floating point. */
static tensor_id make_mask(struct build *b, enum dtype dt)
{
	label(b, "attention mask");
	tensor_id mask = attention_is_eager(b) ? emit_float_mask(b, MASK_OVERLAID, NO_TENSOR, dt)
					       : emit_bool_mask(b, MASK_OVERLAID, NO_TENSOR);
	return b->in.alibi >= 0 ? alibi_mask(b, mask, dt) : mask;
}

static tensor_id model(struct build *b, run_layers_fn *run_layers)
{
	struct tape *t = b->t;
	tensor_id ones = NO_TENSOR;
	label(b, "word_embeddings");
	tensor_id embedded = aten_embedding(t, outer_param(b, arch_falcon.embedding), b->ids);
	enum dtype dt = (enum dtype)T(t, embedded)->dtype;
	embedding_hook(b, embedded);
	if (b->m->family->position == POS_ALIBI) {
		label(b, "attention mask");
		ones = aten_new(t, "ones", DT_INT64, 2, SHAPE(b->B, b->S), NO_TENSOR, NO_TENSOR);
		b->in.alibi = emit_alibi(b, ones, DT_BF16, dt);
	}
	emit_position_ids(b);
	b->in.mask[0] = make_mask(b, dt);
	emit_rotary(b, embedded, 1);
	tensor_id x = run_layers(b, embedded);
	tensor_id y = emit_norm(b, "ln_f", x, outer_param(b, "transformer.ln_f.weight"),
				outer_param(b, "transformer.ln_f.bias"));
	tape_holdv(t, (tensor_id[]){ x, embedded, ones, b->in.alibi, b->in.position_ids, b->in.mask[0], b->in.cos[0],
		b->in.sin[0], b->state[STATE_RETURNED] }, 9);
	return y;
}

static void buffers(struct build *b)
{
	add_angles(b, 1);
}

const struct arch arch_falcon = {
	.model = model, .layer = layer, .buffers = buffers,
	.embedding = "transformer.word_embeddings.weight", .head = "lm_head.weight", .keeps_results = true,
};
