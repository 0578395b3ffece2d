/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Two tables: what is refused, and what is answered but incomplete. */
#include "plan/refuse.h"

#include <string.h>

#include "kernel/build.h"
#include "kernel/trained.h"
#include "opt/opt.h"

#define PLACE(m) offsetof(struct spec, m)
enum { MAX_IMAGES = 256 };             /* each has ops of its own in the graph */
enum { MAX_LOOP = 1024 };              /* experts: every turn is in the graph */

static bool framework(const struct spec *s) { return !profiles[s->framework].modelled; }
static bool no_arch(const struct spec *s) { return !arch_of(&s->model); }
static bool moe(const struct spec *s) { return s->model.experts > 0 && !profiles[s->framework].experts; }
static bool mla(const struct spec *s) { return s->model.kv_lora > 0 && !profiles[s->framework].experts; }
static bool grouped(const struct spec *s) { return s->model.group_limited; }
static bool biased(const struct spec *s) { return s->model.expert_bias; }
static bool loop(const struct spec *s)
{
	return s->model.experts > MAX_LOOP && !strcmp(kernels[K_EXPERTS].rows[s->kernel[K_EXPERTS]].name, "eager");
}
static bool vision(const struct spec *s) { return s->model.vision.present; }
static bool sinks(const struct spec *s) { return s->model.attn_sinks; }
static bool tensor(const struct spec *s) { return s->par.tensor > 1; }
static bool pipeline(const struct spec *s) { return s->par.pipeline > 1; }
static bool context(const struct spec *s) { return s->par.context > 1; }
static bool ulysses(const struct spec *s) { return s->par.ulysses > 1; }
static bool expert(const struct spec *s) { return s->par.expert > 1 || s->par.expert_tensor > 1; }
static bool zero12(const struct spec *s) { return s->par.zero == 1 || s->par.zero == 2; }
static bool fp8(const struct spec *s) { return s->prec.fp8 != FP8_OFF; }
static bool lora(const struct spec *s) { return s->train.lora.present && !profiles[s->framework].parts; }
static bool freeze(const struct spec *s) { return s->train.freeze.n > 0 && !profiles[s->framework].parts; }
static bool quantised(const struct spec *s) { return s->train.lora.present && s->train.lora.base != LORA_BASE_PARAMS; }
static bool tower(const struct spec *s) { return s->model.vision.kind != VISION_NONE && !s->model.vision.present; }
static bool tower_lora(const struct spec *s) { return tower(s) && s->train.lora.present; }
static bool tower_data(const struct spec *s) { return tower(s) && s->hw.gpus > 1; }
static bool tower_images(const struct spec *s) { return s->model.vision.deep && s->train.micro_batch > MAX_IMAGES; }
static bool tower_torchtitan(const struct spec *s) { return tower(s) && !profiles[s->framework].parts; }
/* Gradients have the type of what is trained; master copies read them, or a temporary in their own type (optimizer.c). */
static bool gradients(const struct spec *s)
{
	return s->prec.gradients != s->prec.params && s->prec.gradients != trained_dtype(s);
}
static bool packed(const struct spec *s) { return s->train.packed; }
static bool padding(const struct spec *s) { return s->train.padding > 0; }

static const struct refusal { bool (*when)(const struct spec *s); size_t loc; const char *what; } refusals[] = {
	{ framework, PLACE(loc_framework), "this framework" },
	{ moe, PLACE(model.loc), "this framework's mixtures of experts" },
	{ mla, PLACE(model.loc), "this framework's multi-head latent attention" },
	{ grouped, PLACE(model.loc), "DeepSeek-V2's choice of experts by groups" },
	{ biased, PLACE(model.loc), "experts with biases" },
	{ loop, PLACE(loc_kernel[K_EXPERTS]), "a loop over more than 1024 experts" },
	{ vision, PLACE(model.loc), "vision towers" },
	{ sinks, PLACE(model.loc), "attention sinks" },
	{ no_arch, PLACE(model.loc), "this model class" },
	{ tensor, PLACE(par.loc_tensor), "tensor parallelism" },
	{ pipeline, PLACE(par.loc_pipeline), "pipeline parallelism" },
	{ context, PLACE(par.loc_context), "context parallelism" },
	{ ulysses, PLACE(par.loc_ulysses), "Ulysses sequence parallelism" },
	{ expert, PLACE(par.loc_expert), "expert parallelism" },
	{ zero12, PLACE(par.loc_zero), "ZeRO stages 1 and 2" },
	{ fp8, PLACE(prec.loc_fp8), "8-bit matrix products" },
	{ lora, PLACE(train.lora.loc), "this framework's LoRA" },
	{ freeze, PLACE(train.loc_freeze), "this framework's frozen parts" },
	{ quantised, PLACE(train.lora.loc_base), "quantised base weights" },
	{ tower_lora, PLACE(train.lora.loc), "LoRA in a vision tower alone" },
	{ tower_data, PLACE(hw.loc_gpus), "a vision tower alone on several GPUs" },
	{ tower_images, PLACE(train.loc), "more than 256 images in a micro-batch, attended one by one" },
	{ tower_torchtitan, PLACE(loc_framework), "this framework's vision towers" },
	{ gradients, PLACE(prec.loc_gradients), "gradients of another type than the parameters" },
	{ packed, PLACE(train.loc_packed), "packed sequences" },
	{ padding, PLACE(train.loc_padding), "padding" },
};

void plan_refuse(const struct spec *s, struct diag *d)
{
	for (size_t i = 0; i < COUNT(refusals); i++)
		if (refusals[i].when(s))
			diag_refuse(d, *(const struct loc *)((const char *)s + refusals[i].loc),
				    "memory of %s is not modelled yet", refusals[i].what);
}

static bool always(const struct spec *s) { (void)s; return true; }
static bool many(const struct spec *s) { return s->hw.gpus > 1; }
static bool ddp(const struct spec *s) { return s->par.zero == 0 && s->par.replicate > 1; }
static bool fsdp(const struct spec *s) { return s->par.zero == 3; }
static bool cudnn(const struct spec *s) { return !strcmp(kernels[K_ATTENTION].rows[s->kernel[K_ATTENTION]].name, "cudnn"); }


/* torchtitan b5bcd76 components/loss.py ChunkedLossWrapper */
static bool chunked_head(const struct spec *s)
{
	struct recipe r = { .checkpoint = CKPT_NONE };
	for (size_t i = 0; i < s->memory.n; i++)
		if (s->memory.v[i].opt->apply)
			s->memory.v[i].opt->apply(&r, s->memory.v[i].knobs);
	return (r.loss_chunks || r.loss_chunk_rows) && fsdp(s) && s->par.units == UNITS_LAYERS_EMBEDDING_HEAD;
}

static const struct { bool (*when)(const struct spec *s); const char *what; } gaps[] = {
	{ always, "segments and fragmentation of the caching allocator (reserved)" },
	{ always, "growth of the context as further kernels are loaded" },
	{ many, "communication buffers beyond the assumed size of a communicator" },
	{ ddp, "the single bucket of DDP's first iteration and the rebuild of its buckets" },
	{ fsdp, "memory that waits for side streams" },
	{ chunked_head, "a head whose gradients are summed over chunks in the reduce type, before the backward of the layers" },
	{ cudnn, "workspaces of cuDNN attention plans" },
};

void plan_not_modelled(struct result *r, struct arena *a)
{
	r->not_modelled = NEWN(a, const char *, COUNT(gaps));
	for (size_t i = 0; i < COUNT(gaps); i++)
		if (gaps[i].when(r->spec))
			r->not_modelled[r->nnot_modelled++] = gaps[i].what;
}
