/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * GPT-J: neighbours of each head rotated by a table that every layer keeps,
 * attention and MLP side by side after one norm.  The class has no other
 * attention than its eager one.
 * Source: transformers 5.12.1 models/gptj/modeling_gptj.py. */
#include "kernel/rows.h"

/* ---- positions */

/* Locals of GPTJAttention.forward: the table, the positions and what was gathered, sin before cos. */
struct sincos { tensor_id table, index, both; };

static struct sincos gather(struct build *b, enum dtype dt)
{
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1);
	const size_ref *dims = SHAPE(one, b->S, b->rotary);
	struct sincos y;
	label(b, "rotary embedding");
	y.table = aten_new(t, "repeat", DT_FP32, 3, SHAPE(one, b->d.P, b->rotary), NO_TENSOR, NO_TENSOR);
	y.index = aten_new(t, "repeat", DT_INT64, 3, dims, b->in.position_ids, NO_TENSOR);
	y.both = aten_cast(t, aten_new(t, "gather", DT_FP32, 3, dims, y.table, y.index), dt);
	return y;
}

/* torch.repeat_interleave(x, 2, 3) of one half */
static tensor_id interleaved(struct build *b, tensor_id sincos)
{
	size_ref one = size_const(b->a, 1);
	return aten_new(b->t, "clone", (enum dtype)T(b->t, sincos)->dtype, 4, SHAPE(one, b->S, one, b->rotary), sincos,
			NO_TENSOR);
}

/* rotate_every_two: stack((-x2, x1), -1).flatten(-2) */
static tensor_id rotate_pairs(struct build *b, tensor_id x)
{
	struct tape *t = b->t;
	struct tensor v = *T(t, x);
	tensor_id x1 = aten_slice_step(t, x, 2), x2 = aten_slice_step(t, x, 2);
	return aten_reshape(t, aten_stack_last(t, aten_neg(t, x2), x1), v.ndim, v.dim);
}

/* apply_rotary_pos_emb */
static tensor_id rotate(struct build *b, tensor_id x, tensor_id sincos)
{
	struct tape *t = b->t;
	tensor_id sin = interleaved(b, sincos), cos = interleaved(b, sincos);
	tensor_id left = aten_mul(t, x, cos);
	tensor_id y = aten_add(t, left, aten_mul(t, rotate_pairs(b, x), sin));
	tape_holdv(t, (tensor_id[]){ sin, cos }, 2);
	return y;
}

/* ---- the layer */

static tensor_id to_heads(struct build *b, tensor_id x)
{
	return aten_reshape(b->t, x, 4, SHAPE(b->B, b->S, b->d.H, b->d.d));
}

/* [B,S,H,d]: the front of each head is rotated, then [B,H,S,d] */
struct halves { tensor_id rotated, rest; };

static struct halves cut(struct build *b, tensor_id x)
{
	bool whole = b->d.d->value == b->rotary->value;
	struct halves y = { .rotated = aten_slice(b->t, x, 3, b->rotary) };
	y.rest = aten_slice(b->t, x, 3, whole ? size_const(b->a, 0) : size_sub(b->a, b->d.d, b->rotary));
	return y;
}

static tensor_id join(struct build *b, const struct halves *x)
{
	tensor_id y = aten_cat(b->t, x->rotated, x->rest, 3);
	T(b->t, y)->dim[3] = b->d.d;
	return y;
}

/* GPTJAttention._attn: products of q and k in fp32 */
static tensor_id attend(struct build *b, tensor_id q, tensor_id k, tensor_id v)
{
	struct tape *t = b->t;
	label(b, "attention");
	q = aten_cast(t, q, DT_FP32);
	k = aten_cast(t, k, DT_FP32);
	tensor_id w = aten_div_scalar(t, aten_matmul(t, q, aten_transpose(t, k, 2, 3)));
	w = aten_add(t, w, b->in.mask[0]);
	w = aten_softmax(t, w, (enum dtype)T(t, w)->dtype);
	w = aten_dropout(t, aten_cast(t, w, (enum dtype)T(t, v)->dtype), b->m->dropout_attn);
	tensor_id y = aten_matmul(t, w, v);
	tape_holdv(t, (tensor_id[]){ q, k }, 2);
	b->weights = w;
	return y;
}

/* GPTJAttention.forward */
static tensor_id attention(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	tensor_id q = to_heads(b, emit_linear(l, "attn.q_proj", x)), k = to_heads(b, emit_linear(l, "attn.k_proj", x));
	tensor_id v = aten_transpose(t, to_heads(b, emit_linear(l, "attn.v_proj", x)), 1, 2);
	struct sincos at = gather(b, (enum dtype)T(t, k)->dtype);
	label(b, "rope");
	struct halves hk = cut(b, k), hq = cut(b, q);
	hk.rotated = rotate(b, hk.rotated, at.both);
	hq.rotated = rotate(b, hq.rotated, at.both);
	tensor_id k2 = aten_transpose(t, join(b, &hk), 1, 2), q2 = aten_transpose(t, join(b, &hq), 1, 2);
	tensor_id y = aten_transpose(t, attend(b, q2, k2, v), 1, 2);
	y = aten_reshape(t, aten_contiguous(t, y), 3, SHAPE(b->B, b->S, b->d.q));
	tensor_id z = aten_dropout(t, emit_linear(l, "attn.out_proj", y), b->m->dropout_resid);
	tape_holdv(t, (tensor_id[]){ y, k2, q2, v, at.table, at.index, at.both, hk.rotated, k, hq.rotated, q }, 11);
	return z;
}

/* GPTJMLP.forward */
static tensor_id mlp(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	tensor_id up = emit_linear(l, "mlp.fc_in", x);
	label(b, "mlp activation");
	return aten_dropout(b->t, emit_linear(l, "mlp.fc_out", emit_act(b, up)), b->m->dropout_resid);
}

/* GPTJBlock.forward */
static tensor_id layer(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	tensor_id h = emit_layer_norm(l, "ln_1", x);
	tensor_id a = attention(l, h), m = mlp(l, h);
	label(b, "residual stream");
	tensor_id y = aten_add(t, aten_add(t, a, m), x);
	tape_holdv(t, (tensor_id[]){ h, a, m }, 3);
	return y;
}

/* GPTJModel.forward */
static tensor_id model(struct build *b, run_layers_fn *run_layers)
{
	struct tape *t = b->t;
	label(b, "wte");
	tensor_id embedded = aten_embedding(t, outer_param(b, arch_gptj.embedding), b->ids);
	embedding_hook(b, embedded);
	emit_position_ids(b);
	label(b, "attention mask");
	b->in.mask[0] = emit_float_mask(b, MASK_CAUSAL, NO_TENSOR, (enum dtype)T(t, embedded)->dtype);
	label(b, "embedding dropout");
	tensor_id x = run_layers(b, aten_dropout(t, embedded, b->m->dropout_embd));
	tensor_id y = emit_norm(b, "ln_f", x, outer_param(b, "transformer.ln_f.weight"),
				outer_param(b, "transformer.ln_f.bias"));
	tape_holdv(t, (tensor_id[]){ x, embedded, b->in.position_ids, b->in.mask[0], b->state[STATE_RETURNED] }, 5);
	return y;
}

/* create_sinusoidal_positions() in each layer */
static void buffers(struct build *b)
{
	add_buffer(b, "embed_positions", DT_FP32, 2, SHAPE(b->d.P, b->rotary), b->m->layers);
}

const struct arch arch_gptj = {
	.model = model, .layer = layer, .buffers = buffers,
	.embedding = "transformer.wte.weight", .head = "lm_head.weight", .eager_only = true, .keeps_results = true,
};
