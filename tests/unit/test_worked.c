/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Worked examples: hand formulas against the graph.  What a transformers
 * 5.12.1 decoder layer saves under torch 2.14.1 (B = 1, bf16), to the byte. */
#include <inttypes.h>
#include <string.h>

#include "input/family.h"
#include "kernel/step.h"
#include "sim/sim.h"

static int failures, checks;

static void must(const char *what, uint64_t got, uint64_t want)
{
	checks++;
	if (got != want) {
		failures++;
		printf("FAIL: %s: %" PRIu64 ", want %" PRIu64 "\n", what, got, want);
	}
}

struct shape { uint64_t h, f, H, K, d, V, L, S; };

static struct spec llama(struct shape x)
{
	struct spec s = { 0 };
	for (size_t i = 0; i < nfamily; i++)
		if (!strcmp(families[i].model_type, "llama"))
			s.model.family = s.model.outer = &families[i];
	s.model.hidden = x.h;
	s.model.ffn = x.f;
	s.model.heads = x.H;
	s.model.kv_heads = x.K;
	s.model.head_dim = x.d;
	s.model.vocab = x.V;
	s.model.layers = x.L;
	s.model.rotary_fraction = 1;
	s.hw.gpus = s.par.shard = s.par.replicate = 1;
	s.prec.params = s.prec.compute = s.prec.gradients = s.prec.master = s.prec.optimizer = DT_BF16;
	s.train.micro_batch = s.train.grad_accum = 1;
	s.train.seq_len = x.S;
	s.train.zero_grad_to_none = s.train.separate_labels = true;
	return s;
}

static int row(enum kernel_op op, const char *name)
{
	for (size_t i = 0; i < kernels[op].nrow; i++)
		if (!strcmp(kernels[op].rows[i].name, name))
			return (int)i;
	failures++;
	return 0;
}

static struct walked run(struct arena *a, const struct spec *s)
{
	struct recipe r = { .checkpoint = CKPT_NONE };
	return walk(trace_program(a, s, &r), a, NULL, NULL);
}

static const struct shape mha = { 4096, 11008, 32, 32, 128, 32000, 4, 4096 };
static const struct shape gqa = { 4096, 14336, 32, 8, 128, 32000, 4, 4096 };

/* 20·S·h + 4·S·kv + 8·S·f + 4·S·H + 8·S + 1024 */
static uint64_t layer_formula(struct shape x)
{
	return 20 * x.S * x.h + 4 * x.S * x.K * x.d + 8 * x.S * x.f + 4 * x.S * x.H + 8 * x.S + 1024;
}

static void saved_per_layer(struct arena *a)
{
	struct spec s = llama(mha);
	must("layer, 32 heads, flash", run(a, &s).saved_per_layer[1], 763921408);
	must("its formula", layer_formula(mha), 763921408);
	s = llama(gqa);
	must("layer, 8 key heads, flash", run(a, &s).saved_per_layer[1], 822641664);
	must("its formula", layer_formula(gqa), 822641664);
	s = llama(mha);
	s.kernel[K_RMS_NORM] = row(K_RMS_NORM, "torch_fused");
	must("layer, fused norms", run(a, &s).saved_per_layer[1], layer_formula(mha) - 8 * mha.S * mha.h);
	s = llama(mha);
	s.kernel[K_ATTENTION] = row(K_ATTENTION, "eager");
	must("layer, 32 heads, eager", run(a, &s).saved_per_layer[1], 3984621568);
	s = llama(gqa);
	s.kernel[K_ATTENTION] = row(K_ATTENTION, "eager");
	must("layer, 8 key heads, eager", run(a, &s).saved_per_layer[1], 4093673472);
}

static const struct window_peak *find(const struct walked *w, enum window win)
{
	for (size_t i = 0; i < w->nwindow; i++)
		if (w->windows[i].step == 2 && w->windows[i].window == win)
			return &w->windows[i];
	return NULL;
}

/* 4 layers, h 1024, f 2816, 8 heads, V 8192, S 2048, logits held, labels = ids, position ids in the batch.  The
 * figures stand above parameters and include one of the batch's tensors (8·S). */
static void whole_model(struct arena *a)
{
	struct spec s = llama((struct shape){ 1024, 2816, 8, 8, 128, 8192, 4, 2048 });
	uint64_t ids = 8 * s.train.seq_len;
	s.train.hold_logits = s.train.position_ids = true;
	s.train.separate_labels = false;
	struct walked w = run(a, &s);
	const struct window_peak *f = find(&w, WIN_FORWARD), *b = find(&w, WIN_BACKWARD);
	must("layers", w.saved_per_layer[1], 96551936);
	must("after forward", f->end - f->start + ids, 504739328);
	must("forward peak", f->peak - f->start + ids, 571848192);
	must("backward peak", b->peak - f->start + ids, 638940160);
	must("whole step", w.peak_steady, 1047977472);
	struct recipe full = { .checkpoint = CKPT_FULL };
	must("whole step, full recompute", walk(trace_program(a, &s, &full), a, NULL, NULL).peak_steady, 678546944);
}

int main(void)
{
	struct arena *a = arena_new();
	saved_per_layer(a);
	whole_model(a);
	printf("%d checks, %d failures\n", checks, failures);
	arena_free(a);
	return failures != 0;
}
