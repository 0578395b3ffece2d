/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * BLOOM: ALiBi added by baddbmm, a norm after the embedding, an activation
 * with a backward of its own.  The class has no other attention than its
 * eager one.
 * Source: transformers 5.12.1 models/bloom/modeling_bloom.py. */
#include "kernel/rows.h"

/* ---- bloom_gelu_forward, bloom_gelu_back: op by op in Python, without a graph; the input is saved */

/* tanh(0.79788456 * x * (1 + 0.044715 * x * x)) */
static tensor_id gelu_tanh(struct tape *t, tensor_id x)
{
	tensor_id c = aten_mul_scalar(t, x);
	tensor_id sq = aten_mul(t, aten_mul_scalar(t, x), x);
	tensor_id arg = aten_mul(t, c, aten_add_scalar(t, sq));
	return aten_unary(t, UNARY_TANH, arg);
}

/* ff = 0.5 * x * ((1 - th * th) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1 + th); ff * g */
static void back_gelu(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id x = node_saved(t, n, 0), th = gelu_tanh(t, x);
	tensor_id half = aten_mul_scalar(t, x), sq = aten_mul(t, th, th);
	tensor_id rest = tape_like(t, sq, (enum dtype)T(t, sq)->dtype);
	tape_op1(t, "rsub", sq, NO_TENSOR, rest);
	tensor_id slope = aten_add_scalar(t, aten_mul(t, aten_mul_scalar(t, x), x));
	tensor_id left = aten_mul(t, half, aten_mul(t, rest, slope));
	tensor_id ff = aten_add(t, left, aten_mul_scalar(t, aten_add_scalar(t, th)));
	out[0] = aten_mul(t, ff, grad[0]);
	tape_hold(t, th);
}

/* x * 0.5 * (1.0 + tanh(...)) */
static tensor_id gelu(struct build *b, tensor_id x)
{
	struct tape *t = b->t;
	enum tape_mode mode = t->mode;
	struct anode *n = node_begin(t, "GeLUFunctionBackward", back_gelu, &x, 1);
	t->mode = TAPE_NOGRAD;
	tensor_id half = aten_mul_scalar(t, x);
	tensor_id y = aten_mul(t, half, aten_add_scalar(t, gelu_tanh(t, x)));
	t->mode = mode;
	node_save(t, n, x);
	node_end(t, n, &y, 1);
	return y;
}

/* ---- the layer */

/* BloomAttention._reshape: [B,S,H,3,d] -> [B,H,S,d], and [B·H,S,d] */
static tensor_id part(struct build *b, tensor_id heads)
{
	return aten_transpose(b->t, aten_select(b->t, heads, 3), 1, 2);
}

static tensor_id fold(struct build *b, tensor_id x)
{
	return aten_reshape(b->t, x, 3, SHAPE(size_mul(b->a, b->B, b->d.H), b->S, b->d.d));
}

/* What Python names in BloomAttention.forward: scores with and without the mask, probabilities. */
struct attended { tensor_id scores, masked, weights, context; };

static struct attended attend(struct build *b, tensor_id q, tensor_id k, tensor_id v)
{
	struct tape *t = b->t;
	struct attended y;
	size_ref heads = size_mul(b->a, b->B, b->d.H);
	label(b, "attention");
	y.scores = aten_baddbmm(t, b->in.alibi, q, aten_transpose(t, k, 1, 2));
	y.masked = aten_add(t, aten_reshape(t, y.scores, 4, SHAPE(b->B, b->d.H, b->S, b->S)), b->in.mask[0]);
	y.weights = aten_cast(t, aten_softmax(t, y.masked, DT_FP32), (enum dtype)T(t, q)->dtype);
	y.weights = aten_dropout(t, y.weights, b->m->dropout_attn);
	tensor_id o = aten_matmul(t, aten_reshape(t, y.weights, 3, SHAPE(heads, b->S, b->S)), v);
	o = aten_transpose(t, aten_reshape(t, o, 4, SHAPE(b->B, b->d.H, b->S, b->d.d)), 1, 2);
	y.context = aten_reshape(t, o, 3, SHAPE(b->B, b->S, b->d.h));
	return y;
}

/* dropout_add */
static tensor_id residual_add(struct build *b, tensor_id residual, tensor_id x)
{
	tensor_id y = aten_dropout(b->t, x, b->m->dropout_resid);
	label(b, "residual stream");
	return aten_add(b->t, residual, y);
}

/* BloomAttention.forward */
static tensor_id attention(struct layer *l, tensor_id x, tensor_id residual)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	tensor_id whole = emit_linear(l, "self_attention.query_key_value", x);
	tensor_id heads = aten_reshape(t, whole, 5, SHAPE(b->B, b->S, b->d.H, size_const(b->a, 3), b->d.d));
	tensor_id q = part(b, heads), k = part(b, heads), v = part(b, heads);
	q = fold(b, q);
	k = fold(b, k);
	v = fold(b, v);
	struct attended y = attend(b, q, k, v);
	tensor_id z = residual_add(b, residual, emit_linear(l, "self_attention.dense", y.context));
	tape_holdv(t, (tensor_id[]){ y.context, y.scores, y.masked, q, k, v, whole }, 7);
	b->weights = y.weights;
	return z;
}

/* BloomMLP.forward */
static tensor_id mlp(struct layer *l, tensor_id x, tensor_id residual)
{
	struct build *b = l->b;
	tensor_id up = emit_linear(l, "mlp.dense_h_to_4h", x);
	label(b, "mlp activation");
	tensor_id act = gelu(b, up), down = emit_linear(l, "mlp.dense_4h_to_h", act);
	tensor_id y = residual_add(b, residual, down);
	tape_holdv(b->t, (tensor_id[]){ down, act }, 2);
	return y;
}

/* BloomBlock.forward */
static tensor_id layer(struct layer *l, tensor_id x)
{
	struct tape *t = l->b->t;
	tensor_id h = emit_layer_norm(l, "input_layernorm", x);
	tensor_id a = attention(l, h, x);
	tensor_id h2 = emit_layer_norm(l, "post_attention_layernorm", a);
	tape_hold(t, h);
	tensor_id y = mlp(l, h2, a);
	tape_holdv(t, (tensor_id[]){ h2, a }, 2);
	return y;
}

/* ---- the model */

/* BloomModel.forward */
static tensor_id model(struct build *b, run_layers_fn *run_layers)
{
	struct tape *t = b->t;
	label(b, "word_embeddings");
	tensor_id embedded = aten_embedding(t, outer_param(b, arch_bloom.embedding), b->ids);
	embedding_hook(b, embedded);
	tensor_id x = emit_norm(b, "word_embeddings_layernorm", embedded,
				outer_param(b, "transformer.word_embeddings_layernorm.weight"),
				outer_param(b, "transformer.word_embeddings_layernorm.bias"));
	label(b, "attention mask");
	tensor_id ones = aten_new(t, "ones", DT_FP32, 2, SHAPE(b->B, b->S), NO_TENSOR, NO_TENSOR);
	b->in.alibi = emit_alibi(b, ones, DT_FP32, (enum dtype)T(t, x)->dtype);
	label(b, "attention mask");
	tensor_id padding = aten_new(t, "_to_copy", DT_BOOL, 2, SHAPE(b->B, b->S), ones, NO_TENSOR);
	b->in.mask[0] = emit_float_mask(b, MASK_PADDED, padding, (enum dtype)T(t, embedded)->dtype);
	tape_hold(t, padding);
	x = run_layers(b, x);
	tensor_id y = emit_norm(b, "ln_f", x, outer_param(b, "transformer.ln_f.weight"),
				outer_param(b, "transformer.ln_f.bias"));
	tape_holdv(t, (tensor_id[]){ x, embedded, ones, b->in.alibi, b->in.mask[0], b->state[STATE_RETURNED] }, 6);
	return y;
}

static void buffers(struct build *b)
{
	(void)b;
}

const struct arch arch_bloom = {
	.model = model, .layer = layer, .buffers = buffers,
	.embedding = "transformer.word_embeddings.weight", .head = "lm_head.weight", .eager_only = true, .keeps_results = true,
};
