/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The rows of a plan file: everything a user can write, once. */
#include "plan/schema.h"

#include "kernel/kernel.h"
#include "opt/opt.h"

#include <string.h>

#define IN(s, m) .offset = offsetof(struct s, m)
#define PLACE(s, m) .loc_offset = offsetof(struct s, m)

static const struct field_choice schema_choices[] = { { "memplan.plan/1", "this format" } };

/* ---- hardware */

static const struct field hardware_fields[] = {
	{ "gpu", FIELD_STRING, IN(hardware, gpu_name),
	  .doc = "a name of \"memplan list gpus\", or the path of a calibration file" },
	{ "gpus", FIELD_UINT, IN(hardware, gpus), PLACE(hardware, loc_gpus), .min = 1, .max = GPUS_MAX, .unit = "GPUs",
	  .computed = "the product of the degrees in parallel", .doc = "all GPUs of the run" },
	{ "gpus_per_node", FIELD_UINT, IN(hardware, gpus_per_node), .min = 1, .max = 1024, .unit = "GPUs",
	  .computed = "the largest divisor of gpus up to 8", .doc = "GPUs that share a host" },
	{ "host_memory", FIELD_BYTES, IN(hardware, host_memory), .min = 1, .deflt = "off", .off = true,
	  .doc = "memory of one host; off: not checked" },
	{ "capacity", FIELD_BYTES, IN(hardware, capacity), .min = 1, .deflt = "off", .off = true,
	  .doc = "memory of one GPU as the driver reports it; off: the calibration's" },
	{ "headroom", FIELD_PERCENT, IN(hardware, headroom), .min = 0, .max = 90, .deflt = "0%",
	  .doc = "share of the capacity that must stay free" },
};

/* ---- parallel */

static const struct field_choice zero_choices[] = {
	{ "0", "nothing is sharded: DistributedDataParallel" }, { "1", "optimizer states are sharded" },
	{ "2", "gradients too" }, { "3", "parameters too: FSDP" },
};
static const struct field_choice schedule_choices[] = {
	[PIPE_1F1B] = { "1f1b", "one forward, one backward" },
	[PIPE_INTERLEAVED] = { "interleaved", "1F1B over virtual stages" },
	[PIPE_GPIPE] = { "gpipe", "all forwards, then all backwards" },
	[PIPE_ZB_H1] = { "zb_h1", "zero bubble, memory of 1F1B" },
	[PIPE_ZB_V] = { "zb_v", "zero bubble, two chunks in a V" },
	[PIPE_DUALPIPE_V] = { "dualpipe_v", "DualPipe in a V" },
};
static const struct field_choice reshard_choices[] = {
	[RESHARD_NEVER] = { "false", "they stay until their gradients are reduced" },
	[RESHARD_YES] = { "true", "those of layers, and of an embedding that is a unit of its own" },
	[RESHARD_ALWAYS] = { "always", "those of final norm and head too, where they are a unit of their own" },
};
static const struct field_choice units_choices[] = {
	[UNITS_LAYERS] = { "layers", "each decoder layer; the root holds embedding, final norm and head" },
	[UNITS_LAYERS_EMBEDDING_HEAD] = { "layers_embedding_head",
		"each decoder layer, the embedding, final norm with head; one group of both where their weights are tied" },
};
static const struct field data_fields[] = {
	{ "shard", FIELD_UINT, IN(parallel, shard), PLACE(parallel, loc_data), .min = 1, .max = GPUS_MAX, .unit = "GPUs",
	  .computed = "with zero > 0 the GPUs that the other degrees leave, else 1",
	  .doc = "what ZeRO or FSDP divides by" },
	{ "replicate", FIELD_UINT, IN(parallel, replicate), .min = 1, .max = GPUS_MAX, .unit = "GPUs",
	  .computed = "with zero 0 the GPUs that the other degrees leave, else 1",
	  .doc = "copies of the (sharded) model" },
};
static const struct field parallel_fields[] = {
	{ "tensor", FIELD_UINT, IN(parallel, tensor), PLACE(parallel, loc_tensor), .min = 1, .max = 1024, .deflt = "1",
	  .doc = "tensor parallelism" },
	{ "sequence", FIELD_BOOL, IN(parallel, sequence), PLACE(parallel, loc_sequence), .deflt = "false",
	  .doc = "sequence parallelism of the tensor-parallel group (Megatron)" },
	{ "pipeline", FIELD_UINT, IN(parallel, pipeline), PLACE(parallel, loc_pipeline), .min = 1, .max = 1024,
	  .deflt = "1", .doc = "pipeline stages" },
	{ "virtual", FIELD_UINT, IN(parallel, virtual_stages), .min = 1, .max = 256, .deflt = "1",
	  .doc = "virtual stages of each pipeline stage" },
	{ "layers", FIELD_UINTS, IN(parallel, stage_layers), .min = 0, .max = 10000, .computed = "evenly divided",
	  .doc = "decoder layers of each (virtual) stage" },
	{ "schedule", FIELD_CHOICE, IN(parallel, schedule), CHOICES(schedule_choices), .deflt = "1f1b",
	  .doc = "order of forwards and backwards in a pipeline" },
	{ "context", FIELD_UINT, IN(parallel, context), PLACE(parallel, loc_context), .min = 1, .max = 1024,
	  .deflt = "1", .doc = "context parallelism: the sequence divided over a ring" },
	{ "ulysses", FIELD_UINT, IN(parallel, ulysses), PLACE(parallel, loc_ulysses), .min = 1, .max = 1024,
	  .deflt = "1", .doc = "sequence parallelism that exchanges heads (DeepSpeed-Ulysses)" },
	{ "expert", FIELD_UINT, IN(parallel, expert), PLACE(parallel, loc_expert), .min = 1, .max = 1 << 16,
	  .deflt = "1", .doc = "expert parallelism, within the other degrees" },
	{ "expert_tensor", FIELD_UINT, IN(parallel, expert_tensor), .min = 1, .max = 1024, .deflt = "1",
	  .doc = "tensor parallelism of the experts" },
	{ "data", FIELD_MAP, .offset = 0, FIELDS(data_fields), .doc = "data parallelism" },
	{ "zero", FIELD_CHOICE, IN(parallel, zero), PLACE(parallel, loc_zero), CHOICES(zero_choices),
	  .computed = "3 where data.shard is more than 1, else 0", .doc = "what the data-parallel GPUs share out" },
	{ "reshard_after_forward", FIELD_CHOICE, IN(parallel, reshard_after_forward), CHOICES(reshard_choices),
	  .deflt = "true", .doc = "FSDP: free gathered parameters after the forward of their unit" },
	{ "units", FIELD_CHOICE, IN(parallel, units), CHOICES(units_choices), .deflt = "layers",
	  .doc = "FSDP: what fully_shard is called on before the root" },
	{ "forward_prefetch", FIELD_UINT, IN(parallel, forward_prefetch), .min = 0, .max = 16, .deflt = "0",
	  .unit = "units", .doc = "FSDP: units gathered ahead by explicit prefetch in forward" },
	{ "backward_prefetch", FIELD_UINT, IN(parallel, backward_prefetch), .min = 0, .max = 16, .deflt = "0",
	  .unit = "units", .doc = "the same in backward; 0 is FSDP's own order" },
	{ "cpu_offload", FIELD_BOOL, IN(parallel, cpu_offload), .deflt = "false",
	  .doc = "FSDP: parameters, gradients and optimizer states live on the host" },
	{ "no_sync", FIELD_BOOL, IN(parallel, no_sync), .deflt = "false",
	  .doc = "gradients are reduced in the last micro-batch of a step only" },
	{ "bucket_mb", FIELD_REAL, IN(parallel, bucket_mb), .min = 0, .max = 1 << 20, .deflt = "off", .off = true,
	  .unit = "MiB", .doc = "DDP: bucket_cap_mb; off: 25 with a first bucket of 1" },
	{ "bucket_view", FIELD_BOOL, IN(parallel, bucket_view), .deflt = "false",
	  .doc = "DDP: gradient_as_bucket_view" },
};

/* ---- precision; rows stand in the order of enum dtype */

static const struct field_choice dtype_choices[] = {
	[DT_FP32] = { "fp32", "4 bytes" }, [DT_BF16] = { "bf16", "2 bytes" }, [DT_FP16] = { "fp16", "2 bytes" },
};
static const struct field_choice fp8_choices[] = {
	[FP8_OFF] = { "off", "none" }, [FP8_DELAYED] = { "delayed", "scales from earlier steps" },
	[FP8_TENSORWISE] = { "tensorwise", "one scale for each tensor" },
	[FP8_BLOCKWISE] = { "blockwise", "one scale for each block of 128 x 128" },
	[FP8_MXFP8] = { "mxfp8", "one scale for each 32 values" },
};
static const struct field precision_fields[] = {
	{ "params", FIELD_CHOICE, IN(precision, params), CHOICES(dtype_choices), .deflt = "fp32",
	  .doc = "parameters as stored" },
	{ "compute", FIELD_CHOICE, IN(precision, compute), CHOICES(dtype_choices),
	  .computed = "bf16 with autocast, else params", .doc = "forward and backward" },
	{ "gradients", FIELD_CHOICE, IN(precision, gradients), PLACE(precision, loc_gradients), CHOICES(dtype_choices),
	  .computed = "params", .doc = "accumulated gradients" },
	{ "reduce", FIELD_CHOICE, IN(precision, reduce), CHOICES(dtype_choices),
	  .computed = "compute with zero 3, else gradients", .doc = "gradients while they are reduced over GPUs" },
	{ "master", FIELD_CHOICE, IN(precision, master), CHOICES(dtype_choices),
	  .computed = "params, with LoRA train.lora.dtype",
	  .doc = "parameters that the optimizer updates; wider than params: a copy of their own" },
	{ "optimizer", FIELD_CHOICE, IN(precision, optimizer), CHOICES(dtype_choices), .computed = "master",
	  .doc = "optimizer states" },
	{ "fp8", FIELD_CHOICE, IN(precision, fp8), PLACE(precision, loc_fp8), CHOICES(fp8_choices), .deflt = "off",
	  .doc = "matrix products in 8 bits: how they are scaled" },
	{ "autocast", FIELD_BOOL, IN(precision, autocast), .deflt = "false",
	  .doc = "torch.autocast over fp32 parameters: weights are cast where they are used" },
	{ "grad_scaler", FIELD_BOOL, IN(precision, grad_scaler), .deflt = "false",
	  .doc = "torch.amp.GradScaler, for fp16" },
};

/* ---- optimizer */

static const struct field_choice optimizer_choices[] = {
	[OPT_ADAMW] = { "adamw", "torch.optim.AdamW" }, [OPT_ADAM] = { "adam", "torch.optim.Adam" },
	[OPT_SGD] = { "sgd", "torch.optim.SGD" }, [OPT_ADAFACTOR] = { "adafactor", "factored second moments" },
	[OPT_LION] = { "lion", "one moment" }, [OPT_ADAM8BIT] = { "adam8bit", "moments in 8 bits (bitsandbytes)" },
};
static const struct field_choice impl_choices[] = {
	[IMPL_FUSED] = { "fused", "one kernel, no temporaries" },
	[IMPL_FOREACH] = { "foreach", "lists of tensors, temporaries as large as the parameters" },
	[IMPL_FORLOOP] = { "forloop", "one parameter after the other" },
};
static const struct field optimizer_fields[] = {
	{ "name", FIELD_CHOICE, IN(optimizer, name), CHOICES(optimizer_choices), .deflt = "adamw" , .doc = "algorithm" },
	{ "implementation", FIELD_CHOICE, IN(optimizer, impl), CHOICES(impl_choices),
	  .computed = "the library's own default for this optimizer", .doc = "how the step is computed" },
	{ "momentum", FIELD_REAL, IN(optimizer, momentum), .min = 0, .max = 1, .deflt = "0",
	  .doc = "of sgd; 0: no state" },
	{ "weight_decay", FIELD_REAL, IN(optimizer, weight_decay), .min = 0, .max = 1000,
	  .computed = "0.01 for adamw, else 0", .doc = "in adam, adafactor and sgd it costs a temporary" },
	{ "amsgrad", FIELD_BOOL, IN(optimizer, amsgrad), .deflt = "false", .doc = "a third state in adam and adamw" },
};

/* ---- train */

static const struct field_choice zero_grad_choices[] = {
	{ "zero", "gradients stay and are filled with zeros" }, { "set_to_none", "gradients are freed" },
};
static const struct field_choice label_choices[] = {
	{ "shared", "the labels are the input tensor" }, { "separate", "the labels are a tensor of their own" },
};
static const struct field_choice lora_base_choices[] = {
	[LORA_BASE_PARAMS] = { "params", "as precision.params" }, [LORA_BASE_NF4] = { "nf4", "4 bits (QLoRA)" },
	[LORA_BASE_INT8] = { "int8", "8 bits" },
};
static const struct field lora_fields[] = {
	{ "rank", FIELD_UINT, IN(lora, rank), .min = 1, .max = 65536, .doc = "rank of the adapters" },
	{ "alpha", FIELD_REAL, IN(lora, alpha), .min = 0, .max = 1e9, .deflt = "16", .doc = "scale of the adapters" },
	{ "dropout", FIELD_REAL, IN(lora, dropout), .min = 0, .max = 1, .deflt = "0", .doc = "before the adapters" },
	{ "targets", FIELD_STRINGS, IN(lora, targets), PLACE(lora, loc_targets), .computed = "all linear modules of the layers",
	  .doc = "modules that get an adapter, by name: q_proj, or q for short" },
	{ "dtype", FIELD_CHOICE, IN(lora, dtype), CHOICES(dtype_choices), .deflt = "fp32",
	  .doc = "type of the adapters; fp32 is PEFT's autocast_adapter_dtype" },
	{ "base", FIELD_CHOICE, IN(lora, base), PLACE(lora, loc_base), CHOICES(lora_base_choices), .deflt = "params",
	  .doc = "how the frozen weights are stored" },
};
static const struct field train_fields[] = {
	{ "micro_batch", FIELD_UINT, IN(train, micro_batch), .min = 1, .max = 1 << 20, .deflt = "1", .unit = "sequences",
	  .doc = "sequences in one forward pass of one GPU" },
	{ "seq_len", FIELD_UINT, IN(train, seq_len), .min = 1, .max = 1 << 30, .unit = "tokens",
	  .doc = "length of a sequence" },
	{ "gradient_accumulation", FIELD_UINT, IN(train, grad_accum), .min = 1, .max = 1 << 20,
	  .computed = "from global_batch, else 1", .doc = "micro-batches in one optimizer step" },
	{ "global_batch", FIELD_UINT, IN(train, global_batch), .min = 1, .max = 1 << 30, .unit = "sequences",
	  .computed = "micro_batch x gradient_accumulation x data-parallel GPUs",
	  .doc = "sequences in one optimizer step of all GPUs; in place of gradient_accumulation" },
	{ "clip_grad_norm", FIELD_REAL, IN(train, clip_grad_norm), .min = 0, .max = 1e9, .deflt = "off", .off = true,
	  .doc = "largest norm of the gradients" },
	{ "zero_grad", FIELD_BOOL, IN(train, zero_grad_to_none), CHOICES(zero_grad_choices), .deflt = "set_to_none",
	  .doc = "what zero_grad() leaves" },
	{ "hold_logits", FIELD_BOOL, IN(train, hold_logits), .deflt = "false",
	  .doc = "the model's output outlives the loss, as in a loop that keeps outputs" },
	{ "labels", FIELD_BOOL, IN(train, separate_labels), CHOICES(label_choices), .deflt = "separate",
	  .doc = "what the loss compares with" },
	{ "position_ids", FIELD_BOOL, IN(train, position_ids), .deflt = "false", .doc = "the batch holds position_ids" },
	{ "padding", FIELD_PERCENT, IN(train, padding), PLACE(train, loc_padding), .min = 0, .max = 99, .deflt = "0%",
	  .doc = "share of the tokens that is padding" },
	{ "packed", FIELD_BOOL, IN(train, packed), PLACE(train, loc_packed), .deflt = "false",
	  .doc = "several documents in a sequence" },
	{ "lora", FIELD_MAP, IN(train, lora), PLACE(train, lora.loc), .given_offset = offsetof(struct train, lora.present),
	  FIELDS(lora_fields), .doc = "low-rank adapters; omitted: full fine-tuning" },
	{ "freeze", FIELD_STRINGS, IN(train, freeze), PLACE(train, loc_freeze), .computed = "nothing",
	  .doc = "what is not trained: embedding, decoder, head, vision, or names of modules as mlp, layers.0" },
};

static const struct field allocator_fields[] = {
	{ "expandable_segments", FIELD_BOOL, IN(allocator_conf, expandable_segments), .deflt = "false",
	  .doc = "PYTORCH_CUDA_ALLOC_CONF expandable_segments" },
	{ "max_split_size_mb", FIELD_UINT, IN(allocator_conf, max_split_size_mb), .min = 20, .max = 1 << 24,
	  .deflt = "off", .off = true, .unit = "MiB", .doc = "larger blocks are not split" },
};

/* ---- rows that other tables make */

static struct field framework_field(struct arena *a)
{
	struct field_choice *c = NEWN(a, struct field_choice, nprofile);

	for (size_t i = 0; i < nprofile; i++)
		c[i] = (struct field_choice){ profiles[i].name, profiles[i].summary };
	return (struct field){ "framework", FIELD_CHOICE, IN(spec, framework), PLACE(spec, loc_framework), .choices = c, .nchoice = nprofile,
			       .deflt = profiles[0].name, .doc = "the program that trains: defaults and kernels" };
}

static struct field kernels_field(struct arena *a)
{
	struct field *rows = NEWN(a, struct field, K_N);

	for (size_t op = 0; op < K_N; op++) {
		const struct kernel_def *k = &kernels[op];
		struct field_choice *c = NEWN(a, struct field_choice, k->nrow);

		for (size_t i = 0; i < k->nrow; i++)
			c[i] = (struct field_choice){ k->rows[i].name, k->rows[i].summary };
		rows[op] = (struct field){ k->name, FIELD_CHOICE, offsetof(struct spec, kernel) + op * sizeof(int),
					   offsetof(struct spec, loc_kernel) + op * sizeof(struct loc),
					   .choices = c, .nchoice = k->nrow, .deflt = k->rows[0].name, .doc = k->doc };
	}
	return (struct field){ "kernels", FIELD_MAP, .fields = rows, .nfield = K_N,
			       .doc = "implementation of each operation; \"memplan list kernels\" has them all" };
}

static struct field memory_field(struct arena *a)
{
	struct field *rows = NEWN(a, struct field, nopt + 1);

	for (size_t i = 0; i < nopt; i++)
		rows[i] = (struct field){ opts[i]->name, FIELD_MAP, .fields = opts[i]->fields,
					  .nfield = opts[i]->nfield, .deflt = "off", .doc = opts[i]->summary };
	return (struct field){ "memory", FIELD_ANY, .fields = rows, .nfield = nopt,
			       .doc = "optimizations: true, off, or a mapping of the optimization's own keys" };
}

const struct field *plan_fields(struct arena *a, size_t *n)
{
	const struct field rows[] = {
		{ "schema", FIELD_CHOICE, IN(spec, schema), CHOICES(schema_choices), .deflt = "memplan.plan/1",
		  .doc = "the format of the file" },
		{ "title", FIELD_STRING, IN(spec, title), .deflt = "", .doc = "what people call the run" },
		framework_field(a),
		{ "model", FIELD_ANY, .doc = "a name of \"memplan list models\", the path of a model file, or a mapping: a "
		  "whole config.json, or base: NAME with the keys that differ" },
		{ "hardware", FIELD_MAP, IN(spec, hw), FIELDS(hardware_fields), .doc = "the GPUs" },
		{ "parallel", FIELD_MAP, IN(spec, par), FIELDS(parallel_fields), .doc = "how the work is divided" },
		{ "precision", FIELD_MAP, IN(spec, prec), PLACE(spec, prec.loc), FIELDS(precision_fields),
		  .doc = "element types" },
		{ "optimizer", FIELD_MAP, IN(spec, optim), PLACE(spec, optim.loc), FIELDS(optimizer_fields),
		  .doc = "the optimizer" },
		{ "train", FIELD_MAP, IN(spec, train), PLACE(spec, train.loc), FIELDS(train_fields),
		  .doc = "the training loop" },
		kernels_field(a),
		memory_field(a),
		{ "allocator", FIELD_MAP, IN(spec, alloc), FIELDS(allocator_fields), .doc = "the caching allocator" },
	};
	struct field *copy = NEWN(a, struct field, COUNT(rows));

	memcpy(copy, rows, sizeof rows);
	*n = COUNT(rows);
	return copy;
}
