/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of model families.  Everything here is read off the modeling and
 * configuration files of transformers 5.12.1 named in `source`; defaults are
 * those of the config class, so a config.json that omits a key means the same
 * here as there. */
#include "input/family.h"

#include <string.h>

#define DEFAULTS(...) (const double[KEY_N]){ __VA_ARGS__ }
/* hidden, ffn, layers, heads, kv heads (0: as heads), vocabulary, positions */
#define DIMS(h, f, l, a, g, v, p) [KEY_HIDDEN] = (h), [KEY_FFN] = (f), [KEY_LAYERS] = (l), [KEY_HEADS] = (a), \
	[KEY_KV_HEADS] = (g), [KEY_VOCAB] = (v), [KEY_POSITIONS] = (p)
#define MLA(q, kv) [KEY_Q_LORA] = (q), [KEY_KV_LORA] = (kv), [KEY_QK_NOPE] = 128, [KEY_QK_ROPE] = 64, \
	[KEY_V_DIM] = 128
#define MOE(experts, topk, width) [KEY_EXPERTS] = (experts), [KEY_TOPK] = (topk), [KEY_MOE_FFN] = (width), \
	[KEY_MOE_EVERY] = 1
#define GROUPS(n, best) [KEY_GROUPS] = (n), [KEY_TOPK_GROUPS] = (best)
#define TOWER(kind) .vision = (kind), .stem = "", .norm = NORM_LAYER, .norms = 2, .mlp = MLP_PLAIN, .q_bias = true, \
	.o_bias = true, .mlp_bias = true, .deflt = DEFAULTS(0)

const struct family families[] = {
	{ .model_type = "llama", .class_name = "LlamaForCausalLM", .stem = "model", .norms = 2,
	  .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS, .mlp_bias_key = KEY_MLP_BIAS,
	  .source = "models/llama",
	  .deflt = DEFAULTS(DIMS(4096, 11008, 32, 32, 0, 32000, 2048)) },
	{ .model_type = "mistral", .class_name = "MistralForCausalLM", .stem = "model", .norms = 2,
	  .window = WINDOW_ALL, .source = "models/mistral",
	  .deflt = DEFAULTS(DIMS(4096, 14336, 32, 32, 8, 32000, 131072), [KEY_WINDOW] = 4096, [KEY_USE_WINDOW] = 1) },
	{ .model_type = "qwen2", .class_name = "Qwen2ForCausalLM", .stem = "model", .norms = 2, .q_bias = true,
	  .window = WINDOW_FROM, .source = "models/qwen2",
	  .deflt = DEFAULTS(DIMS(4096, 22016, 32, 32, 32, 151936, 32768), [KEY_WINDOW] = 4096,
			    [KEY_WINDOW_FROM] = 28) },
	{ .model_type = "qwen3", .class_name = "Qwen3ForCausalLM", .stem = "model", .norms = 2,
	  .qk_norm = QKNORM_HEAD, .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS,
	  .window = WINDOW_FROM, .source = "models/qwen3",
	  .deflt = DEFAULTS(DIMS(4096, 22016, 32, 32, 32, 151936, 32768), [KEY_HEAD_DIM] = 128,
			    [KEY_WINDOW] = 4096, [KEY_WINDOW_FROM] = 28) },
	{ .model_type = "gemma", .class_name = "GemmaForCausalLM", .stem = "model", .norms = 2,
	  .norm = NORM_RMS_GEMMA, .act = ACT_GELU_TANH, .tied = true, .embed_scale = true,
	  .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS, .source = "models/gemma",
	  .deflt = DEFAULTS(DIMS(3072, 24576, 28, 16, 16, 256000, 8192), [KEY_HEAD_DIM] = 256) },
	{ .model_type = "gemma2", .class_name = "Gemma2ForCausalLM", .stem = "model", .norms = 4,
	  .norm = NORM_RMS_GEMMA, .block = BLOCK_FOUR, .act = ACT_GELU_TANH, .tied = true, .embed_scale = true,
	  .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS,
	  .window = WINDOW_PATTERN, .source = "models/gemma2",
	  .deflt = DEFAULTS(DIMS(2304, 9216, 26, 8, 4, 256000, 8192), [KEY_HEAD_DIM] = 256, [KEY_WINDOW] = 4096,
			    [KEY_USE_WINDOW] = 1, [KEY_WINDOW_PATTERN] = 2, [KEY_ATTN_SOFTCAP] = 50,
			    [KEY_FINAL_SOFTCAP] = 30) },
	{ .model_type = "gemma3_text", .class_name = "Gemma3ForCausalLM", .stem = "model", .norms = 4,
	  .norm = NORM_RMS_GEMMA, .block = BLOCK_FOUR, .act = ACT_GELU_TANH, .tied = true, .qk_norm = QKNORM_HEAD,
	  .embed_scale = true, .local_rope = true,
	  .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS,
	  .window = WINDOW_PATTERN, .source = "models/gemma3",
	  .deflt = DEFAULTS(DIMS(2304, 9216, 26, 8, 4, 262208, 131072), [KEY_HEAD_DIM] = 256, [KEY_WINDOW] = 4096,
			    [KEY_USE_WINDOW] = 1, [KEY_WINDOW_PATTERN] = 6) },
	{ .model_type = "gemma3", .class_name = "Gemma3ForConditionalGeneration", .text = "gemma3_text",
	  .vision = VISION_SIGLIP, .tied = true, .source = "models/gemma3, models/siglip" },
	{ .model_type = "gpt2", .class_name = "GPT2LMHeadModel", .layout = LAYOUT_GPT2, .stem = "transformer",
	  .norm = NORM_LAYER, .norms = 2, .mlp = MLP_PLAIN, .act = ACT_GELU_NEW, .position = POS_LEARNED,
	  .qkv = QKV_FUSED, .q_bias = true, .o_bias = true, .mlp_bias = true, .tied = true, .source = "models/gpt2",
	  .deflt = DEFAULTS(DIMS(768, 0, 12, 12, 0, 50257, 1024), [KEY_DROP_ATTN] = 0.1, [KEY_DROP_RESID] = 0.1,
			    [KEY_DROP_EMBD] = 0.1) },
	{ .model_type = "gpt_neox", .class_name = "GPTNeoXForCausalLM", .layout = LAYOUT_NEOX, .stem = "gpt_neox",
	  .norm = NORM_LAYER, .norms = 2, .block = BLOCK_PARALLEL, .mlp = MLP_PLAIN, .act = ACT_GELU,
	  .qkv = QKV_FUSED, .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS, .mlp_bias = true,
	  .source = "models/gpt_neox",
	  .deflt = DEFAULTS(DIMS(6144, 24576, 44, 64, 0, 50432, 2048), [KEY_ATTENTION_BIAS] = 1, [KEY_ROTARY] = 0.25,
			    [KEY_PARALLEL_RESIDUAL] = 1) },
	{ .model_type = "gptj", .class_name = "GPTJForCausalLM", .layout = LAYOUT_GPTJ, .stem = "transformer",
	  .norm = NORM_LAYER, .norms = 1, .block = BLOCK_PARALLEL, .mlp = MLP_PLAIN, .act = ACT_GELU_NEW,
	  .mlp_bias = true, .head_bias = true, .source = "models/gptj",
	  .deflt = DEFAULTS(DIMS(4096, 0, 28, 16, 0, 50400, 2048), [KEY_ROTARY_DIM] = 64) },
	{ .model_type = "falcon", .class_name = "FalconForCausalLM", .layout = LAYOUT_FALCON, .stem = "transformer",
	  .norm = NORM_LAYER, .norms = 1, .block = BLOCK_PARALLEL, .mlp = MLP_PLAIN, .act = ACT_GELU,
	  .qkv = QKV_FUSED, .q_bias_key = KEY_BIAS, .o_bias_key = KEY_BIAS, .mlp_bias_key = KEY_BIAS, .tied = true,
	  .source = "models/falcon",
	  .deflt = DEFAULTS(DIMS(4544, 0, 32, 71, 0, 65024, 2048), [KEY_MULTI_QUERY] = 1, [KEY_PARALLEL_ATTN] = 1) },
	{ .model_type = "bloom", .class_name = "BloomForCausalLM", .layout = LAYOUT_BLOOM, .stem = "transformer",
	  .norm = NORM_LAYER, .norms = 2, .mlp = MLP_PLAIN, .act = ACT_GELU_BLOOM, .position = POS_ALIBI,
	  .qkv = QKV_FUSED, .q_bias = true, .o_bias = true, .mlp_bias = true, .tied = true, .source = "models/bloom",
	  .deflt = DEFAULTS(DIMS(64, 0, 2, 8, 0, 250880, 2048)) },
	{ .model_type = "phi", .class_name = "PhiForCausalLM", .layout = LAYOUT_PHI, .stem = "model",
	  .norm = NORM_LAYER, .norms = 1, .block = BLOCK_PARALLEL, .mlp = MLP_PLAIN, .act = ACT_GELU_NEW,
	  .q_bias = true, .o_bias = true, .mlp_bias = true, .head_bias = true, .source = "models/phi",
	  .deflt = DEFAULTS(DIMS(2048, 8192, 24, 32, 0, 51200, 2048), [KEY_ROTARY] = 0.5) },
	{ .model_type = "phi3", .class_name = "Phi3ForCausalLM", .stem = "model", .norms = 2,
	  .mlp = MLP_GATED_FUSED, .qkv = QKV_FUSED, .rope = ROPE_SLICED, .window = WINDOW_ALL, .source = "models/phi3",
	  .deflt = DEFAULTS(DIMS(3072, 8192, 32, 32, 0, 32064, 4096), [KEY_USE_WINDOW] = 1) },
	{ .model_type = "olmo", .class_name = "OlmoForCausalLM", .stem = "model", .norms = 2, .norm = NORM_LAYER_PLAIN,
	  .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS, .rope = ROPE_FP32, .source = "models/olmo",
	  .deflt = DEFAULTS(DIMS(4096, 11008, 32, 32, 0, 50304, 2048)) },
	{ .model_type = "olmo2", .class_name = "Olmo2ForCausalLM", .stem = "model", .norms = 2, .block = BLOCK_POST,
	  .qk_norm = QKNORM_FULL, .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS,
	  .norm = NORM_RMS_LATE_CAST, .rope = ROPE_FP32, .source = "models/olmo2",
	  .deflt = DEFAULTS(DIMS(4096, 11008, 32, 32, 0, 50304, 2048)) },
	{ .model_type = "mixtral", .class_name = "MixtralForCausalLM", .stem = "model", .norms = 2,
	  .experts_use_ffn = true, .gate = GATE_SOFTMAX_FP32, .window = WINDOW_ALL, .source = "models/mixtral",
	  .deflt = DEFAULTS(DIMS(4096, 14336, 32, 32, 8, 32000, 131072), MOE(8, 2, 0), [KEY_NORM_TOPK] = 1,
			    [KEY_USE_WINDOW] = 1) },
	{ .model_type = "qwen2_moe", .class_name = "Qwen2MoeForCausalLM", .stem = "model", .norms = 2,
	  .q_bias_key = KEY_QKV_BIAS, .shared_gate = true, .window = WINDOW_EVEN_BELOW, .source = "models/qwen2_moe",
	  .deflt = DEFAULTS(DIMS(2048, 5632, 24, 16, 16, 151936, 32768), MOE(60, 4, 1408), [KEY_SHARED] = 1,
			    [KEY_SHARED_FFN] = 5632, [KEY_QKV_BIAS] = 1, [KEY_WINDOW] = 4096,
			    [KEY_WINDOW_FROM] = 28) },
	{ .model_type = "qwen3_moe", .class_name = "Qwen3MoeForCausalLM", .stem = "model", .norms = 2,
	  .qk_norm = QKNORM_HEAD, .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS,
	  .router = ROUTER_LAST, .window = WINDOW_ALL, .source = "models/qwen3_moe",
	  .deflt = DEFAULTS(DIMS(2048, 6144, 24, 32, 4, 151936, 32768), MOE(128, 8, 768), [KEY_WINDOW] = 4096) },
	{ .model_type = "olmoe", .class_name = "OlmoeForCausalLM", .stem = "model", .norms = 2,
	  .qk_norm = QKNORM_FULL, .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS,
	  .experts_use_ffn = true, .source = "models/olmoe",
	  .deflt = DEFAULTS(DIMS(2048, 2048, 16, 16, 0, 50304, 4096), MOE(64, 8, 0)) },
	{ .model_type = "deepseek_v2", .class_name = "DeepseekV2ForCausalLM", .stem = "model", .norms = 2,
	  .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS, .mlp_bias_key = KEY_MLP_BIAS,
	  .router = ROUTER_LAST, .gate = GATE_SOFTMAX_SCALED, .rope = ROPE_COMPLEX, .source = "models/deepseek_v2",
	  .deflt = DEFAULTS(DIMS(4096, 11008, 32, 32, 0, 32000, 2048), MLA(1536, 512), MOE(64, 0, 1407),
			    [KEY_SHARED] = 2) },
	{ .model_type = "deepseek_v3", .class_name = "DeepseekV3ForCausalLM", .stem = "model", .norms = 2,
	  .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS, .router_bias = true,
	  .router = ROUTER_LAST, .gate = GATE_SIGMOID, .source = "models/deepseek_v3",
	  .deflt = DEFAULTS(DIMS(7168, 18432, 61, 128, 128, 129280, 4096), MLA(1536, 512), MOE(256, 8, 2048),
			    [KEY_SHARED] = 1, [KEY_FIRST_DENSE] = 3, [KEY_NORM_TOPK] = 1, GROUPS(8, 4), [KEY_ROPE_PAIRS] = 1) },
	{ .model_type = "kimi_k2", .class_name = "DeepseekV3ForCausalLM", .stem = "model", .norms = 2,
	  .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS, .router_bias = true,
	  .router = ROUTER_LAST, .gate = GATE_SIGMOID, .source = "models/deepseek_v3",
	  .deflt = DEFAULTS(DIMS(7168, 18432, 61, 64, 64, 163840, 4096), MLA(1536, 512), MOE(384, 8, 2048),
			    [KEY_SHARED] = 1, [KEY_FIRST_DENSE] = 1, [KEY_NORM_TOPK] = 1, GROUPS(8, 4), [KEY_ROPE_PAIRS] = 1) },
	{ .model_type = "glm4_moe", .class_name = "Glm4MoeForCausalLM", .stem = "model", .norms = 2,
	  .qk_norm = QKNORM_HEAD, .qk_norm_key = KEY_QK_NORM, .q_bias_key = KEY_ATTENTION_BIAS, .router_bias = true,
	  .router = ROUTER_LAST, .gate = GATE_SIGMOID, .source = "models/glm4_moe",
	  .deflt = DEFAULTS(DIMS(4096, 10944, 46, 96, 8, 151552, 131072), MOE(128, 8, 1408), [KEY_SHARED] = 1,
			    [KEY_FIRST_DENSE] = 1, [KEY_NORM_TOPK] = 1, GROUPS(1, 1), [KEY_ROTARY] = 0.5) },
	{ .model_type = "gpt_oss", .class_name = "GptOssForCausalLM", .stem = "model", .norms = 2,
	  .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS, .expert_bias = true, .attn_sinks = true,
	  .gate = GATE_CHOSEN,
	  .experts_use_ffn = true, .window = WINDOW_PATTERN, .source = "models/gpt_oss",
	  .deflt = DEFAULTS(DIMS(2880, 2880, 36, 64, 8, 201088, 131072), [KEY_HEAD_DIM] = 64, MOE(128, 4, 0),
			    [KEY_ATTENTION_BIAS] = 1, [KEY_WINDOW] = 128, [KEY_USE_WINDOW] = 1,
			    [KEY_WINDOW_PATTERN] = 2) },
	{ .model_type = "qwen2_vl_text", .class_name = "Qwen2VLTextModel", .stem = "model", .norms = 2, .q_bias = true,
	  .window = WINDOW_FROM, .source = "models/qwen2_vl",
	  .deflt = DEFAULTS(DIMS(8192, 29568, 80, 64, 8, 152064, 32768), [KEY_WINDOW] = 4096,
			    [KEY_WINDOW_FROM] = 80) },
	{ .model_type = "qwen2_vl", .class_name = "Qwen2VLForConditionalGeneration", .text = "qwen2_vl_text",
	  .vision = VISION_QWEN2, .source = "models/qwen2_vl" },
	{ .model_type = "qwen2_5_vl_text", .class_name = "Qwen2_5_VLTextModel", .stem = "model", .norms = 2,
	  .q_bias = true, .window = WINDOW_FROM, .source = "models/qwen2_5_vl",
	  .deflt = DEFAULTS(DIMS(8192, 29568, 80, 64, 8, 152064, 32768), [KEY_WINDOW] = 4096,
			    [KEY_WINDOW_FROM] = 80) },
	{ .model_type = "qwen2_5_vl", .class_name = "Qwen2_5_VLForConditionalGeneration", .text = "qwen2_5_vl_text",
	  .vision = VISION_QWEN2_5, .source = "models/qwen2_5_vl" },
	{ .model_type = "qwen3_vl_text", .class_name = "Qwen3VLTextModel", .stem = "model", .norms = 2,
	  .qk_norm = QKNORM_HEAD, .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS,
	  .source = "models/qwen3_vl",
	  .deflt = DEFAULTS(DIMS(4096, 22016, 32, 32, 32, 151936, 128000), [KEY_HEAD_DIM] = 128) },
	{ .model_type = "qwen3_vl", .class_name = "Qwen3VLForConditionalGeneration", .text = "qwen3_vl_text",
	  .vision = VISION_QWEN3, .source = "models/qwen3_vl" },
	{ .model_type = "qwen3_vl_moe_text", .class_name = "Qwen3VLMoeTextModel", .stem = "model", .norms = 2,
	  .qk_norm = QKNORM_HEAD, .q_bias_key = KEY_ATTENTION_BIAS, .o_bias_key = KEY_ATTENTION_BIAS,
	  .router = ROUTER_LAST, .source = "models/qwen3_vl_moe",
	  .deflt = DEFAULTS(DIMS(2048, 5632, 24, 16, 16, 151936, 128000), MOE(60, 4, 1408)) },
	{ .model_type = "qwen3_vl_moe", .class_name = "Qwen3VLMoeForConditionalGeneration", .text = "qwen3_vl_moe_text",
	  .vision = VISION_QWEN3, .source = "models/qwen3_vl_moe" },
	{ .model_type = "internvl", .class_name = "InternVLForConditionalGeneration", .text = "qwen2",
	  .vision = VISION_INTERN, .tied = true, .source = "models/internvl" },
	{ .model_type = "internvl_chat", .class_name = "InternVLChatModel", .text = "qwen2",
	  .vision = VISION_INTERN, .source = "models/internvl" },
	{ .model_type = "interns1", .class_name = "InternS1ForConditionalGeneration", .text = "qwen3",
	  .vision = VISION_INTERN, .source = "models/internvl" },
	{ .model_type = "clip_vision_model", .class_name = "CLIPVisionModel", .layout = LAYOUT_CLIP, TOWER(VISION_CLIP),
	  .act = ACT_QUICK_GELU, .position = POS_LEARNED, .source = "models/clip" },
	{ .model_type = "siglip_vision_model", .class_name = "SiglipVisionModel", .layout = LAYOUT_SIGLIP,
	  TOWER(VISION_SIGLIP), .act = ACT_GELU_TANH, .position = POS_LEARNED, .source = "models/siglip" },
	{ .model_type = "qwen3_vl_vision", .class_name = "Qwen3VLVisionModel", .layout = LAYOUT_QWEN3_TOWER,
	  TOWER(VISION_QWEN3), .act = ACT_GELU_TANH, .source = "models/qwen3_vl" },
};
const size_t nfamily = COUNT(families);

const struct family *family_find(const char *model_type)
{
	for (size_t i = 0; i < nfamily; i++)
		if (!strcmp(families[i].model_type, model_type))
			return &families[i];
	return NULL;
}

const char *family_nearest(const char *model_type)
{
	const char *names[COUNT(families)];
	for (size_t i = 0; i < nfamily; i++)
		names[i] = families[i].model_type;
	return nearest(model_type, names, nfamily);
}
