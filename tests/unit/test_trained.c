/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What is trained: counts of adapters that peft's print_trainable_parameters()
 * prints, frozen modules, and names that a model does not have. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "input/model.h"
#include "kernel/trained.h"

#define NAMES(...) { .v = (const char *[]){ __VA_ARGS__ }, .n = sizeof (const char *[]){ __VA_ARGS__ } / sizeof (char *) }

static int failures, checks;

static void must_equal(const char *what, uint64_t x, uint64_t y)
{
	checks++;
	if (x != y) {
		failures++;
		printf("FAIL: %s: %" PRIu64 ", wanted %" PRIu64 "\n", what, x, y);
	}
}

static struct spec spec_of(struct arena *a, const char *name)
{
	const char *root = getenv("MEMPLAN_DATA");
	struct spec s = { 0 };
	struct diag *d = diag_new(a);
	const struct node *n = node_read(a, d, arena_printf(a, "%s/models/%s.yaml", root ? root : ".", name));
	if (!n || !model_from_node(a, d, n, name, &s.model)) {
		diag_print(d, stdout);
		exit(1);
	}
	return s;
}

/* The counts are in the publications and model cards of such runs. */
static const struct lora_case {
	const char *model;
	uint64_t rank;
	struct strings targets;
	uint64_t trained;
} lora_cases[] = {
	{ "llama-2-7b", 8, NAMES("q_proj", "v_proj"), 4194304 },
	{ "llama-2-7b", 8, NAMES("q", "v"), 4194304 },
	{ "llama-2-7b", 8, NAMES("self_attn.q_proj", "self_attn.v_proj"), 4194304 },
	{ "llama-3-8b", 8, { 0 }, 20971520 },
	{ "llama-3-8b", 8, NAMES("q", "k", "v", "o", "gate", "up", "down"), 20971520 },
	{ "tinyllama-1.1b", 64, { 0 }, 50462720 },
	{ "gpt2", 8, NAMES("c_attn"), 294912 },
};

static void test_lora(struct arena *a)
{
	for (size_t i = 0; i < COUNT(lora_cases); i++) {
		const struct lora_case *c = &lora_cases[i];
		struct spec s = spec_of(a, c->model);
		uint64_t base = trained_count(a, &s).all;
		s.train.lora = (struct lora){ .present = true, .rank = c->rank, .targets = c->targets };
		must_equal(c->model, trained_count(a, &s).trained, c->trained);
		must_equal(c->model, trained_count(a, &s).all, base + c->trained);
	}
}

/* Frozen modules get no adapters. */
static void test_lora_and_freeze(struct arena *a)
{
	struct spec s = spec_of(a, "llama-2-7b");
	s.train.lora = (struct lora){ .present = true, .rank = 8, .targets = NAMES("q", "v") };
	s.train.freeze = (struct strings)NAMES("layers.0", "v_proj");
	must_equal("adapters of q in 31 layers", trained_count(a, &s).trained, 31 * 2 * 8 * 4096);
}

static const struct freeze_case {
	const char *model;
	struct strings freeze;
	uint64_t frozen;
} freeze_cases[] = {
	{ "llama-2-7b", { 0 }, 0 },
	{ "llama-2-7b", NAMES("embedding"), 32000 * 4096 },
	{ "llama-2-7b", NAMES("embed_tokens", "lm_head"), 2 * 32000 * 4096 },
	{ "llama-2-7b", NAMES("model.norm"), 4096 },
	{ "llama-2-7b", NAMES("norm"), 4096 },
	{ "llama-2-7b", NAMES("mlp"), UINT64_C(32) * 3 * 4096 * 11008 },
	{ "llama-2-7b", NAMES("layers.3", "layers.30"), 2 * (4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096) },
	{ "llama-2-7b", NAMES("layers"), UINT64_C(6738415616) - 2 * 32000 * 4096 - 4096 },
	{ "llama-2-7b", NAMES("decoder"), UINT64_C(6738415616) - 2 * 32000 * 4096 - 4096 },
	{ "llama-3.2-1b", NAMES("head"), 128256 * 2048 },     /* tied: the embedding too */
};

static void test_freeze(struct arena *a)
{
	for (size_t i = 0; i < COUNT(freeze_cases); i++) {
		const struct freeze_case *c = &freeze_cases[i];
		struct spec s = spec_of(a, c->model);
		s.train.freeze = c->freeze;
		struct parameter_count n = trained_count(a, &s);
		must_equal(c->freeze.n ? c->freeze.v[0] : "nothing", n.all - n.trained, c->frozen);
	}
}

static size_t errors_of(struct arena *a, struct train train)
{
	struct spec s = spec_of(a, "llama-2-7b");
	struct diag *d = diag_new(a);
	s.train = train;
	trained_check(&s, d);
	return diag_count(d, SEV_ERROR);
}

static void test_names(struct arena *a)
{
	must_equal("known part", errors_of(a, (struct train){ .freeze = NAMES("layers.31") }), 0);
	must_equal("no such layer", errors_of(a, (struct train){ .freeze = NAMES("layers.32") }), 1);
	must_equal("part of a word", errors_of(a, (struct train){ .freeze = NAMES("embed") }), 1);
	must_equal("no vision tower", errors_of(a, (struct train){ .freeze = NAMES("vision") }), 0);
	must_equal("all frozen", errors_of(a, (struct train){ .freeze = NAMES("model", "lm_head") }), 1);
	must_equal("known target", errors_of(a, (struct train){ .lora = { .present = true, .rank = 8, .targets = NAMES("up") } }), 0);
	must_equal("no place for adapters", errors_of(a, (struct train){ .freeze = NAMES("mlp"),
		.lora = { .present = true, .rank = 8, .targets = NAMES("up") } }), 1);
	must_equal("no linear module",
		   errors_of(a, (struct train){ .lora = { .present = true, .targets = NAMES("norm", "lm_head") } }), 2);
}

int main(void)
{
	struct arena *a = arena_new();
	test_lora(a);
	test_lora_and_freeze(a);
	test_freeze(a);
	test_names(a);
	printf("%d checks, %d failures\n", checks, failures);
	arena_free(a);
	return failures != 0;
}
