/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * GPT-NeoX (Pythia): one projection for q, k and v, partial rotary embedding,
 * attention and MLP side by side.
 * Source: transformers 5.12.1 models/gpt_neox/modeling_gpt_neox.py. */
#include "kernel/rows.h"

static tensor_id norm(struct layer *l, const char *name, const char *weight, const char *bias, tensor_id x)
{
	return emit_norm(l->b, name, x, layer_param(l, weight), layer_param(l, bias));
}

/* GPTNeoXAttention.forward: [B,S,H,3d] -> three parts of each head */
static tensor_id attention(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	tensor_id whole = emit_linear(l, "attention.query_key_value", x), part[3];
	tensor_id heads = aten_reshape(t, whole, 4, SHAPE(b->B, b->S, b->d.H, size_mulc(b->a, b->d.d, 3)));
	aten_split(t, aten_transpose(t, heads, 1, 2), 3, 3, SHAPE(b->d.d, b->d.d, b->d.d), part);
	emit_rope(b, &part[0], &part[1], false);
	struct attention_in in = { part[0], part[1], part[2], b->in.mask[0], true, b->m->dropout_attn, 0 };
	tensor_id y = aten_reshape(t, emit_attention(b, &in), 3, SHAPE(b->B, b->S, b->d.h));
	tensor_id z = emit_linear(l, "attention.dense", y);
	tape_holdv(t, (tensor_id[]){ y, part[0], part[1], part[2], whole }, 5);
	return z;
}

/* GPTNeoXMLP.forward */
static tensor_id mlp(struct layer *l, tensor_id x)
{
	tensor_id up = emit_linear(l, "mlp.dense_h_to_4h", x);
	label(l->b, "mlp activation");
	return emit_linear(l, "mlp.dense_4h_to_h", emit_act(l->b, up));
}

static tensor_id norm_mlp(struct layer *l, tensor_id x)
{
	tensor_id h = norm(l, "post_attention_layernorm", "post_attention_layernorm.weight",
			   "post_attention_layernorm.bias", x);
	tensor_id m = mlp(l, h);
	tape_hold(l->b->t, h);
	return aten_dropout(l->b->t, m, l->b->m->dropout_resid);
}

/* GPTNeoXLayer.forward */
static tensor_id layer(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	bool parallel = b->m->family->block == BLOCK_PARALLEL;
	tensor_id h = norm(l, "input_layernorm", "input_layernorm.weight", "input_layernorm.bias", x);
	tensor_id a = attention(l, h);
	tape_hold(t, h);
	a = aten_dropout(t, a, b->m->dropout_resid);
	label(b, "residual stream");
	tensor_id first = parallel ? NO_TENSOR : aten_add(t, a, x);
	tensor_id m = norm_mlp(l, parallel ? x : first);
	label(b, "residual stream");
	tensor_id y = parallel ? aten_add(t, aten_add(t, m, a), x) : aten_add(t, m, first);
	tape_holdv(t, (tensor_id[]){ a, m, first }, 3);
	return y;
}

/* GPTNeoXModel.forward */
static tensor_id model(struct build *b, run_layers_fn *run_layers)
{
	struct tape *t = b->t;
	label(b, "embed_in");
	tensor_id embedded = aten_embedding(t, outer_param(b, arch_neox.embedding), b->ids);
	embedding_hook(b, embedded);
	emit_position_ids(b);
	emit_masks(b, embedded);
	label(b, "embedding dropout");
	tensor_id x = aten_dropout(t, embedded, b->m->dropout_embd);
	emit_rotary(b, x, 1);
	x = run_layers(b, x);
	tensor_id y = emit_norm(b, "final_layer_norm", x, outer_param(b, "gpt_neox.final_layer_norm.weight"),
				outer_param(b, "gpt_neox.final_layer_norm.bias"));
	tape_holdv(t, (tensor_id[]){ x, embedded, b->in.position_ids, b->in.mask[0], b->in.cos[0], b->in.sin[0] }, 6);
	return y;
}

static void buffers(struct build *b)
{
	add_angles(b, 1);
}

const struct arch arch_neox = {
	.model = model, .layer = layer, .buffers = buffers,
	.embedding = "gpt_neox.embed_in.weight", .head = "embed_out.weight",
};
