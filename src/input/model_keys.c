/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The keys of a config.json: one row for each that bears on memory, and lists
 * of those that have a structure of their own, change nothing, or switch what
 * memplan does not follow. */
#include "input/model.h"

#include <string.h>

#define UINT(n, k, lo, hi, doc) { n, k, TYPE_UINT, lo, hi, doc }
#define REAL(n, k, lo, hi, doc) { n, k, TYPE_REAL, lo, hi, doc }
#define BOOL(n, k, doc) { n, k, TYPE_BOOL, 0, 1, doc }
enum { MAX_WIDTH = 1 << 22, MAX_COUNT = 1 << 16, MAX_VOCAB = 1 << 28, MAX_TOKENS = 1 << 30 };

const struct model_key model_keys[] = {
	UINT("hidden_size", KEY_HIDDEN, 1, MAX_WIDTH, "width of the residual stream"),
	UINT("n_embd", KEY_HIDDEN, 1, MAX_WIDTH, NULL),
	UINT("n_embed", KEY_HIDDEN, 1, MAX_WIDTH, NULL),
	UINT("intermediate_size", KEY_FFN, 1, MAX_WIDTH, "width of the MLP, or of an expert (Mixtral, OLMoE, gpt-oss)"),
	UINT("n_inner", KEY_FFN, 1, MAX_WIDTH, NULL),
	UINT("ffn_hidden_size", KEY_FFN, 1, MAX_WIDTH, NULL),
	UINT("num_hidden_layers", KEY_LAYERS, 1, MAX_LAYERS, "decoder layers"),
	UINT("n_layer", KEY_LAYERS, 1, MAX_LAYERS, NULL),
	UINT("num_attention_heads", KEY_HEADS, 1, MAX_COUNT, "attention heads"),
	UINT("n_head", KEY_HEADS, 1, MAX_COUNT, NULL),
	UINT("num_key_value_heads", KEY_KV_HEADS, 1, MAX_COUNT, "key and value heads"),
	UINT("num_kv_heads", KEY_KV_HEADS, 1, MAX_COUNT, NULL),
	UINT("n_head_kv", KEY_KV_HEADS, 1, MAX_COUNT, NULL),
	UINT("head_dim", KEY_HEAD_DIM, 1, MAX_COUNT, "width of a head"),
	UINT("vocab_size", KEY_VOCAB, 1, MAX_VOCAB, "rows of the embedding"),
	UINT("max_position_embeddings", KEY_POSITIONS, 1, MAX_TOKENS, "longest sequence"),
	UINT("n_positions", KEY_POSITIONS, 1, MAX_TOKENS, NULL),
	BOOL("tie_word_embeddings", KEY_TIED, "the head shares the embedding's weight"),
	BOOL("attention_bias", KEY_ATTENTION_BIAS, "biases in the attention's linear layers"),
	BOOL("qkv_bias", KEY_QKV_BIAS, "biases in the projections of q, k and v (Qwen2-MoE)"),
	BOOL("mlp_bias", KEY_MLP_BIAS, "biases in the MLP"),
	BOOL("bias", KEY_BIAS, "biases in all linear layers (Falcon)"),
	BOOL("use_qk_norm", KEY_QK_NORM, "norms on q and k (GLM-4.5)"),
	UINT("sliding_window", KEY_WINDOW, 0, MAX_TOKENS, "tokens that a sliding layer sees; 0: none slides"),
	BOOL("use_sliding_window", KEY_USE_WINDOW, "whether any layer slides (Qwen)"),
	UINT("max_window_layers", KEY_WINDOW_FROM, 0, MAX_LAYERS, "first sliding layer (Qwen)"),
	UINT("sliding_window_pattern", KEY_WINDOW_PATTERN, 1, MAX_LAYERS, "every n-th layer sees all (Gemma 3)"),
	UINT("_sliding_window_pattern", KEY_WINDOW_PATTERN, 1, MAX_LAYERS, NULL),
	REAL("attn_logit_softcapping", KEY_ATTN_SOFTCAP, 0, 1e6, "soft cap on attention scores"),
	REAL("final_logit_softcapping", KEY_FINAL_SOFTCAP, 0, 1e6, "soft cap on logits"),
	REAL("attention_dropout", KEY_DROP_ATTN, 0, 1, "dropout on attention weights"),
	REAL("attn_pdrop", KEY_DROP_ATTN, 0, 1, NULL),
	REAL("resid_pdrop", KEY_DROP_RESID, 0, 1, "dropout before each residual addition"),
	REAL("hidden_dropout", KEY_DROP_RESID, 0, 1, NULL),
	REAL("embd_pdrop", KEY_DROP_EMBD, 0, 1, "dropout after the embedding"),
	REAL("partial_rotary_factor", KEY_ROTARY, 0, 1, "share of a head that is rotated"),
	REAL("rotary_pct", KEY_ROTARY, 0, 1, NULL),
	UINT("rotary_dim", KEY_ROTARY_DIM, 1, MAX_COUNT, "width of a head that is rotated (GPT-J)"),
	BOOL("use_parallel_residual", KEY_PARALLEL_RESIDUAL, "attention and MLP side by side (GPT-NeoX)"),
	BOOL("parallel_attn", KEY_PARALLEL_ATTN, "attention and MLP side by side (Falcon)"),
	UINT("num_ln_in_parallel_attn", KEY_PARALLEL_NORMS, 1, 2, "norms of a parallel layer (Falcon)"),
	BOOL("new_decoder_architecture", KEY_NEW_DECODER, "grouped key and value heads (Falcon 40B)"),
	BOOL("multi_query", KEY_MULTI_QUERY, "one key and value head (Falcon)"),
	BOOL("alibi", KEY_ALIBI, "attention biases instead of rotation (Falcon)"),
	UINT("num_experts", KEY_EXPERTS, 0, MAX_COUNT, "experts of an MoE layer"),
	UINT("num_local_experts", KEY_EXPERTS, 0, MAX_COUNT, NULL),
	UINT("n_routed_experts", KEY_EXPERTS, 0, MAX_COUNT, NULL),
	UINT("num_experts_per_tok", KEY_TOPK, 1, MAX_COUNT, "experts that a token visits"),
	UINT("experts_per_token", KEY_TOPK, 1, MAX_COUNT, NULL),
	UINT("moe_intermediate_size", KEY_MOE_FFN, 1, MAX_WIDTH, "width of an expert"),
	UINT("n_shared_experts", KEY_SHARED, 0, MAX_COUNT, "experts that every token visits"),
	UINT("shared_expert_intermediate_size", KEY_SHARED_FFN, 0, MAX_WIDTH, "width of the shared expert (Qwen2-MoE)"),
	UINT("first_k_dense_replace", KEY_FIRST_DENSE, 0, MAX_LAYERS, "first layers with a dense MLP"),
	UINT("decoder_sparse_step", KEY_MOE_EVERY, 1, MAX_LAYERS, "every n-th layer has experts"),
	BOOL("norm_topk_prob", KEY_NORM_TOPK, "the weights of a token's experts add up to 1"),
	UINT("n_group", KEY_GROUPS, 1, MAX_COUNT, "groups of experts (DeepSeek)"),
	UINT("topk_group", KEY_TOPK_GROUPS, 1, MAX_COUNT, "groups that a token's experts come from"),
	UINT("q_lora_rank", KEY_Q_LORA, 1, MAX_WIDTH, "rank of the query latent; null: none"),
	UINT("kv_lora_rank", KEY_KV_LORA, 1, MAX_WIDTH, "rank of the key and value latent"),
	UINT("qk_nope_head_dim", KEY_QK_NOPE, 1, MAX_COUNT, "width of a head without rotation"),
	UINT("qk_rope_head_dim", KEY_QK_ROPE, 1, MAX_COUNT, "width of a head with rotation"),
	UINT("v_head_dim", KEY_V_DIM, 1, MAX_COUNT, "width of a value head"),
	BOOL("rope_interleave", KEY_ROPE_PAIRS, "rotation of neighbours, not of halves (DeepSeek-V3)"),
	UINT("num_nextn_predict_layers", KEY_MTP, 0, 64, "depths of multi-token prediction"),
};
const size_t nmodel_key = COUNT(model_keys);

/* Keys with a structure of their own, read by name below and in vision.c. */
static const char *const structured[] = {
	"model_type", "hidden_act", "hidden_activation", "activation_function", "activation", "layer_types",
	"mlp_only_layers", "rope_parameters", "rope_scaling", "text_config", "llm_config", "vision_config",
	"downsample_ratio", "force_image_size", "mm_tokens_per_image", "quantization_config", "topk_method",
};
/* Keys of config.json that change no size. */
static const char *const ignored[] = {
	"architectures", "attn_implementation", "auto_map", "aux_loss_alpha", "bos_token_id", "boi_token_index",
	"cache_implementation", "chunk_size_feed_forward", "classifier_dropout", "dtype", "dynamic_image_size",
	"eoi_token_index", "eos_token_id", "ep_size", "head_dim_v", "id2label", "image_seq_length", "image_token_id",
	"image_token_index", "initial_context_length", "initializer_factor", "initializer_range", "is_decoder",
	"is_encoder_decoder", "label2id", "layer_norm_eps", "layer_norm_epsilon", "max_dynamic_patch",
	"min_dynamic_patch", "moe_layer_freq", "n_ctx", "offset_alibi", "original_max_position_embeddings",
	"pad_token_id", "pretraining_tp", "projector_hidden_act", "ps_version", "query_pre_attn_scalar",
	"rms_norm_eps", "rope_local_base_freq", "rope_theta", "rotary_emb_base", "routed_scaling_factor",
	"router_aux_loss_coef", "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "scoring_func",
	"select_layer", "seq_aux", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
	"summary_type", "summary_use_proj", "swiglu_limit", "task_specific_params", "template", "topk_method",
	"torch_dtype", "transformers_version", "unk_token_id", "use_backbone_lora", "use_cache", "use_llm_lora",
	"use_thumbnail", "video_token_id", "vision_end_token_id", "vision_feature_layer",
	"vision_feature_select_strategy", "vision_start_token_id", "vision_token_id", "_name_or_path",
};
/* Switches of the modeling code that memplan does not follow. */
static const char *const unmodelled[] = {
	"add_cross_attention", "apply_residual_connection_post_layernorm", "clip_qkv", "output_router_logits",
	"qk_layernorm", "reorder_and_upcast_attn", "router_jitter_noise", "use_mask_token",
};

static bool among(const char *s, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s, names[i]))
			return true;
	return false;
}

bool model_key_ignored(const char *name)
{
	return among(name, ignored, COUNT(ignored));
}

bool model_key_structured(const char *name)
{
	return among(name, structured, COUNT(structured));
}

bool model_key_unmodelled(const char *name)
{
	return among(name, unmodelled, COUNT(unmodelled));
}

size_t model_key_names(const char **names)
{
	_Static_assert(COUNT(model_keys) + COUNT(structured) <= MODEL_KEY_NAMES, "room for every key");
	size_t n = 0;
	for (size_t i = 0; i < COUNT(model_keys); i++)
		names[n++] = model_keys[i].name;
	for (size_t i = 0; i < COUNT(structured); i++)
		names[n++] = structured[i];
	return n;
}

const struct model_key *model_key_find(const char *name)
{
	for (size_t i = 0; i < nmodel_key; i++)
		if (!strcmp(model_keys[i].name, name))
			return &model_keys[i];
	return NULL;
}

void model_unknown_key(struct diag *d, const struct pair *p, const char *const *names, size_t n)
{
	const char *near = nearest(p->key, names, n);
	diag_error(d, p->loc, "unknown key '%s'", p->key);
	if (near)
		diag_hint(d, "did you mean '%s'?", near);
}
