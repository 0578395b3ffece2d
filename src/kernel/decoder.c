/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The decoder: embedding, layers, final norm, with what Python variables
 * keep alive written as holds.  Source: transformers 5.12 modeling_*.py. */
#include <string.h>

#include "kernel/data_parallel.h"
#include "kernel/rows.h"

static tensor_id find_param(struct build *b, size_t first, size_t n, const char *name)
{
	for (size_t i = first; i < first + n; i++)
		if (!strcmp(b->t->params.v[i].name, name))
			return b->t->params.v[i].tensor;
	return NO_TENSOR;
}

tensor_id layer_param(struct layer *l, const char *name)
{
	return find_param(l->b, l->first_param, l->nparam, name);
}

tensor_id outer_param(struct build *b, const char *name)
{
	tensor_id x = find_param(b, b->outer[0].first, b->outer[0].n, name);
	return x >= 0 ? x : find_param(b, b->outer[1].first, b->outer[1].n, name);
}

tensor_id emit_layer_norm(struct layer *l, const char *name, tensor_id x)
{
	struct build *b = l->b;
	return emit_norm(b, name, x, layer_param(l, arena_printf(b->a, "%s.weight", name)),
			 layer_param(l, arena_printf(b->a, "%s.bias", name)));
}

static tensor_id residual_add(struct build *b, tensor_id residual, tensor_id x)
{
	label(b, "residual stream");
	return aten_add(b->t, residual, x);
}

/* LlamaDecoderLayer.forward */
static tensor_id block_pre(struct layer *l, tensor_id x)
{
	struct tape *t = l->b->t;
	tensor_id h = emit_layer_norm(l, "input_layernorm", x);
	tensor_id a = emit_attention_block(l, h);
	tape_hold(t, h);
	tensor_id mid = residual_add(l->b, x, aten_dropout(t, a, l->b->m->dropout_resid));
	tape_hold(t, a);
	h = emit_layer_norm(l, "post_attention_layernorm", mid);
	tensor_id m = emit_mlp(l, h);
	tape_hold(t, h);
	tensor_id y = residual_add(l->b, mid, aten_dropout(t, m, l->b->m->dropout_resid));
	tape_holdv(t, (tensor_id[]){ m, mid }, 2);
	return y;
}

/* Olmo2DecoderLayer.forward */
static tensor_id block_post(struct layer *l, tensor_id x)
{
	struct tape *t = l->b->t;
	tensor_id a = emit_attention_block(l, x);
	tensor_id n = emit_layer_norm(l, "post_attention_layernorm", a);
	tape_hold(t, a);
	tensor_id mid = residual_add(l->b, x, n);
	tape_hold(t, n);
	tensor_id m = emit_mlp(l, mid);
	n = emit_layer_norm(l, "post_feedforward_layernorm", m);
	tape_hold(t, m);
	tensor_id y = residual_add(l->b, mid, n);
	tape_holdv(t, (tensor_id[]){ n, mid }, 2);
	return y;
}

/* Gemma2DecoderLayer.forward, Gemma3DecoderLayer.forward */
static tensor_id block_four(struct layer *l, tensor_id x)
{
	struct tape *t = l->b->t;
	tensor_id h = emit_layer_norm(l, "input_layernorm", x);
	tensor_id a = emit_attention_block(l, h);
	tape_hold(t, h);
	tensor_id n = emit_layer_norm(l, "post_attention_layernorm", a);
	tape_hold(t, a);
	tensor_id mid = residual_add(l->b, x, n);
	tape_hold(t, n);
	h = emit_layer_norm(l, "pre_feedforward_layernorm", mid);
	tensor_id m = emit_mlp(l, h);
	tape_hold(t, h);
	n = emit_layer_norm(l, "post_feedforward_layernorm", m);
	tape_hold(t, m);
	tensor_id y = residual_add(l->b, mid, n);
	tape_holdv(t, (tensor_id[]){ n, mid }, 2);
	return y;
}

static tensor_id llama_layer(struct layer *l, tensor_id x)
{
	typedef tensor_id block_fn(struct layer *l, tensor_id x);
	static block_fn *const blocks[] = { [BLOCK_PRE] = block_pre, [BLOCK_POST] = block_post,
		[BLOCK_FOUR] = block_four, [BLOCK_PARALLEL] = block_pre };
	return blocks[l->b->m->family->block](l, x);
}

/* modeling_utils.py gradient_checkpointing_enable(): enable_input_require_grads() */
void embedding_hook(struct build *b, tensor_id x)
{
	if (b->recipe.checkpoint != CKPT_NONE)
		tape_require_grad(b->t, x);
	b->dp->embedding_output(b, x);
}

/* GemmaTextScaledWordEmbedding.forward: the result is multiplied by a scalar cast to the weight's dtype */
static tensor_id embed(struct build *b)
{
	label(b, "embed_tokens");
	tensor_id x = aten_embedding(b->t, outer_param(b, "model.embed_tokens.weight"), b->ids);
	if (b->m->family->embed_scale)
		x = aten_mul(b->t, x, aten_cast(b->t, b->embed_scale, (enum dtype)T(b->t, x)->dtype));
	embedding_hook(b, x);
	return x;
}

/* Pairs of cos and sin: two where full and sliding layers each have their own. */
static unsigned rope_kinds(const struct build *b)
{
	const struct model *m = b->m;
	bool full = false, sliding = false;
	for (uint64_t i = 0; i < m->layers; i++) {
		bool s = m->sliding && m->sliding[i];
		sliding = sliding || s;
		full = full || !s;
	}
	return m->family->local_rope && full && sliding ? 2 : 1;
}

static tensor_id llama_model(struct build *b, run_layers_fn *run_layers)
{
	struct tape *t = b->t;
	tensor_id embedded = embed(b);
	emit_position_ids(b);
	emit_masks(b, embedded);
	emit_rotary(b, embedded, rope_kinds(b));
	tensor_id x = run_layers(b, embedded);
	tensor_id y = emit_norm(b, "norm", x, outer_param(b, "model.norm.weight"), NO_TENSOR);
	tape_holdv(t, (tensor_id[]){ x, embedded, b->in.position_ids, b->in.mask[0], b->in.mask[1], b->in.cos[0],
		b->in.sin[0], b->in.cos[1], b->in.sin[1] }, 9);
	return y;
}

/* LlamaRotaryEmbedding: inv_freq and original_inv_freq; Gemma3RotaryEmbedding: both for each kind of layer */
static void llama_buffers(struct build *b)
{
	add_angles(b, rope_kinds(b));
	if (b->m->family->embed_scale)
		b->embed_scale = add_buffer(b, "embed_scale", b->spec->prec.params, 0, NULL, 1);
}

static const struct arch arch_llama = {
	.model = llama_model, .layer = llama_layer, .buffers = llama_buffers,
	.embedding = "model.embed_tokens.weight", .head = "lm_head.weight",
};

/* How the classes of one parameter layout run; NULL: memplan has no emitters for them. */
static const struct arch *const archs[LAYOUT_N] = {
	[LAYOUT_LLAMA] = &arch_llama, [LAYOUT_GPT2] = &arch_gpt2, [LAYOUT_NEOX] = &arch_neox,
	[LAYOUT_BLOOM] = &arch_bloom, [LAYOUT_FALCON] = &arch_falcon, [LAYOUT_GPTJ] = &arch_gptj,
	[LAYOUT_PHI] = &arch_phi, [LAYOUT_CLIP] = &arch_clip, [LAYOUT_SIGLIP] = &arch_siglip,
	[LAYOUT_QWEN3_TOWER] = &arch_qwen3_tower,
};

const struct arch *arch_of(const struct model *m)
{
	return archs[m->family->layout];
}

tensor_id emit_layer(void *layer, tensor_id x)
{
	struct layer *l = layer;
	struct build *b = l->b;
	b->weights = NO_TENSOR;
	tensor_id y = arch_of(b->m)->layer(l, x);
	tape_hold(b->t, b->weights);
	return y;
}

tensor_id emit_model(struct build *b, run_layers_fn *run_layers)
{
	return arch_of(b->m)->model(b, run_layers);
}
