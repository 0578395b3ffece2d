/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The decoder: embedding, layers, final norm, with what Python variables
 * keep alive written as holds.  Source: transformers 5.12 modeling_*.py. */
#include <string.h>

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

static tensor_id layer_norm(struct layer *l, const char *name, tensor_id x)
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
	tensor_id h = layer_norm(l, "input_layernorm", x);
	tensor_id a = emit_attention_block(l, h);
	tape_hold(t, h);
	tensor_id mid = residual_add(l->b, x, a);
	tape_hold(t, a);
	h = layer_norm(l, "post_attention_layernorm", mid);
	tensor_id m = emit_mlp(l, h);
	tape_hold(t, h);
	tensor_id y = residual_add(l->b, mid, m);
	tape_holdv(t, (tensor_id[]){ m, mid }, 2);
	return y;
}

static tensor_id llama_layer(struct layer *l, tensor_id x)
{
	return block_pre(l, x);
}

static tensor_id llama_model(struct build *b, run_layers_fn *run_layers)
{
	struct tape *t = b->t;
	label(b, "embed_tokens");
	tensor_id embedded = aten_embedding(t, outer_param(b, "model.embed_tokens.weight"), b->ids);
	emit_position_ids(b);
	emit_rotary(b, embedded, 1);
	tensor_id x = run_layers(b, embedded);
	tensor_id y = emit_norm(b, "norm", x, outer_param(b, "model.norm.weight"), NO_TENSOR);
	tape_holdv(t, (tensor_id[]){ x, embedded, b->in.position_ids, b->in.cos[0], b->in.sin[0] }, 5);
	return y;
}

/* LlamaRotaryEmbedding: inv_freq and original_inv_freq */
static void llama_buffers(struct build *b)
{
	size_ref half = size_ceil_div(b->a, b->rotary, size_const(b->a, 2));
	for (int i = 0; i < 2; i++)
		add_buffer(b, "rotary inv_freq", DT_FP32, 1, &half, 1);
}

/* How the classes of one parameter layout run; NULL: memplan has no emitter for it yet. */
static const struct arch archs[LAYOUT_N] = {
	[LAYOUT_LLAMA] = { llama_model, llama_layer, llama_buffers, "model.embed_tokens.weight", "lm_head.weight" },
};

const struct arch *arch_of(const struct model *m)
{
	const struct arch *arch = &archs[m->family->layout];
	return arch->model ? arch : NULL;
}

tensor_id emit_layer(void *layer, tensor_id x)
{
	struct layer *l = layer;
	return arch_of(l->b->m)->layer(l, x);
}

tensor_id emit_model(struct build *b, run_layers_fn *run_layers)
{
	return arch_of(b->m)->model(b, run_layers);
}
