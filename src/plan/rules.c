/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Rules between the keys of a plan: what omitted ones become, and which
 * combinations no training program can run.  What memplan itself cannot do
 * is not decided here. */
#include "plan/schema.h"

#include <string.h>

#include "kernel/build.h"
#include "kernel/optimizer.h"
#include "kernel/trained.h"

typedef unsigned long long ull;

/* Whether the key was left out and has no other default. */
static bool open_key(struct plan_reader *p, const char *path)
{
	const struct effective *e = effective_find(&p->r, path);

	return e && e->origin == ORIGIN_COMPUTED;
}

/* Degrees and counts are at least 1: their rows say so. */
static bool divides(uint64_t part, uint64_t whole)
{
	return part > 0 && whole % part == 0;
}

/* ---- what omitted keys become */

static uint64_t degrees(const struct parallel *par)
{
	return mul_u64(mul_u64(par->tensor, par->pipeline), mul_u64(par->context, par->ulysses));
}

static void complete_parallel(struct plan_reader *p)
{
	struct parallel *par = &p->s->par;
	uint64_t *gpus = &p->s->hw.gpus, *fill;
	bool shard = open_key(p, "parallel.data.shard"), replicate = open_key(p, "parallel.data.replicate");
	uint64_t used;

	if (open_key(p, "parallel.zero"))
		par->zero = !shard && par->shard > 1 ? 3 : 0;
	fill = par->zero > 0 ? &par->shard : &par->replicate;
	par->shard = shard ? 1 : par->shard;
	par->replicate = replicate ? 1 : par->replicate;
	used = mul_u64(degrees(par), mul_u64(par->shard, par->replicate));
	if (open_key(p, "hardware.gpus"))
		*gpus = used;
	else if ((fill == &par->shard ? shard : replicate) && divides(used, *gpus))
		*fill = *gpus / used;
}

static void complete_hardware(struct plan_reader *p)
{
	struct hardware *hw = &p->s->hw;

	if (!open_key(p, "hardware.gpus_per_node"))
		return;
	for (hw->gpus_per_node = hw->gpus < 8 ? hw->gpus : 8; !divides(hw->gpus_per_node, hw->gpus); hw->gpus_per_node--)
		;
}

static void complete_precision(struct plan_reader *p)
{
	struct precision *pr = &p->s->prec;

	if (open_key(p, "precision.compute"))
		pr->compute = pr->autocast ? DT_BF16 : pr->params;
	if (open_key(p, "precision.gradients"))
		pr->gradients = pr->params;
	if (open_key(p, "precision.reduce"))
		pr->reduce = p->s->par.zero == 3 ? pr->compute : pr->gradients;
	if (open_key(p, "precision.master"))
		pr->master = trained_dtype(p->s);
	if (open_key(p, "precision.optimizer"))
		pr->optimizer = pr->master;
}

/* Defaults of each optimizer and the options that it has: torch 2.14.1 torch/optim, Adafactor and Lion of the same kind, bitsandbytes. */
static const struct optimizer_rule {
	enum optimizer_impl deflt; double weight_decay; bool momentum, amsgrad;
} optimizer_rules[] = {
	[OPT_ADAMW] = { IMPL_FOREACH, 0.01, false, true },
	[OPT_ADAM] = { IMPL_FOREACH, 0, false, true },
	[OPT_SGD] = { IMPL_FOREACH, 0, true, false },
	[OPT_ADAFACTOR] = { IMPL_FORLOOP, 0, false, false },
	[OPT_LION] = { IMPL_FORLOOP, 0, false, false },
	[OPT_ADAM8BIT] = { IMPL_FUSED, 0, false, false },
};

static void complete_optimizer(struct plan_reader *p)
{
	struct optimizer *o = &p->s->optim;
	const struct optimizer_rule *rule = &optimizer_rules[o->name];

	if (open_key(p, "optimizer.implementation"))
		o->impl = rule->deflt;
	if (open_key(p, "optimizer.weight_decay"))
		o->weight_decay = rule->weight_decay;
}

static void complete_train(struct plan_reader *p)
{
	struct train *t = &p->s->train;
	uint64_t one = mul_u64(t->micro_batch, mul_u64(p->s->par.shard, p->s->par.replicate));
	bool global = !open_key(p, "train.global_batch"), accum = !open_key(p, "train.gradient_accumulation");

	if (global && accum)
		diag_error(p->r.d, plan_loc(p, "train.global_batch"),
			   "'train.global_batch' and 'train.gradient_accumulation' say the same thing; wanted one");
	else if (global && !divides(one, t->global_batch))
		diag_error(p->r.d, plan_loc(p, "train.global_batch"),
			   "'train.global_batch' %llu is no multiple of micro_batch x data-parallel GPUs = %llu",
			   (ull)t->global_batch, (ull)one);
	else if (global)
		t->grad_accum = t->global_batch / one;
	else
		t->global_batch = mul_u64(one, t->grad_accum = accum ? t->grad_accum : 1);
}

/* A class that has eager attention only runs it by default, and cannot run another. */
static void complete_kernels(struct plan_reader *p)
{
	const struct model *m = &p->s->model;
	const struct arch *arch = m->family ? arch_of(m) : NULL;
	const struct kernel_def *def = &kernels[K_ATTENTION];
	int *row = &p->s->kernel[K_ATTENTION];

	if (!arch || !arch->eager_only || !strcmp(def->rows[*row].name, "eager"))
		return;
	if (plan_given(p, "kernels.attention"))
		diag_error(p->r.d, plan_loc(p, "kernels.attention"), "'kernels.attention' %s: %s has eager attention only",
			   def->rows[*row].name, m->model_type);
	for (size_t i = 0; i < def->nrow; i++)
		if (!strcmp(def->rows[i].name, "eager"))
			*row = (int)i;
}

void plan_complete(struct plan_reader *p)
{
	complete_parallel(p);
	complete_hardware(p);
	complete_precision(p);
	complete_optimizer(p);
	complete_train(p);
	complete_kernels(p);
}

/* ---- degrees and GPUs */

static const char *degrees_print(struct plan_reader *p, uint64_t *product)
{
	const struct parallel *par = &p->s->par;
	const struct { const char *name; uint64_t n; } d[] = {
		{ "tensor", par->tensor }, { "pipeline", par->pipeline }, { "context", par->context },
		{ "ulysses", par->ulysses }, { "data.shard", par->shard }, { "data.replicate", par->replicate },
	};
	struct sb b = { .a = p->r.a };

	*product = 1;
	for (size_t i = 0; i < COUNT(d); i++) {
		*product = mul_u64(*product, d[i].n);
		if (d[i].n > 1)
			sb_printf(&b, "%s%s %llu", *sb_str(&b) ? " x " : "", d[i].name, (ull)d[i].n);
	}
	return *sb_str(&b) ? sb_str(&b) : "all 1";
}

static void check_gpus(struct plan_reader *p)
{
	const struct hardware *hw = &p->s->hw;
	uint64_t product;
	const char *text = degrees_print(p, &product);

	if (product > GPUS_MAX) {
		diag_error(p->r.d, plan_loc(p, "parallel.data.shard"), "the degrees multiply to more than %d GPUs", GPUS_MAX);
		diag_hint(p->r.d, "%s", text);
	} else if (product != hw->gpus) {
		diag_error(p->r.d, plan_loc(p, "hardware.gpus"), "'hardware.gpus' %llu, but the degrees multiply to %llu",
			   (ull)hw->gpus, (ull)product);
		diag_hint(p->r.d, "%s", text);
	} else if (hw->gpus > hw->gpus_per_node && !divides(hw->gpus_per_node, hw->gpus)) {
		diag_error(p->r.d, plan_loc(p, "hardware.gpus_per_node"),
			   "'hardware.gpus_per_node' %llu does not divide 'hardware.gpus' %llu",
			   (ull)hw->gpus_per_node, (ull)hw->gpus);
	}
	if (p->s->par.zero == 0 && p->s->par.shard > 1) {
		diag_error(p->r.d, plan_loc(p, "parallel.data.shard"),
			   "'parallel.data.shard' %llu has nothing to divide with 'parallel.zero' 0", (ull)p->s->par.shard);
		diag_hint(p->r.d, "data.replicate counts copies; zero: 3 is FSDP");
	}
}

/* ---- degrees and the model */

/* "… does not divide num_attention_heads 32", with the place of the model's key. */
static void undivided(struct plan_reader *p, const char *path, uint64_t degree, const char *key, uint64_t value)
{
	const struct pair *pair = node_pair(p->file.model, key);

	diag_error(p->r.d, plan_loc(p, path), "'%s' %llu does not divide %s %llu", path, (ull)degree, key, (ull)value);
	if (pair && pair->loc.src && !pair->loc.src->bare)
		diag_hint(p->r.d, "%s: %s:%d:%d", key, pair->loc.src->name, pair->loc.line, pair->loc.col);
	else
		diag_hint(p->r.d, "%s of %s", key, p->s->model.name);
}

static void check_heads(struct plan_reader *p)
{
	const struct model *m = &p->s->model;
	const struct parallel *par = &p->s->par;
	uint64_t both = mul_u64(par->tensor, par->ulysses);

	if (!divides(par->tensor, m->heads))
		undivided(p, "parallel.tensor", par->tensor, "num_attention_heads", m->heads);
	else if (!divides(both, m->heads))
		undivided(p, "parallel.ulysses", par->ulysses, "num_attention_heads", m->heads);
	else if (m->kv_lora == 0 && !divides(par->tensor, m->kv_heads) && !divides(m->kv_heads, par->tensor))
		undivided(p, "parallel.tensor", par->tensor, "num_key_value_heads", m->kv_heads);
	else if (!divides(par->tensor, m->ffn))
		undivided(p, "parallel.tensor", par->tensor, "intermediate_size", m->ffn);
	else if (!divides(par->tensor, m->hidden))
		undivided(p, "parallel.tensor", par->tensor, "hidden_size", m->hidden);
}

static void check_experts(struct plan_reader *p)
{
	const struct model *m = &p->s->model;
	const struct parallel *par = &p->s->par;
	uint64_t inside = mul_u64(mul_u64(par->shard, par->replicate),
				  mul_u64(par->tensor, mul_u64(par->context, par->ulysses)));
	uint64_t experts = mul_u64(par->expert, par->expert_tensor);

	if (experts == 1)
		return;
	if (m->experts == 0)
		diag_error(p->r.d, plan_loc(p, par->expert > 1 ? "parallel.expert" : "parallel.expert_tensor"),
			   "%s has no experts to divide", m->name);
	else if (!divides(par->expert, m->experts))
		undivided(p, "parallel.expert", par->expert, "num_experts", m->experts);
	else if (!divides(experts, inside))
		diag_error(p->r.d, plan_loc(p, "parallel.expert"),
			   "'parallel.expert' x 'parallel.expert_tensor' = %llu does not divide the %llu GPUs of a pipeline stage",
			   (ull)experts, (ull)inside);
}

static void check_stages(struct plan_reader *p)
{
	const struct parallel *par = &p->s->par;
	uint64_t stages = mul_u64(par->pipeline, par->virtual_stages), layers = p->s->model.layers, sum = 0;

	if (par->stage_layers.n == 0) {
		if (!divides(par->pipeline, layers))
			undivided(p, "parallel.pipeline", par->pipeline, "num_hidden_layers", layers);
		else if (!divides(stages, layers))
			undivided(p, "parallel.virtual", par->virtual_stages, "num_hidden_layers", layers);
		return;
	}
	for (size_t i = 0; i < par->stage_layers.n; i++)
		sum = add_u64(sum, par->stage_layers.v[i]);
	if (par->stage_layers.n != stages)
		diag_error(p->r.d, plan_loc(p, "parallel.layers"), "'parallel.layers' has %zu numbers for %llu stages",
			   par->stage_layers.n, (ull)stages);
	else if (sum != layers)
		diag_error(p->r.d, plan_loc(p, "parallel.layers"), "'parallel.layers' sums to %llu, %s has %llu layers",
			   (ull)sum, p->s->model.name, (ull)layers);
}

static void check_sequence(struct plan_reader *p)
{
	const struct parallel *par = &p->s->par;
	const struct model *m = &p->s->model;
	uint64_t s = p->s->train.seq_len, ring = par->context > 1 ? 2 * par->context : 1;

	if (!divides(mul_u64(ring, par->ulysses), s))
		diag_error(p->r.d, plan_loc(p, "train.seq_len"),
			   "'train.seq_len' %llu is no multiple of %llu, the pieces of its context-parallel division",
			   (ull)s, (ull)mul_u64(ring, par->ulysses));
	else if (par->sequence && !divides(par->tensor, s))
		diag_error(p->r.d, plan_loc(p, "train.seq_len"), "'train.seq_len' %llu is no multiple of 'parallel.tensor' %llu",
			   (ull)s, (ull)par->tensor);
	if (m->vision.deep && s % (m->vision.merge * m->vision.merge))
		diag_error(p->r.d, plan_loc(p, "train.seq_len"), "'train.seq_len' %llu is no multiple of the %llu patches that %s merges",
			   (ull)s, (ull)(m->vision.merge * m->vision.merge), m->name);
	if (m->vision.image && !m->vision.present && s != m->positions)
		diag_error(p->r.d, plan_loc(p, "train.seq_len"), "'train.seq_len' %llu is not the %llu tokens that %s makes of an image",
			   (ull)s, (ull)m->positions, m->name);
	else if (m->family && m->family->position == POS_LEARNED && s > m->positions)
		diag_error(p->r.d, plan_loc(p, "train.seq_len"), "'train.seq_len' %llu exceeds the %llu positions that %s has learned",
			   (ull)s, (ull)m->positions, m->name);
}

/* ---- precision and optimizer */

static const char *dtype_name(enum dtype dt)
{
	return dtypes[dt].name;
}

static void check_precision(struct plan_reader *p)
{
	const struct precision *pr = &p->s->prec;
	struct diag *d = p->r.d;

	if (pr->autocast && pr->params != DT_FP32)
		diag_error(d, plan_loc(p, "precision.autocast"), "'precision.autocast' wants fp32 parameters, found %s",
			   dtype_name(pr->params));
	else if (pr->autocast && pr->compute == DT_FP32)
		diag_error(d, plan_loc(p, "precision.compute"), "'precision.autocast' wants compute in bf16 or fp16, found fp32");
	else if (!pr->autocast && p->s->par.zero < 3 && pr->compute != pr->params) {
		diag_error(d, plan_loc(p, "precision.compute"), "'precision.compute' %s differs from 'precision.params' %s",
			   dtype_name(pr->compute), dtype_name(pr->params));
		diag_hint(d, "that takes autocast: true or parallel.zero: 3");
	}
	if (dtypes[pr->master].bytes < dtypes[trained_dtype(p->s)].bytes)
		diag_error(d, plan_loc(p, "precision.master"), "'precision.master' %s is narrower than '%s' %s",
			   dtype_name(pr->master), p->s->train.lora.present ? "train.lora.dtype" : "precision.params",
			   dtype_name(trained_dtype(p->s)));
	if (pr->grad_scaler && pr->compute != DT_FP16)
		diag_error(d, plan_loc(p, "precision.grad_scaler"), "'precision.grad_scaler' wants compute in fp16, found %s",
			   dtype_name(pr->compute));
}

static const char *effective_text(struct plan_reader *p, const char *path)
{
	const struct effective *e = effective_find(&p->r, path);

	return e ? field_print(p->r.a, e->field, e->base) : "";
}

static void check_optimizer(struct plan_reader *p)
{
	const struct optimizer *o = &p->s->optim;
	const struct optimizer_rule *rule = &optimizer_rules[o->name];
	const char *name = effective_text(p, "optimizer.name");
	const struct { bool bad; const char *path; } other[] = {
		{ o->momentum > 0 && !rule->momentum, "optimizer.momentum" },
		{ o->amsgrad && !rule->amsgrad, "optimizer.amsgrad" },
	};

	if (!optimizer_row(o->name, o->impl))
		diag_error(p->r.d, plan_loc(p, "optimizer.implementation"), "%s has no '%s' implementation", name,
			   effective_text(p, "optimizer.implementation"));
	for (size_t i = 0; i < COUNT(other); i++)
		if (other[i].bad)
			diag_error(p->r.d, plan_loc(p, other[i].path), "%s has no '%s'", name, other[i].path);
}

/* ---- keys that mean nothing without another */

static bool has_tensor(const struct spec *s) { return s->par.tensor > 1; }
static bool has_pipeline(const struct spec *s) { return s->par.pipeline > 1; }
static bool is_fsdp(const struct spec *s) { return s->par.zero == 3; }
static bool has_buckets(const struct spec *s) { return s->par.zero < 3; }

static const struct dependence {
	const char *path;
	bool (*useful)(const struct spec *s);
	const char *wanted;
} dependences[] = {
	{ "parallel.sequence", has_tensor, "parallel.tensor above 1" },
	{ "parallel.virtual", has_pipeline, "parallel.pipeline above 1" },
	{ "parallel.layers", has_pipeline, "parallel.pipeline above 1" },
	{ "parallel.schedule", has_pipeline, "parallel.pipeline above 1" },
	{ "parallel.reshard_after_forward", is_fsdp, "parallel.zero: 3" },
	{ "parallel.units", is_fsdp, "parallel.zero: 3" },
	{ "parallel.forward_prefetch", is_fsdp, "parallel.zero: 3" },
	{ "parallel.backward_prefetch", is_fsdp, "parallel.zero: 3" },
	{ "parallel.cpu_offload", is_fsdp, "parallel.zero: 3" },
	{ "parallel.bucket_mb", has_buckets, "parallel.zero below 3" },
	{ "parallel.bucket_view", has_buckets, "parallel.zero below 3" },
};

static void check_dependences(struct plan_reader *p)
{
	for (size_t i = 0; i < COUNT(dependences); i++) {
		const struct dependence *x = &dependences[i];
		const struct effective *e = effective_find(&p->r, x->path);

		if (!plan_given(p, x->path) || x->useful(p->s) ||
		    (e->field->deflt && !strcmp(effective_text(p, x->path), e->field->deflt)))
			continue;
		diag_error(p->r.d, e->loc, "'%s' has no effect here: it wants %s", x->path, x->wanted);
	}
}

void plan_check(struct plan_reader *p)
{
	check_gpus(p);
	check_precision(p);
	check_optimizer(p);
	check_dependences(p);
	if (!p->file.model)
		return;
	check_heads(p);
	check_experts(p);
	check_stages(p);
	check_sequence(p);
	trained_check(p->s, p->r.d);
}
