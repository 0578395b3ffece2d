/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The rows of every logical operation, and the frameworks' choices. */
#include "kernel/kernel.h"

#include "kernel/rows.h"

#define EMIT(f) ((void (*)(void))(f))

static const struct kernel_row attention_rows[] = {
	{ "flash", "FlashAttention through scaled_dot_product_attention; q, k, v, out and logsumexp are saved",
	  "torch 2.14.1 aten/native/transformers/cuda/flash_attn", EMIT(attention_flash) },
	{ "efficient", "memory-efficient kernel through scaled_dot_product_attention; heads must be equal, masks allowed",
	  "torch 2.14.1 aten/native/transformers/cuda/mem_eff_attention", EMIT(attention_efficient) },
	{ "cudnn", "cuDNN kernel through scaled_dot_product_attention; its plan's workspace is not counted",
	  "torch 2.14.1 aten/native/cudnn/MHA.cpp", EMIT(attention_cudnn) },
	{ "math", "scaled_dot_product_attention in plain operators, in fp32",
	  "torch 2.14.1 aten/native/transformers/attention.cpp", EMIT(attention_math) },
	{ "eager", "matmul, fp32 softmax, matmul: the S x S probabilities are stored",
	  "transformers 5.12.1 eager_attention_forward", EMIT(attention_eager) },
};
static const struct kernel_row rms_norm_rows[] = {
	{ "torch_composite", "the transformers module: fp32 copy, pow, mean, rsqrt, mul",
	  "transformers 5.12.1 LlamaRMSNorm", EMIT(norm_rms_composite) },
	{ "torch_fused", "torch.nn.functional.rms_norm: the input and 1/rms are saved",
	  "torch 2.14.1 _fused_rms_norm", EMIT(norm_rms_fused) },
	{ "liger", "the input and 1/rms are saved; the gradient is written over the incoming one in pre-norm classes",
	  "Liger-Kernel ops/rms_norm.py", EMIT(norm_rms_liger) },
};
static const struct kernel_row layer_norm_rows[] = {
	{ "torch", "native_layer_norm: input, mean and 1/std are saved", "torch 2.14.1 native_layer_norm",
	  EMIT(norm_layer_torch) },
	{ "liger", "input, mean and 1/std are saved in the input's type; weight gradients in fp32 rows",
	  "Liger-Kernel ops/layer_norm.py", EMIT(norm_layer_liger) },
};
static const struct kernel_row rope_rows[] = {
	{ "torch", "apply_rotary_pos_emb: q and k one after the other, with temporaries",
	  "transformers 5.12.1 modeling_llama.py", EMIT(rope_torch) },
	{ "liger", "one kernel, in place", "Liger-Kernel ops/rope.py", EMIT(rope_liger) },
	{ "complex", "fp32 copies of q and k times a cached complex exponential",
	  "torchtitan b5bcd76 models/common/rope.py", EMIT(rope_complex) },
};
static const struct kernel_row mlp_rows[] = {
	{ "torch", "activation and product as separate tensors", "transformers 5.12.1 LlamaMLP", EMIT(mlp_torch) },
	{ "liger", "one kernel for activation and product; its backward writes in place",
	  "Liger-Kernel ops/swiglu.py, ops/geglu.py", EMIT(mlp_liger) },
};
static const struct kernel_row experts_rows[] = {
	{ "grouped_mm", "rows sorted by expert, one product for all experts", "transformers 5.12.1 integrations/moe.py",
	  EMIT(experts_grouped_mm) },
	{ "eager", "one expert after the other, rows spread evenly; each one's gradient is as large as all weights",
	  "transformers 5.12.1 MixtralExperts", EMIT(experts_eager) },
};
static const struct kernel_row loss_rows[] = {
	{ "torch", "full logits, fp32 copy, log_softmax, nll_loss", "transformers 5.12.1 ForCausalLMLoss",
	  EMIT(loss_torch) },
	{ "liger_fused_linear", "head and loss in one function, gradients made in its forward; no S x V tensor",
	  "Liger-Kernel ops/fused_linear_cross_entropy.py", EMIT(loss_liger) },
};
#define ROWS(r) (r), COUNT(r)
const struct kernel_def kernels[K_N] = {
	[K_ATTENTION] = { K_ATTENTION, "attention", "scaled dot-product attention", ROWS(attention_rows) },
	[K_RMS_NORM] = { K_RMS_NORM, "rms_norm", "RMSNorm", ROWS(rms_norm_rows) },
	[K_LAYER_NORM] = { K_LAYER_NORM, "layer_norm", "LayerNorm", ROWS(layer_norm_rows) },
	[K_ROPE] = { K_ROPE, "rope", "rotary position embedding", ROWS(rope_rows) },
	[K_MLP] = { K_MLP, "mlp", "gated activation of the feed-forward block", ROWS(mlp_rows) },
	[K_EXPERTS] = { K_EXPERTS, "experts", "experts of a mixture", ROWS(experts_rows) },
	[K_LOSS] = { K_LOSS, "loss", "head and cross entropy", ROWS(loss_rows) },
};

const struct kernel_row *kernel_row(const struct spec *s, enum kernel_op op)
{
	return &kernels[op].rows[s->kernel[op]];
}

/* torchtitan b5bcd76: config/job_config.py defaults, distributed/fsdp.py; the loss drops the logits before backward */
static const struct preset torchtitan_presets[] = {
	{ "precision.params", "fp32" }, { "precision.compute", "bf16" }, { "precision.reduce", "fp32" },
	{ "parallel.units", "layers_embedding_head" }, { "train.clip_grad_norm", "1.0" },
	{ "optimizer.implementation", "fused" },
	{ "kernels.rms_norm", "torch_fused" }, { "kernels.rope", "complex" },
};

const struct profile profiles[] = {
	{ .name = "torch", .summary = "PyTorch with transformers models", .modelled = true, .experts = true,
	  .parts = true },
	{ .name = "torchtitan", .summary = "torchtitan: FSDP2, fused RMSNorm, complex rotary embedding", .modelled = true,
	  .presets = torchtitan_presets, .npreset = COUNT(torchtitan_presets) },
	{ .name = "megatron", .summary = "Megatron-Core with Transformer Engine (plans are checked, not yet answered)" },
	{ .name = "deepspeed", .summary = "DeepSpeed ZeRO over transformers models (plans are checked, not yet answered)" },
	{ .name = "xtuner", .summary = "XTuner V1 (plans are checked, not yet answered)" },
};
const size_t nprofile = COUNT(profiles);
