/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * GPT-2: learned positions, Conv1D projections, dropout in every place.
 * Source: transformers 5.12.1 models/gpt2/modeling_gpt2.py. */
#include "kernel/rows.h"

static tensor_id norm(struct layer *l, const char *name, const char *weight, const char *bias, tensor_id x)
{
	return emit_norm(l->b, name, x, layer_param(l, weight), layer_param(l, bias));
}

static tensor_id to_heads(struct build *b, tensor_id x)
{
	return aten_transpose(b->t, aten_reshape(b->t, x, 4, SHAPE(b->B, b->S, b->d.H, b->d.d)), 1, 2);
}

/* eager_attention_forward of this class: the softmax keeps the type of the scores */
static tensor_id eager(struct build *b, const struct attention_in *x)
{
	struct tape *t = b->t;
	label(b, "attention");
	tensor_id w = aten_mul_scalar(t, aten_matmul(t, x->q, aten_transpose(t, x->k, 2, 3)));
	if (x->mask >= 0)
		w = aten_add(t, w, x->mask);
	tensor_id scores = w;
	w = aten_softmax(t, scores, (enum dtype)T(t, scores)->dtype);
	tape_hold(t, scores);
	w = aten_cast(t, w, (enum dtype)T(t, x->v)->dtype);
	w = aten_dropout(t, w, x->dropout);
	tensor_id y = aten_transpose(t, aten_matmul(t, w, x->v), 1, 2);
	b->weights = w;
	return y;
}

/* GPT2Attention.forward */
static tensor_id attention(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	tensor_id whole = emit_conv1d(l, "attn.c_attn", x), part[3];
	aten_split(t, whole, 2, 3, SHAPE(b->d.h, b->d.h, b->d.h), part);
	tensor_id k = to_heads(b, part[1]), v = to_heads(b, part[2]), q = to_heads(b, part[0]);
	struct attention_in in = { q, k, v, b->in.mask[0], true, b->m->dropout_attn, 0 };
	tensor_id y = attention_is_eager(b) ? eager(b, &in) : emit_attention(b, &in);
	y = aten_reshape(t, y, 3, SHAPE(b->B, b->S, b->d.h));
	tensor_id z = emit_conv1d(l, "attn.c_proj", y);
	tensor_id out = aten_dropout(t, z, b->m->dropout_resid);
	tape_holdv(t, (tensor_id[]){ y, q, k, v, whole }, 5);
	return out;
}

/* GPT2MLP.forward */
static tensor_id mlp(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	tensor_id up = emit_conv1d(l, "mlp.c_fc", x);
	label(b, "mlp activation");
	return aten_dropout(b->t, emit_conv1d(l, "mlp.c_proj", emit_act(b, up)), b->m->dropout_resid);
}

/* GPT2Block.forward */
static tensor_id layer(struct layer *l, tensor_id x)
{
	struct tape *t = l->b->t;
	tensor_id h = norm(l, "ln_1", "ln_1.weight", "ln_1.bias", x);
	tensor_id a = attention(l, h);
	label(l->b, "residual stream");
	tensor_id mid = aten_add(t, a, x);
	tape_hold(t, h);
	h = norm(l, "ln_2", "ln_2.weight", "ln_2.bias", mid);
	tensor_id m = mlp(l, h);
	label(l->b, "residual stream");
	tensor_id y = aten_add(t, mid, m);
	tape_holdv(t, (tensor_id[]){ a, m, h, mid }, 4);
	return y;
}

/* GPT2Model.forward */
static tensor_id model(struct build *b, run_layers_fn *run_layers)
{
	struct tape *t = b->t;
	label(b, "wte");
	tensor_id tokens = aten_embedding(t, outer_param(b, arch_gpt2.embedding), b->ids);
	embedding_hook(b, tokens);
	emit_position_ids(b);
	label(b, "wpe");
	tensor_id positions = aten_embedding(t, outer_param(b, "transformer.wpe.weight"), b->in.position_ids);
	tensor_id sum = aten_add(t, tokens, positions);
	emit_masks(b, tokens);
	label(b, "embedding dropout");
	tensor_id x = aten_dropout(t, sum, b->m->dropout_embd);
	x = run_layers(b, x);
	tensor_id y = emit_norm(b, "ln_f", x, outer_param(b, "transformer.ln_f.weight"),
				outer_param(b, "transformer.ln_f.bias"));
	tape_holdv(t, (tensor_id[]){ x, tokens, positions, b->in.position_ids, b->in.mask[0] }, 5);
	return y;
}

static void buffers(struct build *b)
{
	(void)b;
}

const struct arch arch_gpt2 = {
	.model = model, .layer = layer, .buffers = buffers,
	.embedding = "transformer.wte.weight", .head = "lm_head.weight",
};
