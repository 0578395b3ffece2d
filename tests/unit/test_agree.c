/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Answers that must agree, over many plans: fold and walk; a graph in which
 * one layer stands for many and one with every layer; and the graph's own
 * rules.  Run in the source directory, or with MEMPLAN_DATA naming it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "input/model.h"
#include "kernel/step.h"
#include "sim/sim.h"

static int failures, checks;

static void fail(const char *plan, const char *what)
{
	failures++;
	printf("FAIL: %s: %s\n", plan, what);
}

static void must_equal(const char *plan, const char *what, uint64_t x, uint64_t y)
{
	checks++;
	if (x != y) {
		failures++;
		printf("FAIL: %s: %s: %" PRIu64 " != %" PRIu64 "\n", plan, what, x, y);
	}
}

static bool load_model(struct arena *a, const char *name, struct model *out)
{
	const char *root = getenv("MEMPLAN_DATA");
	struct diag *d = diag_new(a);
	const char *dir = strstr(name, "-tower") ? "tests/configs" : "models", *end = strstr(name, "-tower") ? "json" : "yaml";
	const struct node *n = node_read(a, d, arena_printf(a, "%s/%s/%s.%s", root ? root : ".", dir, name, end));
	if (n && model_from_node(a, d, n, name, out))
		return true;
	diag_print(d, stdout);
	return false;
}

static void compare(struct arena *a, const char *plan, const struct spec *s, struct recipe r)
{
	struct graph *g = trace_program(a, s, &r);
	const char *bad = graph_check(g, a);
	struct folded f = fold(g, a);
	struct walked w = walk(g, a, NULL, NULL);
	checks++;
	if (bad)
		fail(plan, bad);
	for (int p = 0; p < PLACE_N; p++)
		must_equal(plan, "fold and walk, peak", f.peak[p], w.peak[p]);
	must_equal(plan, "fold and walk, first step", f.peak_first, w.peak_first);
	must_equal(plan, "fold and walk, steady step", f.peak_steady, w.peak_steady);
	uint64_t alive = 0;
	for (size_t i = 0; i < w.nalive; i++)
		alive += g->storages.v[w.alive[i].storage].bytes * w.alive[i].copies;
	must_equal(plan, "alive set and peak", alive, w.peak[PLACE_GPU]);
	r.unroll = true;
	struct graph *whole = trace_program(a, s, &r);
	bad = graph_check(whole, a);
	if (bad)
		fail(plan, bad);
	struct walked v = walk(whole, a, NULL, NULL);
	must_equal(plan, "peak with every layer", w.peak[PLACE_GPU], v.peak[PLACE_GPU]);
	must_equal(plan, "windows with every layer", w.nwindow, v.nwindow);
	for (size_t i = 0; i < w.nwindow && i < v.nwindow; i++) {
		must_equal(plan, "window start", w.windows[i].start, v.windows[i].start);
		must_equal(plan, "window peak", w.windows[i].peak, v.windows[i].peak);
		must_equal(plan, "window end", w.windows[i].end, v.windows[i].end);
	}
	for (size_t i = 0; i < w.nlayer && i < v.nlayer; i++)
		must_equal(plan, "saved by a layer", w.saved_per_layer[i], v.saved_per_layer[i]);
	must_equal(plan, "layer of the peak", (uint64_t)w.peak_layer, (uint64_t)v.peak_layer);
}

/* ---- the plans: each variation on each model */

static void plain(struct spec *s, struct recipe *r) { (void)s; (void)r; }
static void full(struct spec *s, struct recipe *r) { (void)s; r->checkpoint = CKPT_FULL; }
static void reentrant(struct spec *s, struct recipe *r) { (void)s; r->checkpoint = CKPT_FULL; r->reentrant = true; }
static void some(struct spec *s, struct recipe *r) { (void)s; r->checkpoint = CKPT_FULL; r->checkpoint_layers = 3; }
static void second(struct spec *s, struct recipe *r) { (void)s; r->checkpoint = CKPT_FULL; r->checkpoint_every = 2; }
static void selective(struct spec *s, struct recipe *r) { (void)s; r->checkpoint = CKPT_SELECTIVE; r->sac = sac_rows[1]; }
static void chunked(struct spec *s, struct recipe *r) { (void)s; r->loss_chunks = 5; r->loss_checkpoint = true; }
static void accumulate(struct spec *s, struct recipe *r) { (void)r; s->train.grad_accum = 3; }
static void zeroed(struct spec *s, struct recipe *r) { (void)r; s->train.zero_grad_to_none = false; s->train.grad_accum = 2; }
static void autocast(struct spec *s, struct recipe *r)
{
	r->checkpoint = CKPT_FULL;
	s->prec.params = s->prec.gradients = s->prec.master = s->prec.optimizer = DT_FP32;
	s->prec.autocast = true;
	s->train.grad_accum = 2;
}
static void sharded(struct spec *s, struct recipe *r)
{
	(void)r;
	s->par.zero = 3;
	s->par.shard = s->hw.gpus = 8;
	s->prec.params = s->prec.gradients = s->prec.master = s->prec.optimizer = DT_FP32;
}
static void sharded_full(struct spec *s, struct recipe *r) { sharded(s, r); full(s, r); s->train.grad_accum = 3; }
static void sharded_kept(struct spec *s, struct recipe *r) { sharded(s, r); s->par.reshard_after_forward = false; }
static void wrapped(struct spec *s, struct recipe *r) { sharded(s, r); s->par.units = UNITS_LAYERS_EMBEDDING_HEAD; }
static void wrapped_full(struct spec *s, struct recipe *r) { wrapped(s, r); full(s, r); s->train.grad_accum = 3; }
static void wrapped_reentrant(struct spec *s, struct recipe *r) { wrapped(s, r); reentrant(s, r); }
static void wrapped_chunked(struct spec *s, struct recipe *r) { wrapped(s, r); chunked(s, r); }
static void wrapped_kept(struct spec *s, struct recipe *r)
{
	wrapped(s, r);
	s->par.reshard_after_forward = RESHARD_NEVER;
	s->par.backward_prefetch = 2;
}
static void wrapped_always(struct spec *s, struct recipe *r)
{
	wrapped(s, r);
	s->par.reshard_after_forward = RESHARD_ALWAYS;
	s->par.forward_prefetch = s->par.backward_prefetch = 2;
	s->par.no_sync = true;
	s->train.grad_accum = 3;
}
static void replicated(struct spec *s, struct recipe *r) { (void)r; s->par.replicate = s->hw.gpus = 4; }

static void adapters(struct spec *s, struct recipe *r)
{
	(void)r;
	s->train.lora = (struct lora){ .present = true, .rank = 16, .alpha = 32, .dropout = 0.05, .dtype = DT_FP32 };
	s->prec.master = s->prec.optimizer = DT_FP32;
	s->train.grad_accum = 2;
}
static void adapters_full(struct spec *s, struct recipe *r) { adapters(s, r); full(s, r); }
static void adapters_reentrant(struct spec *s, struct recipe *r) { adapters(s, r); reentrant(s, r); }
static void adapters_replicated(struct spec *s, struct recipe *r) { adapters(s, r); replicated(s, r); }
static void frozen_lower(struct spec *s, struct recipe *r)
{
	static const char *lower[] = { "embedding", "0", "1", "2", "3", "4" };
	(void)r;
	s->train.freeze = (struct strings){ lower, COUNT(lower) };
}
static void adapters_above(struct spec *s, struct recipe *r) { frozen_lower(s, r); adapters_full(s, r); }
static void frozen_middle(struct spec *s, struct recipe *r)
{
	static const char *middle[] = { "head", "3", "5", "6", "7", "8", "9" };
	(void)r;
	s->train.freeze = (struct strings){ middle, COUNT(middle) };
}
static void frozen_middle_full(struct spec *s, struct recipe *r) { frozen_middle(s, r); full(s, r); }
static void adapters_sharded(struct spec *s, struct recipe *r)
{
	adapters_full(s, r);
	s->par.zero = 3;
	s->par.shard = s->hw.gpus = 8;
}
static void frozen_sharded(struct spec *s, struct recipe *r) { frozen_lower(s, r); sharded(s, r); }
static void frozen_sharded_full(struct spec *s, struct recipe *r) { frozen_middle(s, r); sharded_full(s, r); }
static void frozen_decoder(struct spec *s, struct recipe *r)
{
	static const char *decoder[] = { "decoder" };
	(void)r;
	s->train.freeze = (struct strings){ decoder, COUNT(decoder) };
}

static void shallow(struct spec *s, struct recipe *r) { (void)r; s->model.layers = 2; }
static void shallow_reentrant(struct spec *s, struct recipe *r) { shallow(s, r); reentrant(s, r); }

struct variation { const char *name; void (*set)(struct spec *s, struct recipe *r); };
static const struct variation variations[] = {
	{ "plain", plain }, { "full recompute", full }, { "reentrant recompute", reentrant },
	{ "recompute of some layers", some }, { "recompute of every second layer", second },
	{ "selective recompute", selective }, { "gradient accumulation", accumulate },
	{ "gradients zeroed in place", zeroed }, { "autocast", autocast },
	{ "lower layers frozen", frozen_lower }, { "layers between frozen", frozen_middle },
	{ "layers between frozen, recompute", frozen_middle_full },
};
/* Not of vision towers alone. */
static const struct variation text_variations[] = {
	{ "two layers", shallow }, { "two layers, reentrant", shallow_reentrant },
	{ "chunked loss", chunked }, { "FSDP", sharded }, { "FSDP, recompute, accumulation", sharded_full },
	{ "FSDP without resharding", sharded_kept }, { "FSDP, embedding and head apart", wrapped },
	{ "the same, recompute, accumulation", wrapped_full }, { "the same, reentrant", wrapped_reentrant },
	{ "the same, chunked loss", wrapped_chunked }, { "the same without resharding", wrapped_kept },
	{ "the same, all resharded, prefetch", wrapped_always }, { "DDP", replicated }, { "LoRA", adapters },
	{ "LoRA, full recompute", adapters_full }, { "LoRA, reentrant", adapters_reentrant },
	{ "LoRA, DDP", adapters_replicated }, { "LoRA in upper layers", adapters_above },
	{ "decoder frozen", frozen_decoder }, { "LoRA, FSDP", adapters_sharded },
	{ "lower layers frozen, FSDP", frozen_sharded },
	{ "layers between frozen, FSDP", frozen_sharded_full },
};

/* Deep models by their first layers: enough for a run of dense layers and one of mixtures. */
static const struct { const char *name; uint64_t layers; } cut[] = {
	{ "mixtral-8x7b", 9 }, { "qwen3-30b-a3b", 9 }, { "olmoe-1b-7b", 9 }, { "deepseek-v3", 11 },
	{ "moonlight-16b-a3b", 9 }, { "kimi-k2", 9 }, { "glm-4.5", 11 }, { "qwen1.5-moe-a2.7b", 9 }, { "deepseek-v2-lite", 9 },
};

static const char *const models[] = {
	"llama-3-8b", "llama-3.2-1b", "qwen2.5-0.5b", "qwen3-8b", "gemma-2-2b", "gemma-3-1b", "phi-3-mini-4k",
	"olmo-2-7b", "mistral-7b-v0.1", "gpt2", "pythia-6.9b", "falcon-7b", "falcon-40b",
	"bloom-560m", "gpt-j-6b", "mixtral-8x7b", "qwen3-30b-a3b", "olmoe-1b-7b", "deepseek-v3", "moonlight-16b-a3b",
	"kimi-k2", "glm-4.5", "qwen1.5-moe-a2.7b", "deepseek-v2-lite",
	"clip-vit-large-patch14-tower", "siglip-so400m-patch14-384-tower", "qwen3-vl-8b-tower",
};

static void cut_layers(struct model *m)
{
	for (size_t i = 0; i < COUNT(cut); i++)
		if (!strcmp(m->name, cut[i].name))
			m->layers = cut[i].layers;
}

static struct spec base_spec(const struct model *m)
{
	struct spec s = { .model = *m };
	s.hw.gpus = 1;
	s.par.tensor = s.par.pipeline = s.par.context = s.par.ulysses = s.par.expert = s.par.shard = s.par.replicate = 1;
	s.par.reshard_after_forward = true;
	s.prec.params = s.prec.compute = s.prec.gradients = s.prec.master = s.prec.optimizer = DT_BF16;
	s.prec.reduce = DT_FP32;
	s.train.micro_batch = s.train.grad_accum = 1;
	s.train.seq_len = m->vision.image ? m->positions : 512;
	s.train.zero_grad_to_none = s.train.separate_labels = true;
	return s;
}

/* Every kernel row and every optimization's default on one model of each norm. */
static void compare_rows(struct arena *perm, struct arena *scratch, const struct model *m)
{
	for (int op = 0; op < K_N; op++)
		for (size_t row = 0; row < kernels[op].nrow; row++) {
			struct spec s = base_spec(m);
			struct recipe r = { .checkpoint = row % 2 ? CKPT_FULL : CKPT_NONE };
			arena_reset(scratch);
			s.kernel[op] = (int)row;
			s.hw.gpu.c[CONST_SM_COUNT] = (struct constant){ .value = 132, .set = true };
			compare(scratch, arena_printf(perm, "%s, kernels.%s: %s", m->name, kernels[op].name,
						      kernels[op].rows[row].name), &s, r);
		}
}

static void compare_variations(struct arena *perm, struct arena *scratch, const struct model *m,
			       const struct variation *v, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		struct spec s = base_spec(m);
		struct recipe r = { .checkpoint = CKPT_NONE };
		arena_reset(scratch);
		v[k].set(&s, &r);
		compare(scratch, arena_printf(perm, "%s, %s", m->name, v[k].name), &s, r);
	}
}

int main(int argc, char **argv)
{
	struct arena *perm = arena_new(), *scratch = arena_new();
	for (size_t i = 0; i < COUNT(models); i++) {
		if (argc > 1 && strcmp(argv[1], models[i]))
			continue;
		struct model *m = NEW(perm, struct model);
		if (!load_model(perm, models[i], m)) {
			fail(models[i], "cannot be read");
			continue;
		}
		if (!arch_of(m))
			continue;
		cut_layers(m);
		compare_rows(perm, scratch, m);
		compare_variations(perm, scratch, m, variations, COUNT(variations));
		if (m->vocab > 0)
			compare_variations(perm, scratch, m, text_variations, COUNT(text_variations));
	}
	printf("%d checks, %d failures\n", checks, failures);
	arena_free(perm);
	arena_free(scratch);
	return failures != 0;
}
