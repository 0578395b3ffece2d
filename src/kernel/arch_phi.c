/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Phi: biases everywhere, partial rotary embedding, attention and MLP side by
 * side after one norm.
 * Source: transformers 5.12.1 models/phi/modeling_phi.py. */
#include "kernel/rows.h"

/* [B,S,n·d] -> [B,n,S,d] */
static tensor_id to_heads(struct build *b, tensor_id x, size_ref n)
{
	return aten_transpose(b->t, aten_reshape(b->t, x, 4, SHAPE(b->B, b->S, n, b->d.d)), 1, 2);
}

/* PhiAttention.forward */
static tensor_id attention(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	tensor_id q = to_heads(b, emit_linear(l, "self_attn.q_proj", x), b->d.H);
	tensor_id k = to_heads(b, emit_linear(l, "self_attn.k_proj", x), b->d.K);
	tensor_id v = to_heads(b, emit_linear(l, "self_attn.v_proj", x), b->d.K);
	struct rotated y = emit_rope_part(b, q, k);
	struct attention_in in = { y.q, y.k, v, b->in.mask[0], true, b->m->dropout_attn, 0 };
	tensor_id o = aten_reshape(t, emit_attention(b, &in), 3, SHAPE(b->B, b->S, b->d.q));
	tensor_id z = emit_linear(l, "self_attn.dense", o);
	tape_holdv(t, (tensor_id[]){ o, y.q, y.k, y.q_front, y.k_front, v, k, q }, 8);
	return z;
}

/* PhiMLP.forward */
static tensor_id mlp(struct layer *l, tensor_id x)
{
	tensor_id up = emit_linear(l, "mlp.fc1", x);
	label(l->b, "mlp activation");
	return emit_linear(l, "mlp.fc2", emit_act(l->b, up));
}

/* PhiDecoderLayer.forward */
static tensor_id layer(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	tensor_id h = emit_layer_norm(l, "input_layernorm", x);
	tensor_id a = aten_dropout(t, attention(l, h), b->m->dropout_resid);
	tensor_id m = aten_dropout(t, mlp(l, h), b->m->dropout_resid);
	label(b, "residual stream");
	tensor_id y = aten_add(t, aten_add(t, a, m), x);
	tape_holdv(t, (tensor_id[]){ h, a, m }, 3);
	return y;
}

/* PhiModel.forward */
static tensor_id model(struct build *b, run_layers_fn *run_layers)
{
	struct tape *t = b->t;
	label(b, "embed_tokens");
	tensor_id x = aten_embedding(t, outer_param(b, arch_phi.embedding), b->ids);
	embedding_hook(b, x);
	emit_position_ids(b);
	emit_masks(b, x);
	label(b, "embedding dropout");
	tensor_id embedded = aten_dropout(t, x, b->m->dropout_embd);
	emit_rotary(b, embedded, 1);
	x = run_layers(b, embedded);
	tensor_id y = emit_norm(b, "final_layernorm", x, outer_param(b, "model.final_layernorm.weight"),
				outer_param(b, "model.final_layernorm.bias"));
	tape_holdv(t, (tensor_id[]){ x, embedded, b->in.position_ids, b->in.mask[0], b->in.cos[0], b->in.sin[0] }, 6);
	return y;
}

static void buffers(struct build *b)
{
	add_angles(b, 1);
}

const struct arch arch_phi = {
	.model = model, .layer = layer, .buffers = buffers,
	.embedding = "model.embed_tokens.weight", .head = "lm_head.weight",
};
