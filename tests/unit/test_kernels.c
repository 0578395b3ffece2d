/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Kernel rows against hand formulas: what a decoder layer saves with each
 * attention back end and with Liger's kernels, which back end the dispatcher
 * takes, when a mask exists, and which gradients are written in place.
 * B = 1; sources stand in the rows. */
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

enum { S = 1024, H1 = 1024, F = 2816, HEADS = 8, D = 128, SM = 132, WINDOW = 512 };

static struct spec plan(const char *family, uint64_t kv_heads)
{
	struct spec s = { 0 };
	s.model.family = s.model.outer = family_find(family);
	s.model.hidden = H1;
	s.model.ffn = F;
	s.model.heads = HEADS;
	s.model.kv_heads = kv_heads;
	s.model.head_dim = D;
	s.model.vocab = 8192;
	s.model.layers = 4;
	s.model.rotary_fraction = 1;
	s.model.qk_norm = s.model.family->qk_norm;
	s.model.act = s.model.family->act;
	s.hw.gpus = s.par.shard = s.par.replicate = 1;
	s.hw.gpu.c[CONST_SM_COUNT].value = SM;
	s.prec.params = s.prec.compute = s.prec.gradients = s.prec.master = s.prec.optimizer = DT_BF16;
	s.train.micro_batch = s.train.grad_accum = 1;
	s.train.seq_len = S;
	s.train.zero_grad_to_none = s.train.separate_labels = true;
	return s;
}

static void choose(struct spec *s, enum kernel_op op, const char *name)
{
	for (size_t i = 0; i < kernels[op].nrow; i++)
		if (!strcmp(kernels[op].rows[i].name, name)) {
			s->kernel[op] = (int)i;
			return;
		}
	must(name, 0, 1);
}

static void choose_liger(struct spec *s)
{
	choose(s, K_RMS_NORM, "liger");
	choose(s, K_LAYER_NORM, "liger");
	choose(s, K_ROPE, "liger");
	choose(s, K_MLP, "liger");
}

static struct graph *graph_of(struct arena *a, const struct spec *s)
{
	struct recipe r = { .checkpoint = CKPT_NONE };
	struct graph *g = trace_program(a, s, &r);
	must("sound graph", graph_check(g, a) == NULL, 1);
	return g;
}

static uint64_t saved(struct arena *a, const struct spec *s)
{
	return walk(graph_of(a, s), a, NULL, NULL).saved_per_layer[1];
}

static const struct op *find_op(const struct graph *g, const char *name)
{
	for (size_t i = 0; i < g->ops.n; i++)
		if (!strcmp(g->ops.v[i].name, name))
			return &g->ops.v[i];
	return NULL;
}

static bool has(struct arena *a, const struct spec *s, const char *op)
{
	return find_op(graph_of(a, s), op) != NULL;
}

/* What the two composite norms (8·S·h + 4·S each, with their output) and the MLP save. */
static const uint64_t rest = 16 * (uint64_t)S * H1 + 8 * (uint64_t)S * F + 8 * S;

static void attention_rows(struct arena *a)
{
	const uint64_t sh = (uint64_t)S * H1, probabilities = 4 * (uint64_t)HEADS * S * S;
	struct spec s = plan("llama", HEADS);
	choose(&s, K_ATTENTION, "flash");
	must("flash: q, k, v, out, logsumexp, generator state", saved(a, &s), rest + 8 * sh + 4 * HEADS * S + 1024);
	choose(&s, K_ATTENTION, "efficient");
	must("efficient: the same, logsumexp rows at multiples of 32", saved(a, &s), rest + 8 * sh + 4 * HEADS * S + 1024);
	choose(&s, K_ATTENTION, "cudnn");
	must("cudnn: the same, statistics [B,H,S,1]", saved(a, &s), rest + 8 * sh + 4 * HEADS * S + 1024);
	choose(&s, K_ATTENTION, "math");
	must("math: q, k, v and probabilities in fp32, out in bf16", saved(a, &s), rest + 12 * sh + probabilities + 2 * sh);
	choose(&s, K_ATTENTION, "eager");
	must("eager: q, k, v, out, probabilities in fp32 and bf16", saved(a, &s), rest + 8 * sh + probabilities * 3 / 2);
	s.train.seq_len = 1000;
	choose(&s, K_ATTENTION, "efficient");
	must("efficient, 1000 tokens", saved(a, &s),
	     24 * 1000 * (uint64_t)H1 + 8 * 1000 * (uint64_t)F + 2 * 4096 + 4 * HEADS * 1024 + 1024);
}

static void dispatcher(struct arena *a)
{
	struct spec s = plan("llama", HEADS);
	must("flash runs", has(a, &s, "_scaled_dot_product_flash_attention"), 1);
	must("no mask", has(a, &s, "le"), 0);
	s.prec.params = s.prec.compute = DT_FP32;
	must("fp32: memory-efficient", has(a, &s, "_scaled_dot_product_efficient_attention"), 1);
	s = plan("llama", 2);
	choose(&s, K_ATTENTION, "efficient");
	must("grouped heads: math", has(a, &s, "_safe_softmax"), 1);
	s = plan("llama", HEADS);
	s.model.head_dim = 320;
	must("heads over 256: memory-efficient", has(a, &s, "_scaled_dot_product_efficient_attention"), 1);
	s.model.head_dim = 60;
	must("heads of 60: q, k, v and out are padded to 64, out is copied without", saved(a, &s),
	     rest + 8 * (uint64_t)S * HEADS * 64 + 2 * (uint64_t)S * HEADS * 60 + 4 * HEADS * S + 1024);
	choose(&s, K_ATTENTION, "eager");
	must("eager always has a mask", has(a, &s, "le"), 1);
}

/* Mistral: all layers slide; a bool mask once, an additive one in each layer, keys and values of all heads. */
static void window(struct arena *a)
{
	static const uint8_t slides[4] = { 1, 1, 1, 1 };
	const uint64_t sh = (uint64_t)S * H1;
	struct spec s = plan("mistral", 2);
	s.model.sliding = slides;
	s.model.sliding_window = S + 1;
	must("window longer than the sequence: no mask", has(a, &s, "bitwise_and"), 0);
	s.model.sliding_window = WINDOW;
	must("window: mask", has(a, &s, "bitwise_and"), 1);
	must("window: memory-efficient, heads repeated", saved(a, &s),
	     rest + 8 * sh + 2 * (uint64_t)S * S + 4 * HEADS * S + 1024);
}

static const struct tensor *operand(const struct graph *g, const struct op *o, bool write, uint32_t i)
{
	return &g->tensors.v[g->pool.v[(write ? o->writes : o->reads) + i]];
}

static void liger(struct arena *a)
{
	struct spec s = plan("llama", HEADS);
	choose_liger(&s);
	must("liger layer: x and 1/rms of two norms, gate, up, product", saved(a, &s),
	     16 * (uint64_t)S * H1 + 6 * (uint64_t)S * F + 4 * HEADS * S + 8 * S + 1024);
	struct graph *g = graph_of(a, &s);
	const struct op *norm = find_op(g, "liger_rms_norm_backward"), *mul = find_op(g, "liger_silu_mul_backward");
	const struct op *rope = find_op(g, "liger_rope");
	must("liger ops", norm && mul && rope, 1);
	if (!norm || !mul || !rope)
		return;
	must("dx is written over dy", operand(g, norm, true, 1)->storage == operand(g, norm, false, 0)->storage, 1);
	must("one fp32 row per multiprocessor", g->storages.v[operand(g, norm, true, 0)->storage].size->value,
	     4 * (uint64_t)SM * H1);
	must("gate is overwritten", operand(g, mul, true, 0)->storage == operand(g, mul, false, 1)->storage, 1);
	must("q is rotated in place", operand(g, rope, true, 0)->storage == operand(g, rope, false, 0)->storage, 1);
	s = plan("olmo2", HEADS);
	choose_liger(&s);
	g = graph_of(a, &s);
	norm = find_op(g, "liger_rms_norm_backward");
	must("olmo2 has liger norms", norm != NULL, 1);
	must("a norm after the block keeps dy",
	     norm && operand(g, norm, true, 1)->storage != operand(g, norm, false, 0)->storage, 1);
	s = plan("gemma", HEADS);
	choose_liger(&s);
	must("gemma: gelu", has(a, &s, "liger_gelu_mul_backward"), 1);
}

/* OLMo: x in fp32, mean and 1/std, and the output; no weights and no normalised copy. */
static void plain_norm(struct arena *a)
{
	struct spec s = plan("olmo", HEADS);
	must("layer norm without weights", saved(a, &s),
	     12 * (uint64_t)S * H1 + 16 * S + 8 * (uint64_t)S * F + 8 * (uint64_t)S * H1 + 4 * HEADS * S + 1024);
}

int main(void)
{
	struct arena *a = arena_new();
	attention_rows(a);
	dispatcher(a);
	window(a);
	liger(a);
	plain_norm(a);
	printf("%d checks, %d failures\n", checks, failures);
	arena_free(a);
	return failures != 0;
}
