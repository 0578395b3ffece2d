/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * FSDP2, HSDP and optimizers against traces of torch 2.14.1 and transformers
 * 5.12.1 on fake CUDA tensors: peaks of a small Llama (7 layers, h 1024,
 * f 2816, 8 heads, V 8192, S 512) with each setting, to the byte. */
#include <inttypes.h>
#include <string.h>

#include "input/family.h"
#include "kernel/optimizer.h"
#include "sim/sim.h"

static int failures, checks;

static void must(const char *plan, const char *what, uint64_t got, uint64_t want)
{
	checks++;
	if (got != want) {
		failures++;
		printf("FAIL: %s, %s: %" PRIu64 ", want %" PRIu64 "\n", plan, what, got, want);
	}
}

static struct spec base_spec(void)
{
	struct spec s = { 0 };
	for (size_t i = 0; i < nfamily; i++)
		if (!strcmp(families[i].model_type, "llama"))
			s.model.family = s.model.outer = &families[i];
	s.model.hidden = 1024;
	s.model.ffn = 2816;
	s.model.heads = s.model.kv_heads = 8;
	s.model.head_dim = 128;
	s.model.vocab = 8192;
	s.model.layers = 7;
	s.model.rotary_fraction = 1;
	s.hw.gpus = s.par.shard = s.par.replicate = 1;
	s.par.reshard_after_forward = true;
	s.prec.params = s.prec.gradients = s.prec.master = s.prec.optimizer = s.prec.reduce = DT_FP32;
	s.prec.compute = DT_BF16;
	s.optim.weight_decay = 0.01;
	s.train.micro_batch = s.train.grad_accum = 1;
	s.train.seq_len = 512;
	s.train.zero_grad_to_none = s.train.separate_labels = true;
	return s;
}

/* ---- settings; all but those of one GPU shard over 8 */

static void fsdp(struct spec *s, struct recipe *r)
{
	(void)r;
	s->par.zero = 3;
	s->par.shard = s->hw.gpus = 8;
}
static void accumulated(struct spec *s, uint64_t n) { s->train.grad_accum = n; s->par.no_sync = true; }
static void hsdp(struct spec *s, struct recipe *r) { fsdp(s, r); s->par.replicate = 2; }
static void hsdp_bf16(struct spec *s, struct recipe *r) { hsdp(s, r); s->prec.reduce = DT_BF16; }
static void hsdp_twice(struct spec *s, struct recipe *r) { hsdp_bf16(s, r); s->train.grad_accum = 2; }
static void fp16(struct spec *s, struct recipe *r) { fsdp(s, r); s->prec.compute = s->prec.reduce = DT_FP16; }
static void ahead(struct spec *s, struct recipe *r) { fsdp(s, r); s->par.backward_prefetch = 2; }
static void ahead_full(struct spec *s, struct recipe *r)
{
	fsdp(s, r);
	r->checkpoint = CKPT_FULL;
	s->par.forward_prefetch = 2;
	s->par.backward_prefetch = 3;
}
static void no_sync(struct spec *s, struct recipe *r) { fsdp(s, r); accumulated(s, 3); s->prec.reduce = DT_BF16; }
static void no_sync_zero(struct spec *s, struct recipe *r)
{
	fsdp(s, r);
	accumulated(s, 2);
	s->train.zero_grad_to_none = false;
}
static void forloop(struct spec *s, struct recipe *r) { fsdp(s, r); s->optim.impl = IMPL_FORLOOP; }
static void amsgrad(struct spec *s, struct recipe *r) { fsdp(s, r); s->optim.impl = IMPL_FOREACH; s->optim.amsgrad = true; }
static void amsgrad_alone(struct spec *s, struct recipe *r)
{
	(void)r;
	s->prec.params = s->prec.gradients = s->prec.master = s->prec.optimizer = DT_BF16;
	s->optim.impl = IMPL_FOREACH;
	s->optim.amsgrad = true;
}
static void amsgrad_forloop(struct spec *s, struct recipe *r) { amsgrad_alone(s, r); s->optim.impl = IMPL_FORLOOP; }

/* Highest point of all windows of a kind, in the first and in the steady step. */
static const struct traced {
	const char *name;
	void (*set)(struct spec *s, struct recipe *r);
	uint64_t forward[2], backward[2], optimizer[2];
} traces[] = {
	{ "fsdp", fsdp, { 327992320, 434734080 }, { 373199360, 479941120 }, { 213458944, 213458944 } },
	{ "fsdp, fp16", fp16, { 327992320, 434734080 }, { 347505152, 454246912 }, { 213458944, 213458944 } },
	{ "hsdp", hsdp, { 327992320, 434734080 }, { 373199360, 479941120 }, { 213458944, 213458944 } },
	{ "hsdp, reduced in bf16", hsdp_bf16, { 327992320, 434734080 }, { 350716928, 457458688 }, { 213458944, 213458944 } },
	{ "hsdp, two micro-batches", hsdp_twice, { 381346304, 488088064 }, { 397647360, 504389120 },
	  { 213458944, 213458944 } },
	{ "backward prefetch", ahead, { 327992320, 434734080 }, { 398893568, 505635328 }, { 213458944, 213458944 } },
	{ "prefetch, recompute", ahead_full, { 205953536, 312695296 }, { 320939520, 427681280 }, { 213458944, 213458944 } },
	{ "no sync, reduced in bf16", no_sync, { 541408256, 648150016 }, { 549792256, 656534016 },
	  { 213458944, 213458944 } },
	{ "no sync, gradients zeroed", no_sync_zero, { 754824192, 914919936 }, { 766358016, 926453760 },
	  { 213458944, 213458944 } },
	{ "fsdp, for-loop", forloop, { 327992320, 434700288 }, { 373199360, 479907328 }, { 221814272, 221814272 } },
	{ "fsdp, foreach, amsgrad", amsgrad, { 327992320, 488054272 }, { 373199360, 533261312 }, { 320133120, 320133120 } },
	{ "foreach, amsgrad", amsgrad_alone, { 428803584, 1069051392 }, { 437187584, 1077435392 },
	  { 1280504832, 1280504832 } },
	{ "for-loop, amsgrad", amsgrad_forloop, { 428803584, 1069051392 }, { 437187584, 1077435392 },
	  { 1100645376, 1100645376 } },
};

static uint64_t highest(const struct walked *w, int32_t step, enum window win)
{
	uint64_t top = 0;
	for (size_t i = 0; i < w->nwindow; i++)
		if (w->windows[i].step == step && w->windows[i].window == win && w->windows[i].peak > top)
			top = w->windows[i].peak;
	return top;
}

static struct walked run(struct arena *a, struct spec *s, void (*set)(struct spec *, struct recipe *), const char *name)
{
	struct recipe r = { .checkpoint = CKPT_NONE };
	set(s, &r);
	struct graph *g = trace_program(a, s, &r);
	const char *bad = graph_check(g, a);
	if (bad) {
		failures++;
		printf("FAIL: %s: %s\n", name, bad);
	}
	return walk(g, a, NULL, NULL);
}

static void traced_peaks(struct arena *a)
{
	for (size_t i = 0; i < COUNT(traces); i++) {
		const struct traced *x = &traces[i];
		struct spec s = base_spec();
		struct walked w = run(a, &s, x->set, x->name);
		for (int step = 1; step <= 2; step++) {
			must(x->name, "forward", highest(&w, step, WIN_FORWARD), x->forward[step - 1]);
			must(x->name, "backward", highest(&w, step, WIN_BACKWARD), x->backward[step - 1]);
			must(x->name, "optimizer", highest(&w, step, WIN_OPTIMIZER), x->optimizer[step - 1]);
		}
	}
}

/* ---- what is at rest, by hand */

static const uint64_t parameters = 2 * 8192 * 1024 + 1024 + 7 * (4 * 1024 * 1024 + 3 * 2816 * 1024 + 2 * 1024);

static void bf16(struct spec *s, struct recipe *r)
{
	(void)r;
	s->prec.params = s->prec.gradients = s->prec.master = s->prec.optimizer = DT_BF16;
}
static void eight_bits(struct spec *s, struct recipe *r) { bf16(s, r); s->optim.name = OPT_ADAM8BIT; }
static void lion(struct spec *s, struct recipe *r) { bf16(s, r); s->optim.name = OPT_LION; s->optim.impl = IMPL_FORLOOP; }
static void master(struct spec *s, struct recipe *r) { bf16(s, r); s->prec.master = s->prec.optimizer = DT_FP32; }
static void momentum(struct spec *s, struct recipe *r) { bf16(s, r); s->optim.name = OPT_SGD; s->optim.momentum = 0.9; }
static void buckets(struct spec *s, struct recipe *r) { bf16(s, r); s->par.replicate = s->hw.gpus = 4; }
static void bucket_views(struct spec *s, struct recipe *r) { buckets(s, r); s->par.bucket_view = true; }
static void offload(struct spec *s, struct recipe *r) { fsdp(s, r); s->par.cpu_offload = true; }

/* 8-bit states where a parameter has 4096 elements or more: two bytes and two fp32 per 256; else two fp32.  The two
 * maps are shared. */
static uint64_t eight_bit_bytes(void)
{
	uint64_t norms = 15 * 1024, large = parameters - norms;
	return 2 * large + 2 * 4 * (large / 256) + 2 * 4 * norms + 2 * 1024;
}

static void at_rest(struct arena *a)
{
	const uint64_t steps = 512 * (7 * 9 + 3);
	const struct { const char *name; void (*set)(struct spec *, struct recipe *); enum tensor_class cls; uint64_t want; } rest[] = {
		{ "fused AdamW", bf16, CLASS_OPTIMIZER, 4 * parameters + steps },
		{ "8-bit AdamW", eight_bits, CLASS_OPTIMIZER, eight_bit_bytes() },
		{ "Lion", lion, CLASS_OPTIMIZER, 2 * parameters },
		{ "SGD with momentum", momentum, CLASS_OPTIMIZER, 2 * parameters },
		{ "master weights", master, CLASS_MASTER, 4 * parameters },
		{ "master weights, states", master, CLASS_OPTIMIZER, 8 * parameters + steps },
		{ "DDP", buckets, CLASS_COMM, 2 * parameters },
		{ "offloaded shards", offload, CLASS_PARAMETER, 0 },
		{ "offloaded states", offload, CLASS_OPTIMIZER, 0 },
	};
	for (size_t i = 0; i < COUNT(rest); i++) {
		struct spec s = base_spec();
		struct walked w = run(a, &s, rest[i].set, rest[i].name);
		must(rest[i].name, class_names[rest[i].cls], w.at_end[rest[i].cls], rest[i].want);
	}
}

/* With views the gradients live in the buckets; without, beside them. */
static void bucket_gradients(struct arena *a)
{
	struct spec s = base_spec(), v = base_spec();
	struct walked beside = run(a, &s, buckets, "DDP"), views = run(a, &v, bucket_views, "DDP, bucket views");
	must("DDP", "gradients beside buckets", highest(&beside, 2, WIN_OPTIMIZER) - highest(&views, 2, WIN_OPTIMIZER),
	     2 * parameters);
}

static void table(void)
{
	for (size_t i = 0; i < noptimizer; i++)
		must("table", "row found by name", (uint64_t)(optimizer_row(optimizers[i].name, optimizers[i].impl) - optimizers), i);
}

int main(void)
{
	struct arena *a = arena_new();
	traced_peaks(a);
	at_rest(a);
	bucket_gradients(a);
	table();
	printf("%d checks, %d failures\n", checks, failures);
	arena_free(a);
	return failures != 0;
}
