/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The spec: a plan file after reading, as plain structs.  Field tables in
 * plan/schema.c fill it; nothing here is computed. */
#ifndef MEMPLAN_SPEC_H
#define MEMPLAN_SPEC_H

#include "base/base.h"
#include "input/field.h"

/* dtype.c: one row per element type */
enum dtype { DT_FP32, DT_BF16, DT_FP16, DT_FP8, DT_INT64, DT_INT32, DT_UINT8, DT_BOOL, DT_N };
struct dtype_row { const char *name; unsigned bytes; bool floating; };
extern const struct dtype_row dtypes[DT_N];

/* ---- model: a Hugging Face config.json, normalised (input/model.c) */
enum norm_kind { NORM_RMS, NORM_RMS_LATE_CAST, NORM_RMS_GEMMA, NORM_LAYER, NORM_LAYER_PLAIN };   /* PLAIN: no weights (OLMo) */
enum block_kind {             /* where the norms and residuals of a decoder layer are */
	BLOCK_PRE,            /* x + attn(norm(x)); x + mlp(norm(x)) */
	BLOCK_POST,           /* x + norm(attn(x)); x + norm(mlp(x)) (OLMo-2) */
	BLOCK_FOUR,           /* x + norm(attn(norm(x))); x + norm(mlp(norm(x))) (Gemma-2/3) */
	BLOCK_PARALLEL,       /* x + attn(norm1(x)) + mlp(norm2(x)); norm2 = norm1 where norms = 1 */
};
enum mlp_kind { MLP_GATED, MLP_GATED_FUSED, MLP_PLAIN };
enum act_kind { ACT_SILU, ACT_GELU, ACT_GELU_TANH, ACT_GELU_NEW, ACT_GELU_BLOOM, ACT_RELU2, ACT_RELU, ACT_QUICK_GELU };
enum position_kind { POS_ROPE, POS_LEARNED, POS_ALIBI };
enum qkv_kind { QKV_SPLIT, QKV_FUSED };
enum qk_norm_kind { QKNORM_NONE, QKNORM_HEAD, QKNORM_FULL };
/* apply_rotary_pos_emb: in the dtype of q; with fp32 angles (OLMo); a slice of each head, joined again (Phi-3); complex
 * numbers (DeepSeek-V2) */
enum rope_kind { ROPE_PLAIN, ROPE_FP32, ROPE_SLICED, ROPE_COMPLEX };

/* Vision towers by class: Qwen2-VL, Qwen2.5-VL and Qwen3-VL, SigLIP with Gemma-3's projector, InternViT, CLIP. */
enum vision_kind {
	VISION_NONE, VISION_QWEN2, VISION_QWEN2_5, VISION_QWEN3, VISION_SIGLIP, VISION_INTERN, VISION_CLIP, VISION_N
};
struct vision {
	bool present;                  /* beside a language part; a tower alone is the model itself */
	enum vision_kind kind;
	uint64_t depth, hidden, heads, ffn, patch, image, merge, temporal, out_hidden, channels;
	uint64_t positions;            /* rows of the position table; 0: rotary only */
	uint64_t deepstack;            /* layers whose output has a merger of its own */
	const uint8_t *deep;           /* Qwen3-VL's tower alone, per layer: 1 = has one */
	uint64_t window, full_blocks;  /* window attention: pixels; blocks with full attention; 0: all full */
	bool gated, rms, bias, qk_norm, head;    /* bias: of q, k and v; head: attention pooling head (SigLIP) */
};

struct model {
	const char *name;              /* as the user wrote it, or the file's stem */
	const char *model_type;        /* config.json model_type */
	const struct family *family;   /* row of families[] of the language part, or a copy with what config switches */
	const struct family *outer;    /* row of model_type; differs from family where there is a vision tower */
	uint64_t hidden, ffn, layers, heads, kv_heads, head_dim, vocab, positions;
	bool tied;
	enum act_kind act;
	/* resolved from family and config */
	bool q_bias, o_bias, mlp_bias, head_bias;
	enum qk_norm_kind qk_norm;
	uint64_t sliding_window;       /* 0: none */
	const uint8_t *sliding;        /* per layer: 1 = sliding attention; layers entries */
	double attn_softcap, final_softcap;   /* 0: none */
	double dropout_attn, dropout_resid, dropout_embd;
	double rotary_fraction;        /* share of head_dim that is rotated */
	/* mixture of experts; experts 0: dense */
	uint64_t experts, topk, moe_ffn, shared_experts, shared_ffn, first_dense, moe_every;
	const uint8_t *moe;            /* per layer: 1 = experts, 0 = dense MLP; layers entries */
	bool router_bias, shared_gate, expert_bias, attn_sinks;
	bool norm_topk;                /* the weights of a token's experts add up to 1 */
	uint64_t expert_groups, topk_groups;   /* experts are chosen from the best groups (DeepSeek-V3) */
	bool group_limited;            /* the same in DeepSeek-V2 (topk_method: group_limited_greedy) */
	bool rope_interleave;          /* neighbours are rotated as pairs */
	/* multi-head latent attention; kv_lora 0: none */
	uint64_t q_lora, kv_lora, qk_nope, qk_rope, v_dim;
	uint64_t mtp_layers;
	struct vision vision;
	struct loc loc;
};

enum param_layout { LAYOUT_LLAMA, LAYOUT_GPT2, LAYOUT_GPTJ, LAYOUT_NEOX, LAYOUT_FALCON, LAYOUT_BLOOM, LAYOUT_PHI,
	LAYOUT_CLIP, LAYOUT_SIGLIP, LAYOUT_QWEN3_TOWER, LAYOUT_N };
enum window_rule {            /* which layers slide where layer_types is absent */
	WINDOW_NEVER, WINDOW_ALL, WINDOW_PATTERN, WINDOW_FROM, WINDOW_EVEN_BELOW,
};
enum router_order { ROUTER_FIRST, ROUTER_LAST };   /* where the gate stands among the parameters of an MoE block */

/* How a router weighs experts: softmax; the same with fp32 weights (Mixtral); softmax of fp32 logits (DeepSeek-V2); sigmoid
 * and groups (DeepSeek-V3); softmax over the chosen (gpt-oss). */
enum gate_kind { GATE_SOFTMAX, GATE_SOFTMAX_FP32, GATE_SOFTMAX_SCALED, GATE_SIGMOID, GATE_CHOSEN };

/* What a model family's code does, one row per config.json model_type (input/family.c). */
struct family {
	const char *model_type, *class_name;
	enum param_layout layout;      /* names and order of parameters (kernel/params.c) */
	const char *stem;              /* module that holds embedding, layers and final norm: "model" */
	enum window_rule window;
	enum router_order router;
	enum gate_kind gate;
	bool experts_use_ffn;          /* expert width is intermediate_size */
	bool router_bias, shared_gate, expert_bias, attn_sinks, head_bias;
	int q_bias_key, o_bias_key, mlp_bias_key, qk_norm_key;   /* enum config_key that decides; 0: the flag below */
	const char *text;              /* family of the language part; the rest of the row is then unused */
	enum vision_kind vision;       /* without text: the class is that tower alone */
	const double *deflt;           /* by config_key: what the config class fills in; 0: none */
	enum norm_kind norm;
	enum block_kind block;
	unsigned norms;                /* norms per layer on the residual stream */
	enum mlp_kind mlp;
	enum act_kind act;             /* when the config names none */
	enum position_kind position;
	enum rope_kind rope;
	bool grouped_qkv;              /* the fused projection holds each key and value head after its queries (Falcon 40B) */
	bool local_rope;               /* sliding layers have angles of their own (Gemma-3) */
	bool embed_scale;              /* the embedding is multiplied by a scalar buffer (Gemma) */
	enum qkv_kind qkv;
	enum qk_norm_kind qk_norm;
	bool q_bias, o_bias, mlp_bias; /* defaults where the config has no flag */
	bool tied;                     /* default of tie_word_embeddings */
	const char *source;
};
extern const struct family families[];
extern const size_t nfamily;

/* ---- hardware: a calibration file (calibrations/NAME.yaml) */
enum provenance { PROV_ASSUMED, PROV_DATASHEET, PROV_MEASURED };
extern const char *const provenance_names[];
struct constant { const char *name; uint64_t value; enum provenance prov; const char *source; bool set; };
enum constant_id {
	CONST_CAPACITY,               /* bytes the driver reports to a process */
	CONST_CONTEXT,                /* CUDA context, bytes per process */
	CONST_LIBRARY,                /* lazily loaded kernels and library state, bytes */
	CONST_CUBLAS_WORKSPACE,       /* bytes per handle and stream, inside the allocator */
	CONST_NCCL,                   /* bytes per communicator */
	CONST_MEMORY_BANDWIDTH,       /* bytes/s */
	CONST_MATRIX_RATE,            /* dense bf16 FLOP/s */
	CONST_LINK_BANDWIDTH,         /* GPU to GPU, one way, bytes/s */
	CONST_HOST_BANDWIDTH,         /* host to GPU over PCIe or C2C, one way, bytes/s */
	CONST_SM_COUNT,               /* multiprocessors */
	CONST_N
};
struct gpu { const char *name, *product; struct constant c[CONST_N]; };

struct hardware {
	const char *gpu_name; struct gpu gpu;
	uint64_t gpus, gpus_per_node, host_memory, capacity;   /* capacity 0: the calibration's */
	double headroom;                                       /* percent of capacity kept free */
	struct loc loc_gpus;
};

/* ---- the rest of the plan */
enum pipeline_schedule { PIPE_1F1B, PIPE_INTERLEAVED, PIPE_GPIPE, PIPE_ZB_H1, PIPE_ZB_V, PIPE_DUALPIPE_V };
enum reshard { RESHARD_NEVER, RESHARD_YES, RESHARD_ALWAYS };
enum fsdp_units { UNITS_LAYERS, UNITS_LAYERS_EMBEDDING_HEAD };
struct parallel {
	uint64_t tensor, pipeline, virtual_stages, context, ulysses, expert, expert_tensor;
	bool sequence;
	enum pipeline_schedule schedule;
	struct uints stage_layers;     /* decoder layers of each stage; n 0: even */
	uint64_t shard, replicate;     /* data parallel; shard is what ZeRO/FSDP divides by */
	int zero;                      /* 0 DDP | 1 | 2 | 3 */
	enum reshard reshard_after_forward;
	enum fsdp_units units;         /* what fully_shard is called on, besides the root */
	bool bucket_view;              /* DDP gradient_as_bucket_view */
	double bucket_mb;              /* DDP bucket_cap_mb; 0: framework default (25, first bucket 1) */
	uint64_t forward_prefetch, backward_prefetch;   /* FSDP: explicit prefetch depth, 0 = implicit */
	bool cpu_offload;              /* FSDP CPUOffloadPolicy */
	bool no_sync;                  /* gradients are reduced in the last micro-batch of a step only */
	struct loc loc_tensor, loc_data, loc_zero, loc_pipeline, loc_context, loc_ulysses, loc_expert, loc_sequence;
};

enum fp8_recipe { FP8_OFF, FP8_DELAYED, FP8_TENSORWISE, FP8_BLOCKWISE, FP8_MXFP8 };
struct precision {
	enum dtype params, compute, gradients, reduce, master, optimizer;
	enum fp8_recipe fp8;
	bool autocast, grad_scaler;
	struct loc loc, loc_fp8, loc_gradients;
};

enum optimizer_name { OPT_ADAMW, OPT_ADAM, OPT_SGD, OPT_ADAFACTOR, OPT_LION, OPT_ADAM8BIT };
enum optimizer_impl { IMPL_FUSED, IMPL_FOREACH, IMPL_FORLOOP };
struct optimizer {
	enum optimizer_name name; enum optimizer_impl impl;
	double momentum, weight_decay;
	bool amsgrad;
	struct loc loc;
};

enum lora_base { LORA_BASE_PARAMS, LORA_BASE_NF4, LORA_BASE_INT8 };   /* PARAMS: as precision.params */
struct lora {
	bool present;                  /* false: full fine-tuning */
	uint64_t rank;
	double alpha, dropout;
	struct strings targets;
	enum lora_base base;
	enum dtype dtype;              /* of the adapters */
	struct loc loc, loc_targets, loc_base;
};

struct train {
	uint64_t micro_batch, seq_len, grad_accum, global_batch;
	double padding;                /* percent of tokens that are padding */
	bool packed;                   /* several documents in a sequence */
	struct lora lora;
	struct strings freeze;         /* parts of the model that are not trained */
	double clip_grad_norm;         /* 0: off */
	bool zero_grad_to_none;
	bool hold_logits;              /* the model output outlives the loss, as in a loop that keeps `outputs` */
	bool separate_labels;          /* labels are a tensor of their own */
	bool position_ids;             /* the batch holds position_ids */
	struct loc loc, loc_freeze, loc_padding, loc_packed;
};

struct allocator_conf { bool expandable_segments; uint64_t max_split_size_mb; };

/* one entry of `memory:`, a row of opts[] with its knobs */
struct choice { const struct opt *opt; void *knobs; struct loc loc; };

/* Logical operations that have several implementations; kernel/kernel.h has their rows. */
enum kernel_op { K_ATTENTION, K_RMS_NORM, K_LAYER_NORM, K_ROPE, K_MLP, K_EXPERTS, K_LOSS, K_N };

struct spec {
	int schema;                    /* of the file's format */
	const char *title;             /* "": none */
	int framework; struct loc loc_framework;   /* row of profiles[] */
	struct model model;
	struct hardware hw;
	struct parallel par;
	struct precision prec;
	struct optimizer optim;
	struct train train;
	int kernel[K_N];               /* row of kernels[op].rows */
	struct loc loc_kernel[K_N];
	VEC(struct choice) memory;
	struct allocator_conf alloc;
};

#endif
