/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Advice follows the order of remedies that practice has settled on: the
 * classes alive at the peak are summed by side, the side that is too large is
 * named, and of its tips the first ones that the plan does not follow yet. */
#include "plan/advice.h"

#include "kernel/kernel.h"
#include "opt/opt.h"

#include <string.h>

enum side { SIDE_STATIC, SIDE_LOGITS, SIDE_ACTIVATION, SIDE_GATHERED, SIDE_FIRST_STEP, SIDE_N };

static const char *const side_names[SIDE_N] = {
	[SIDE_STATIC] = "the static side (parameters, gradients, optimizer states)",
	[SIDE_LOGITS] = "the loss head (logits and their gradients)",
	[SIDE_ACTIVATION] = "the dynamic side (activations and temporaries)",
	[SIDE_GATHERED] = "the communication side (gathered parameters, full gradients, buffers)",
	[SIDE_FIRST_STEP] = "the first optimizer step (states are made beside the gradients)",
};

static const enum side side_of[CLASS_N] = {
	[CLASS_PARAMETER] = SIDE_STATIC, [CLASS_MASTER] = SIDE_STATIC, [CLASS_BUFFER] = SIDE_STATIC,
	[CLASS_GRADIENT] = SIDE_STATIC, [CLASS_OPTIMIZER] = SIDE_STATIC, [CLASS_INPUT] = SIDE_ACTIVATION,
	[CLASS_SAVED] = SIDE_ACTIVATION, [CLASS_LOGITS] = SIDE_LOGITS, [CLASS_TEMPORARY] = SIDE_ACTIVATION,
	[CLASS_RECOMPUTE] = SIDE_ACTIVATION, [CLASS_WEIGHT_CAST] = SIDE_ACTIVATION,
	[CLASS_UNSHARDED] = SIDE_GATHERED, [CLASS_UNSHARDED_GRAD] = SIDE_GATHERED,
	[CLASS_COMM] = SIDE_GATHERED, [CLASS_WORKSPACE] = SIDE_ACTIVATION,
};

/* ---- when a tip is of use */

static bool states_whole(const struct spec *s) { return s->par.zero < 3 && s->par.shard * s->par.replicate > 1; }
static bool has_replicas(const struct spec *s) { return s->par.zero == 3 && s->par.replicate > 1; }
static bool one_gpu(const struct spec *s) { return s->hw.gpus == 1; }
static bool sharded(const struct spec *s) { return s->par.zero == 3 && s->par.replicate <= 1; }
static bool on_gpu(const struct spec *s) { return s->par.zero == 3 && !s->par.cpu_offload; }
static bool wide_states(const struct spec *s) { return s->optim.name == OPT_ADAMW || s->optim.name == OPT_ADAM; }
static bool wide_dtype(const struct spec *s) { return s->prec.params == DT_FP32 && s->prec.compute == DT_FP32; }
static bool large_batch(const struct spec *s) { return s->train.micro_batch > 1; }
static bool holds_logits(const struct spec *s) { return s->train.hold_logits; }
static bool gathered_stays(const struct spec *s) { return s->par.zero == 3 && !s->par.reshard_after_forward; }
static bool prefetches(const struct spec *s) { return s->par.forward_prefetch + s->par.backward_prefetch > 0; }
static bool not_fused(const struct spec *s) { return s->optim.impl != IMPL_FUSED && wide_states(s); }
static bool step_can_move(const struct spec *s)
{
	return s->train.grad_accum == 1 && s->train.clip_grad_norm <= 0 && s->train.zero_grad_to_none && s->par.zero < 3;
}
static bool always(const struct spec *s) { (void)s; return true; }

static bool kernel_is(const struct spec *s, enum kernel_op op, const char *row)
{
	return !strcmp(kernels[op].rows[s->kernel[op]].name, row);
}
static bool kernel_has(enum kernel_op op, const char *row)
{
	for (size_t i = 0; i < kernels[op].nrow; i++)
		if (!strcmp(kernels[op].rows[i].name, row))
			return true;
	return false;
}
static bool eager_attention(const struct spec *s) { return kernel_is(s, K_ATTENTION, "eager"); }
static bool whole_logits(const struct spec *s) { return kernel_is(s, K_LOSS, "torch"); }
static bool can_fuse_loss(const struct spec *s) { return whole_logits(s) && kernel_has(K_LOSS, "liger_fused_linear"); }

enum { MAX_TIPS = 3 };
static const struct tip {
	enum side side;
	const char *opt;               /* row of opts[] that the plan must not have yet; NULL: none */
	bool (*useful)(const struct spec *s);
	const char *text;
} tips[] = {
	{ SIDE_STATIC, NULL, wide_dtype, "precision.compute: bf16" },
	{ SIDE_STATIC, NULL, states_whole, "shard it over the data-parallel GPUs (parallel.zero: 3)" },
	{ SIDE_STATIC, NULL, has_replicas, "a larger parallel.data.shard in place of replicas" },
	{ SIDE_STATIC, NULL, one_gpu, "more GPUs that share it (hardware.gpus, parallel.data.shard, parallel.zero: 3)" },
	{ SIDE_STATIC, NULL, sharded, "more GPUs to shard over (hardware.gpus, parallel.data.shard)" },
	{ SIDE_STATIC, NULL, on_gpu, "offload to the host (parallel.cpu_offload: true)" },
	{ SIDE_STATIC, NULL, wide_states, "an 8-bit optimizer (optimizer.name: adam8bit)" },
	{ SIDE_STATIC, "optimizer_in_backward", step_can_move, "step in backward (memory.optimizer_in_backward)" },
	{ SIDE_STATIC, NULL, always, "train adapters only (LoRA)" },

	{ SIDE_LOGITS, NULL, holds_logits, "drop the logits before backward (train.hold_logits: false)" },
	{ SIDE_LOGITS, "chunk_loss", whole_logits, "compute the loss in chunks (memory.chunk_loss)" },
	{ SIDE_LOGITS, "chunk_loss", can_fuse_loss, "a fused linear loss (kernels.loss: liger_fused_linear)" },
	{ SIDE_LOGITS, NULL, large_batch, "a smaller train.micro_batch with more gradient accumulation" },
	{ SIDE_LOGITS, NULL, always, "a shorter train.seq_len" },

	{ SIDE_ACTIVATION, NULL, eager_attention, "kernels.attention: flash" },
	{ SIDE_ACTIVATION, "recompute", always, "recompute the layers in backward (memory.recompute)" },
	{ SIDE_ACTIVATION, NULL, large_batch, "a smaller train.micro_batch with more gradient accumulation" },
	{ SIDE_ACTIVATION, NULL, always, "a shorter train.seq_len" },

	{ SIDE_GATHERED, NULL, gathered_stays, "parallel.reshard_after_forward: true" },
	{ SIDE_GATHERED, NULL, prefetches, "no explicit prefetch (parallel.forward_prefetch and backward_prefetch: 0)" },
	{ SIDE_GATHERED, "recompute", always, "recompute the layers in backward (memory.recompute)" },
	{ SIDE_GATHERED, NULL, large_batch, "a smaller train.micro_batch with more gradient accumulation" },
	{ SIDE_GATHERED, NULL, always, "tensor parallelism inside a node (parallel.tensor)" },

	{ SIDE_FIRST_STEP, NULL, not_fused, "a fused step without temporaries (optimizer.implementation: fused)" },
	{ SIDE_FIRST_STEP, NULL, states_whole, "shard the states (parallel.zero: 1 or higher)" },
	{ SIDE_FIRST_STEP, NULL, one_gpu, "more GPUs that share the states (hardware.gpus, parallel.zero: 3)" },
	{ SIDE_FIRST_STEP, NULL, sharded, "more GPUs to shard over (hardware.gpus, parallel.data.shard)" },
	{ SIDE_FIRST_STEP, NULL, wide_states, "smaller states (optimizer.name: adam8bit)" },
	{ SIDE_FIRST_STEP, NULL, on_gpu, "states on the host (parallel.cpu_offload: true)" },
	{ SIDE_FIRST_STEP, NULL, always, "train adapters only (LoRA)" },
};

const char *advice_check(void)
{
	for (size_t i = 0; i < COUNT(tips); i++)
		if (tips[i].opt && !opt_find(tips[i].opt))
			return tips[i].opt;
	return NULL;
}

static bool opt_free(const struct spec *s, const char *name)
{
	const struct opt *o = opt_find(name);
	if (!o)
		return false;
	for (size_t i = 0; i < s->memory.n; i++)
		if (s->memory.v[i].opt == o)
			return false;
	return true;
}

static enum side too_large(const struct result *r, uint64_t *bytes)
{
	uint64_t sum[SIDE_N] = { 0 };
	enum side worst = SIDE_STATIC;
	for (size_t i = 0; i < r->nclass; i++)
		sum[side_of[r->by_class[i].cls]] = add_u64(sum[side_of[r->by_class[i].cls]], r->by_class[i].bytes);
	for (enum side s = 0; s < SIDE_N; s++)
		if (sum[s] > sum[worst])
			worst = s;
	if (sum[SIDE_STATIC] > r->limit)
		worst = SIDE_STATIC;
	*bytes = sum[worst];
	return worst == SIDE_STATIC && r->peak_step == 1 && r->peak_window == WIN_OPTIMIZER
		&& r->allocated_steady < r->allocated_first ? SIDE_FIRST_STEP : worst;
}

const char *advise(const struct result *r, struct arena *a)
{
	uint64_t bytes;
	struct sb b = { .a = a };
	if (r->fits)
		return NULL;
	enum side side = too_large(r, &bytes);
	sb_printf(&b, "%s takes %s of %s usable; first try: ", side_names[side], fmt_bytes(a, bytes, UNIT_GIB),
		  fmt_bytes(a, r->limit, UNIT_GIB));
	for (size_t i = 0, n = 0; i < COUNT(tips) && n < MAX_TIPS; i++) {
		const struct tip *t = &tips[i];
		if (t->side != side || !t->useful(r->spec) || (t->opt && !opt_free(r->spec, t->opt)))
			continue;
		sb_printf(&b, "%s%s", n == 0 ? "" : n == 1 ? "; then " : "; or ", t->text);
		n++;
	}
	return sb_str(&b);
}
