/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The parameters of each class as rows.  The order of rows is the order of
 * named_parameters() in transformers 5.12.1, where a module's own parameters
 * stand before those of its children. */
#include "kernel/params_rows.h"

#define ROW(n, k, w, b, ...) { .name = (n), .kind = (k), .when = (w), .bias = (b), .dim = { __VA_ARGS__ } }
#define AROUND(n, k, s, b, ...) { .name = (n), .kind = (k), .site = (s), .bias = (b), .dim = { __VA_ARGS__ } }
#define CONV1D(n, in, out) { .name = (n), .bias = BIAS, .bias_dim = (out), .dim = { (in), (out) } }

/* modeling_llama.py and the classes made after it */
static const struct row llama_layer[] = {
	ROW("self_attn.sinks", BARE, IF_SINKS, NO_BIAS, S_H),
	ROW("self_attn.q_proj", LINEAR, IF_SPLIT, BIAS_Q, S_q, S_h),
	ROW("self_attn.k_proj", LINEAR, IF_SPLIT, BIAS_Q, S_kv, S_h),
	ROW("self_attn.v_proj", LINEAR, IF_SPLIT, BIAS_Q, S_kv, S_h),
	ROW("self_attn.q_proj", LINEAR, IF_MLA_PLAIN_Q, NO_BIAS, S_H_dn_dr, S_h),
	ROW("self_attn.q_a_proj", LINEAR, IF_MLA_LORA_Q, BIAS_Q, S_rq, S_h),
	ROW("self_attn.q_a_layernorm", NORM, IF_MLA_LORA_Q, NO_BIAS, S_rq),
	ROW("self_attn.q_b_proj", LINEAR, IF_MLA_LORA_Q, NO_BIAS, S_H_dn_dr, S_rq),
	ROW("self_attn.kv_a_proj_with_mqa", LINEAR, IF_MLA, BIAS_Q, S_rkv_dr, S_h),
	ROW("self_attn.kv_a_layernorm", NORM, IF_MLA, NO_BIAS, S_rkv),
	ROW("self_attn.kv_b_proj", LINEAR, IF_MLA, NO_BIAS, S_H_dn_dv, S_rkv),
	ROW("self_attn.o_proj", LINEAR, IF_MLA, BIAS_O, S_h, S_H_dv),
	ROW("self_attn.o_proj", LINEAR, IF_NOT_MLA, BIAS_O, S_h, S_q),
	ROW("self_attn.qkv_proj", LINEAR, IF_FUSED, NO_BIAS, S_qkv, S_h),
	ROW("self_attn.q_norm", NORM, IF_QK_HEAD, NO_BIAS, S_d),
	ROW("self_attn.k_norm", NORM, IF_QK_HEAD, NO_BIAS, S_d),
	ROW("self_attn.q_norm", NORM, IF_QK_FULL, NO_BIAS, S_q),
	ROW("self_attn.k_norm", NORM, IF_QK_FULL, NO_BIAS, S_kv),
	ROW("mlp.gate_proj", LINEAR, IF_DENSE_SPLIT, BIAS_MLP, S_f, S_h),
	ROW("mlp.up_proj", LINEAR, IF_DENSE_SPLIT, BIAS_MLP, S_f, S_h),
	ROW("mlp.gate_up_proj", LINEAR, IF_DENSE_FUSED, BIAS_MLP, S_2f, S_h),
	ROW("mlp.down_proj", LINEAR, IF_DENSE, BIAS_MLP, S_h, S_f),
	ROW("mlp.router.weight", BARE, IF_EXPERT_BIAS, NO_BIAS, S_E, S_h),
	ROW("mlp.router.bias", BARE, IF_EXPERT_BIAS, NO_BIAS, S_E),
	ROW("mlp.experts.gate_up_proj", EXPERTS, IF_EXPERT_BIAS, NO_BIAS, S_E, S_h, S_2fe),
	ROW("mlp.experts.gate_up_proj_bias", EXPERTS, IF_EXPERT_BIAS, NO_BIAS, S_E, S_2fe),
	ROW("mlp.experts.down_proj", EXPERTS, IF_EXPERT_BIAS, NO_BIAS, S_E, S_fe, S_h),
	ROW("mlp.experts.down_proj_bias", EXPERTS, IF_EXPERT_BIAS, NO_BIAS, S_E, S_h),
	ROW("mlp.gate", TABLE, IF_GATE_FIRST, NO_BIAS, S_E, S_h),
	ROW("mlp.experts.gate_up_proj", EXPERTS, IF_MOE, NO_BIAS, S_E, S_2fe, S_h),
	ROW("mlp.experts.down_proj", EXPERTS, IF_MOE, NO_BIAS, S_E, S_h, S_fe),
	ROW("mlp.gate", TABLE, IF_GATE_LAST, NO_BIAS, S_E, S_h),
	ROW("mlp.gate.e_score_correction_bias", BARE, IF_ROUTER_BIAS, NO_BIAS, S_E),
	ROW("mlp.shared_experts.gate_proj", LINEAR, IF_SHARED_MANY, BIAS_MLP, S_fs, S_h),
	ROW("mlp.shared_experts.up_proj", LINEAR, IF_SHARED_MANY, BIAS_MLP, S_fs, S_h),
	ROW("mlp.shared_experts.down_proj", LINEAR, IF_SHARED_MANY, BIAS_MLP, S_h, S_fs),
	ROW("mlp.shared_expert.gate_proj", LINEAR, IF_SHARED_GATE, NO_BIAS, S_fs, S_h),
	ROW("mlp.shared_expert.up_proj", LINEAR, IF_SHARED_GATE, NO_BIAS, S_fs, S_h),
	ROW("mlp.shared_expert.down_proj", LINEAR, IF_SHARED_GATE, NO_BIAS, S_h, S_fs),
	ROW("mlp.shared_expert_gate", LINEAR, IF_SHARED_GATE, NO_BIAS, S_1, S_h),
	ROW("input_layernorm", NORM, IF_PRE_NORM, NO_BIAS, S_h),
	ROW("post_attention_layernorm", NORM, ALWAYS, NO_BIAS, S_h),
	ROW("pre_feedforward_layernorm", NORM, IF_NORMS_4, NO_BIAS, S_h),
	ROW("post_feedforward_layernorm", NORM, IF_NORMS_POST, NO_BIAS, S_h),
};
static const struct row llama_outer[] = {
	AROUND("embed_tokens", TABLE, SITE_EMBEDDING, NO_BIAS, S_V, S_h),
	AROUND("norm", NORM, SITE_FINAL, NO_BIAS, S_h),
	AROUND("lm_head", TABLE, SITE_HEAD, NO_BIAS, S_V, S_h),
};

/* modeling_gpt2.py: the weight of a Conv1D is [in, out] */
static const struct row gpt2_layer[] = {
	ROW("ln_1", NORM, ALWAYS, NO_BIAS, S_h),
	CONV1D("attn.c_attn", S_h, S_qkv),
	CONV1D("attn.c_proj", S_h, S_h),
	ROW("ln_2", NORM, ALWAYS, NO_BIAS, S_h),
	CONV1D("mlp.c_fc", S_h, S_f),
	CONV1D("mlp.c_proj", S_f, S_h),
};
static const struct row gpt2_outer[] = {
	AROUND("wte", TABLE, SITE_EMBEDDING, NO_BIAS, S_V, S_h),
	AROUND("wpe", TABLE, SITE_EMBEDDING, NO_BIAS, S_P, S_h),
	AROUND("ln_f", NORM, SITE_FINAL, NO_BIAS, S_h),
	AROUND("lm_head", TABLE, SITE_HEAD, NO_BIAS, S_V, S_h),
};

/* modeling_gptj.py */
static const struct row gptj_layer[] = {
	ROW("ln_1", NORM, ALWAYS, NO_BIAS, S_h),
	ROW("attn.k_proj", LINEAR, ALWAYS, NO_BIAS, S_kv, S_h),
	ROW("attn.v_proj", LINEAR, ALWAYS, NO_BIAS, S_kv, S_h),
	ROW("attn.q_proj", LINEAR, ALWAYS, NO_BIAS, S_q, S_h),
	ROW("attn.out_proj", LINEAR, ALWAYS, NO_BIAS, S_h, S_q),
	ROW("mlp.fc_in", LINEAR, ALWAYS, BIAS, S_f, S_h),
	ROW("mlp.fc_out", LINEAR, ALWAYS, BIAS, S_h, S_f),
};
static const struct row gptj_outer[] = {
	AROUND("wte", TABLE, SITE_EMBEDDING, NO_BIAS, S_V, S_h),
	AROUND("ln_f", NORM, SITE_FINAL, NO_BIAS, S_h),
	AROUND("lm_head", LINEAR, SITE_HEAD, BIAS_HEAD, S_V, S_h),
};

/* modeling_gpt_neox.py */
static const struct row neox_layer[] = {
	ROW("input_layernorm", NORM, ALWAYS, NO_BIAS, S_h),
	ROW("post_attention_layernorm", NORM, ALWAYS, NO_BIAS, S_h),
	ROW("attention.query_key_value", LINEAR, ALWAYS, BIAS_Q, S_qkv, S_h),
	ROW("attention.dense", LINEAR, ALWAYS, BIAS_O, S_h, S_h),
	ROW("mlp.dense_h_to_4h", LINEAR, ALWAYS, BIAS_MLP, S_f, S_h),
	ROW("mlp.dense_4h_to_h", LINEAR, ALWAYS, BIAS_MLP, S_h, S_f),
};
static const struct row neox_outer[] = {
	AROUND("embed_in", TABLE, SITE_EMBEDDING, NO_BIAS, S_V, S_h),
	AROUND("final_layer_norm", NORM, SITE_FINAL, NO_BIAS, S_h),
	AROUND("embed_out", TABLE, SITE_HEAD, NO_BIAS, S_V, S_h),
};

/* modeling_falcon.py */
static const struct row falcon_layer[] = {
	ROW("self_attention.query_key_value", LINEAR, ALWAYS, BIAS_Q, S_qkv, S_h),
	ROW("self_attention.dense", LINEAR, ALWAYS, BIAS_O, S_h, S_h),
	ROW("mlp.dense_h_to_4h", LINEAR, ALWAYS, BIAS_MLP, S_f, S_h),
	ROW("mlp.dense_4h_to_h", LINEAR, ALWAYS, BIAS_MLP, S_h, S_f),
	ROW("post_attention_layernorm", NORM, IF_SEQUENTIAL, NO_BIAS, S_h),
	ROW("input_layernorm", NORM, IF_SEQUENTIAL, NO_BIAS, S_h),
	ROW("ln_attn", NORM, IF_TWO_PARALLEL, NO_BIAS, S_h),
	ROW("ln_mlp", NORM, IF_TWO_PARALLEL, NO_BIAS, S_h),
	ROW("input_layernorm", NORM, IF_ONE_NORM, NO_BIAS, S_h),
};
static const struct row falcon_outer[] = {
	AROUND("word_embeddings", TABLE, SITE_EMBEDDING, NO_BIAS, S_V, S_h),
	AROUND("ln_f", NORM, SITE_FINAL, NO_BIAS, S_h),
	AROUND("lm_head", TABLE, SITE_HEAD, NO_BIAS, S_V, S_h),
};

/* modeling_bloom.py */
static const struct row bloom_layer[] = {
	ROW("input_layernorm", NORM, ALWAYS, NO_BIAS, S_h),
	ROW("self_attention.query_key_value", LINEAR, ALWAYS, BIAS, S_qkv, S_h),
	ROW("self_attention.dense", LINEAR, ALWAYS, BIAS, S_h, S_h),
	ROW("post_attention_layernorm", NORM, ALWAYS, NO_BIAS, S_h),
	ROW("mlp.dense_h_to_4h", LINEAR, ALWAYS, BIAS, S_f, S_h),
	ROW("mlp.dense_4h_to_h", LINEAR, ALWAYS, BIAS, S_h, S_f),
};
static const struct row bloom_outer[] = {
	AROUND("word_embeddings", TABLE, SITE_EMBEDDING, NO_BIAS, S_V, S_h),
	AROUND("word_embeddings_layernorm", NORM, SITE_EMBEDDING, NO_BIAS, S_h),
	AROUND("ln_f", NORM, SITE_FINAL, NO_BIAS, S_h),
	AROUND("lm_head", TABLE, SITE_HEAD, NO_BIAS, S_V, S_h),
};

/* modeling_phi.py */
static const struct row phi_layer[] = {
	ROW("self_attn.q_proj", LINEAR, ALWAYS, BIAS, S_q, S_h),
	ROW("self_attn.k_proj", LINEAR, ALWAYS, BIAS, S_kv, S_h),
	ROW("self_attn.v_proj", LINEAR, ALWAYS, BIAS, S_kv, S_h),
	ROW("self_attn.dense", LINEAR, ALWAYS, BIAS, S_h, S_q),
	ROW("mlp.fc1", LINEAR, ALWAYS, BIAS, S_f, S_h),
	ROW("mlp.fc2", LINEAR, ALWAYS, BIAS, S_h, S_f),
	ROW("input_layernorm", NORM, ALWAYS, NO_BIAS, S_h),
};
static const struct row phi_outer[] = {
	AROUND("embed_tokens", TABLE, SITE_EMBEDDING, NO_BIAS, S_V, S_h),
	AROUND("final_layernorm", NORM, SITE_FINAL, NO_BIAS, S_h),
	AROUND("lm_head", LINEAR, SITE_HEAD, BIAS_HEAD, S_V, S_h),
};

/* DeepSeek-V3's multi-token prediction (its report, 2.2; the same in GLM-4.5): two norms, a projection of the
 * two halves, one decoder layer, one norm.  Embedding and head are those of the main model. */
static const struct row mtp[] = {
	AROUND("enorm", NORM, SITE_MTP, NO_BIAS, S_h),
	AROUND("hnorm", NORM, SITE_MTP, NO_BIAS, S_h),
	AROUND("eh_proj", TABLE, SITE_MTP, NO_BIAS, S_h, S_2h),
	AROUND("shared_head.norm", NORM, SITE_MTP, NO_BIAS, S_h),
};

/* modeling_qwen2_vl.py: Qwen2VisionTransformerPretrainedModel */
static const struct row qwen2_patch[] = {
	ROW("proj", TABLE, ALWAYS, NO_BIAS, S_vh, S_vC, S_vT, S_vp, S_vp),
};
static const struct row qwen2_block[] = {
	ROW("norm1", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("norm2", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("attn.qkv", LINEAR, ALWAYS, BIAS, S_v3h, S_vh),
	ROW("attn.proj", LINEAR, ALWAYS, BIAS, S_vh, S_vh),
	ROW("mlp.fc1", LINEAR, ALWAYS, BIAS, S_vf, S_vh),
	ROW("mlp.fc2", LINEAR, ALWAYS, BIAS, S_vh, S_vf),
};
static const struct row qwen2_merger[] = {
	ROW("ln_q", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("mlp.0", LINEAR, ALWAYS, BIAS, S_vm, S_vm),
	ROW("mlp.2", LINEAR, ALWAYS, BIAS, S_vo, S_vm),
};
/* modeling_qwen2_5_vl.py: RMS norms and a gated MLP with biases */
static const struct row qwen2_5_block[] = {
	ROW("norm1", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("norm2", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("attn.qkv", LINEAR, ALWAYS, BIAS, S_v3h, S_vh),
	ROW("attn.proj", LINEAR, ALWAYS, BIAS, S_vh, S_vh),
	ROW("mlp.gate_proj", LINEAR, ALWAYS, BIAS, S_vf, S_vh),
	ROW("mlp.up_proj", LINEAR, ALWAYS, BIAS, S_vf, S_vh),
	ROW("mlp.down_proj", LINEAR, ALWAYS, BIAS, S_vh, S_vf),
};
/* modeling_qwen3_vl.py: a position table, and a merger for each deepstack layer that norms after the shuffle */
static const struct row qwen3_embed[] = {
	ROW("patch_embed.proj", LINEAR, ALWAYS, BIAS, S_vh, S_vC, S_vT, S_vp, S_vp),
	ROW("pos_embed", TABLE, ALWAYS, NO_BIAS, S_vP, S_vh),
};
static const struct row qwen3_block[] = {
	ROW("norm1", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("norm2", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("attn.qkv", LINEAR, ALWAYS, BIAS, S_v3h, S_vh),
	ROW("attn.proj", LINEAR, ALWAYS, BIAS, S_vh, S_vh),
	ROW("mlp.linear_fc1", LINEAR, ALWAYS, BIAS, S_vf, S_vh),
	ROW("mlp.linear_fc2", LINEAR, ALWAYS, BIAS, S_vh, S_vf),
};
static const struct row qwen3_merger[] = {
	ROW("norm", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("linear_fc1", LINEAR, ALWAYS, BIAS, S_vm, S_vm),
	ROW("linear_fc2", LINEAR, ALWAYS, BIAS, S_vo, S_vm),
};
static const struct row qwen3_deepstack[] = {
	ROW("norm", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vm),
	ROW("linear_fc1", LINEAR, ALWAYS, BIAS, S_vm, S_vm),
	ROW("linear_fc2", LINEAR, ALWAYS, BIAS, S_vo, S_vm),
};
/* modeling_siglip.py and Gemma3MultiModalProjector of modeling_gemma3.py */
static const struct row siglip_embed[] = {
	ROW("patch_embedding", LINEAR, ALWAYS, BIAS, S_vh, S_vC, S_vp, S_vp),
	ROW("position_embedding", TABLE, ALWAYS, NO_BIAS, S_vP, S_vh),
};
static const struct row siglip_block[] = {
	ROW("layer_norm1", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("self_attn.k_proj", LINEAR, ALWAYS, BIAS, S_vh, S_vh),
	ROW("self_attn.v_proj", LINEAR, ALWAYS, BIAS, S_vh, S_vh),
	ROW("self_attn.q_proj", LINEAR, ALWAYS, BIAS, S_vh, S_vh),
	ROW("self_attn.out_proj", LINEAR, ALWAYS, BIAS, S_vh, S_vh),
	ROW("layer_norm2", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("mlp.fc1", LINEAR, ALWAYS, BIAS, S_vf, S_vh),
	ROW("mlp.fc2", LINEAR, ALWAYS, BIAS, S_vh, S_vf),
};
static const struct row siglip_end[] = {
	ROW("post_layernorm", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("head.probe", BARE, IF_VISION_HEAD, NO_BIAS, S_1, S_1, S_vh),
	ROW("head.attention.in_proj_weight", BARE, IF_VISION_HEAD, NO_BIAS, S_v3h, S_vh),
	ROW("head.attention.in_proj_bias", BARE, IF_VISION_HEAD, NO_BIAS, S_v3h),
	ROW("head.attention.out_proj", LINEAR, IF_VISION_HEAD, BIAS, S_vh, S_vh),
	ROW("head.layernorm", NORM_OF_TOWER, IF_VISION_HEAD, NO_BIAS, S_vh),
	ROW("head.mlp.fc1", LINEAR, IF_VISION_HEAD, BIAS, S_vf, S_vh),
	ROW("head.mlp.fc2", LINEAR, IF_VISION_HEAD, BIAS, S_vh, S_vf),
};
static const struct row gemma3_projector[] = {
	ROW("mm_input_projection_weight", BARE, ALWAYS, NO_BIAS, S_vh, S_h),
	ROW("mm_soft_emb_norm", NORM_W, ALWAYS, NO_BIAS, S_vh),
};
/* Towers alone: CLIPVisionModel of modeling_clip.py, SiglipVisionModel, Qwen3VLVisionModel */
static const struct row clip_layer[] = {
	ROW("self_attn.k_proj", LINEAR, ALWAYS, BIAS, S_h, S_h),
	ROW("self_attn.v_proj", LINEAR, ALWAYS, BIAS, S_h, S_h),
	ROW("self_attn.q_proj", LINEAR, ALWAYS, BIAS, S_h, S_h),
	ROW("self_attn.out_proj", LINEAR, ALWAYS, BIAS, S_h, S_h),
	ROW("layer_norm1", NORM, ALWAYS, NO_BIAS, S_h),
	ROW("mlp.fc1", LINEAR, ALWAYS, BIAS, S_f, S_h),
	ROW("mlp.fc2", LINEAR, ALWAYS, BIAS, S_h, S_f),
	ROW("layer_norm2", NORM, ALWAYS, NO_BIAS, S_h),
};
static const struct row clip_outer[] = {
	AROUND("embeddings.class_embedding", BARE, SITE_EMBEDDING, NO_BIAS, S_h),
	AROUND("embeddings.patch_embedding", TABLE, SITE_EMBEDDING, NO_BIAS, S_h, S_vC, S_vp, S_vp),
	AROUND("embeddings.position_embedding", TABLE, SITE_EMBEDDING, NO_BIAS, S_vP, S_h),
	AROUND("pre_layrnorm", NORM, SITE_EMBEDDING, NO_BIAS, S_h),
	AROUND("post_layernorm", NORM, SITE_FINAL, NO_BIAS, S_h),
};
#define IN_HEAD(n, k, b, ...) { .name = (n), .kind = (k), .when = IF_VISION_HEAD, .site = SITE_FINAL, .bias = (b), \
	.dim = { __VA_ARGS__ } }
static const struct row siglip_outer[] = {
	AROUND("embeddings.patch_embedding", LINEAR, SITE_EMBEDDING, BIAS, S_h, S_vC, S_vp, S_vp),
	AROUND("embeddings.position_embedding", TABLE, SITE_EMBEDDING, NO_BIAS, S_vP, S_h),
	AROUND("post_layernorm", NORM, SITE_FINAL, NO_BIAS, S_h),
	IN_HEAD("head.probe", BARE, NO_BIAS, S_1, S_1, S_h),
	IN_HEAD("head.attention.in_proj_weight", BARE, NO_BIAS, S_v3h, S_h),
	IN_HEAD("head.attention.in_proj_bias", BARE, NO_BIAS, S_v3h),
	IN_HEAD("head.attention.out_proj", LINEAR, BIAS, S_h, S_h),
	IN_HEAD("head.layernorm", NORM, NO_BIAS, S_h),
	IN_HEAD("head.mlp.fc1", LINEAR, BIAS, S_f, S_h),
	IN_HEAD("head.mlp.fc2", LINEAR, BIAS, S_h, S_f),
};
static const struct row qwen3_outer[] = {
	AROUND("patch_embed.proj", LINEAR, SITE_EMBEDDING, BIAS, S_h, S_vC, S_vT, S_vp, S_vp),
	AROUND("pos_embed", TABLE, SITE_EMBEDDING, NO_BIAS, S_vP, S_h),
	AROUND("merger.norm", NORM, SITE_FINAL, NO_BIAS, S_h),
	AROUND("merger.linear_fc1", LINEAR, SITE_FINAL, BIAS, S_vm, S_vm),
	AROUND("merger.linear_fc2", LINEAR, SITE_FINAL, BIAS, S_vo, S_vm),
};
/* modeling_internvl.py */
static const struct row intern_embed[] = {
	ROW("cls_token", BARE, ALWAYS, NO_BIAS, S_1, S_1, S_vh),
	ROW("position_embeddings", BARE, ALWAYS, NO_BIAS, S_1, S_vP, S_vh),
	ROW("patch_embeddings.projection", LINEAR, ALWAYS, BIAS, S_vh, S_vC, S_vp, S_vp),
};
static const struct row intern_block[] = {
	ROW("lambda_1", BARE, ALWAYS, NO_BIAS, S_vh),
	ROW("lambda_2", BARE, ALWAYS, NO_BIAS, S_vh),
	ROW("attention.q_proj", LINEAR, ALWAYS, BIAS_VISION, S_vh, S_vh),
	ROW("attention.k_proj", LINEAR, ALWAYS, BIAS_VISION, S_vh, S_vh),
	ROW("attention.v_proj", LINEAR, ALWAYS, BIAS_VISION, S_vh, S_vh),
	ROW("attention.projection_layer", LINEAR, ALWAYS, BIAS, S_vh, S_vh),
	ROW("attention.q_norm", NORM_W, IF_VISION_QK_NORM, NO_BIAS, S_vh),
	ROW("attention.k_norm", NORM_W, IF_VISION_QK_NORM, NO_BIAS, S_vh),
	ROW("mlp.fc1", LINEAR, ALWAYS, BIAS, S_vf, S_vh),
	ROW("mlp.fc2", LINEAR, ALWAYS, BIAS, S_vh, S_vf),
	ROW("layernorm_before", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
	ROW("layernorm_after", NORM_OF_TOWER, ALWAYS, NO_BIAS, S_vh),
};
static const struct row intern_projector[] = {
	ROW("layer_norm", NORM_WB, ALWAYS, NO_BIAS, S_vm),
	ROW("linear_1", LINEAR, ALWAYS, BIAS, S_h, S_vm),
	ROW("linear_2", LINEAR, ALWAYS, BIAS, S_h, S_h),
};

#define ROWS(x) { x, COUNT(x) }
static const struct tower_part qwen2_tower[] = {
	{ "model.visual.patch_embed.", ROWS(qwen2_patch), COPIES_ONE },
	{ "model.visual.blocks.*.", ROWS(qwen2_block), COPIES_DEPTH },
	{ "model.visual.merger.", ROWS(qwen2_merger), COPIES_ONE },
};
static const struct tower_part qwen2_5_tower[] = {
	{ "model.visual.patch_embed.", ROWS(qwen2_patch), COPIES_ONE },
	{ "model.visual.blocks.*.", ROWS(qwen2_5_block), COPIES_DEPTH },
	{ "model.visual.merger.", ROWS(qwen2_merger), COPIES_ONE },
};
static const struct tower_part qwen3_tower[] = {
	{ "model.visual.", ROWS(qwen3_embed), COPIES_ONE },
	{ "model.visual.blocks.*.", ROWS(qwen3_block), COPIES_DEPTH },
	{ "model.visual.merger.", ROWS(qwen3_merger), COPIES_ONE },
	{ "model.visual.deepstack_merger_list.*.", ROWS(qwen3_deepstack), COPIES_DEEPSTACK },
};
static const struct tower_part siglip_tower[] = {
	{ "model.vision_tower.embeddings.", ROWS(siglip_embed), COPIES_ONE },
	{ "model.vision_tower.encoder.layers.*.", ROWS(siglip_block), COPIES_DEPTH },
	{ "model.vision_tower.", ROWS(siglip_end), COPIES_ONE },
	{ "model.multi_modal_projector.", ROWS(gemma3_projector), COPIES_ONE },
};
static const struct tower_part intern_tower[] = {
	{ "model.vision_tower.embeddings.", ROWS(intern_embed), COPIES_ONE },
	{ "model.vision_tower.encoder.layer.*.", ROWS(intern_block), COPIES_DEPTH },
	{ "model.multi_modal_projector.", ROWS(intern_projector), COPIES_ONE },
};
const struct tower towers[VISION_N] = {
	[VISION_QWEN2] = ROWS(qwen2_tower),
	[VISION_QWEN2_5] = ROWS(qwen2_5_tower),
	[VISION_QWEN3] = ROWS(qwen3_tower),
	[VISION_SIGLIP] = ROWS(siglip_tower),
	[VISION_INTERN] = ROWS(intern_tower),
};

const struct row_list mtp_rows = ROWS(mtp), deepstack_rows = ROWS(qwen3_deepstack);
const struct layout layouts[LAYOUT_N] = {
	[LAYOUT_LLAMA] = { "layers", ROWS(llama_layer), ROWS(llama_outer) },
	[LAYOUT_GPT2] = { "h", ROWS(gpt2_layer), ROWS(gpt2_outer) },
	[LAYOUT_GPTJ] = { "h", ROWS(gptj_layer), ROWS(gptj_outer) },
	[LAYOUT_NEOX] = { "layers", ROWS(neox_layer), ROWS(neox_outer) },
	[LAYOUT_FALCON] = { "h", ROWS(falcon_layer), ROWS(falcon_outer) },
	[LAYOUT_BLOOM] = { "h", ROWS(bloom_layer), ROWS(bloom_outer) },
	[LAYOUT_PHI] = { "layers", ROWS(phi_layer), ROWS(phi_outer) },
	[LAYOUT_CLIP] = { "encoder.layers", ROWS(clip_layer), ROWS(clip_outer) },
	[LAYOUT_SIGLIP] = { "encoder.layers", ROWS(siglip_block), ROWS(siglip_outer) },
	[LAYOUT_QWEN3_TOWER] = { "blocks", ROWS(qwen3_block), ROWS(qwen3_outer) },
};
