/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Advice names the side that is too large and nothing that the plan already
 * does. */
#include "kernel/kernel.h"
#include "opt/opt.h"
#include "plan/advice.h"

#include <string.h>

static int failures;

static void expect(struct arena *a, const struct result *r, const char *what, const char *has, const char *lacks)
{
	const char *s = advise(r, a);
	if ((has && (!s || !strstr(s, has))) || (!has && s) || (lacks && s && strstr(s, lacks))) {
		failures++;
		printf("FAIL: %s: wanted '%s' and not '%s' in '%s'\n", what, has ? has : "(nothing)", lacks ? lacks : "", s ? s : "(nothing)");
	}
}

static int kernel_named(enum kernel_op op, const char *name)
{
	for (size_t i = 0; i < kernels[op].nrow; i++)
		if (!strcmp(kernels[op].rows[i].name, name))
			return (int)i;
	return 0;
}

static struct spec make_spec(void)
{
	struct spec s = { 0 };
	s.hw.gpus = 8;
	s.par = (struct parallel){ .shard = 1, .replicate = 8, .reshard_after_forward = true };
	s.prec = (struct precision){ .params = DT_BF16, .compute = DT_BF16 };
	s.optim = (struct optimizer){ .name = OPT_ADAMW, .impl = IMPL_FUSED };
	s.train = (struct train){ .micro_batch = 4, .seq_len = 4096, .grad_accum = 1 };
	s.kernel[K_ATTENTION] = kernel_named(K_ATTENTION, "flash");
	s.kernel[K_LOSS] = kernel_named(K_LOSS, "torch");
	return s;
}

/* 100 GB of one class beside 10 GB of parameters, on a GPU of 80. */
static struct result make_result(struct spec *s, struct class_bytes *c, enum tensor_class cls)
{
	c[0] = (struct class_bytes){ cls, UINT64_C(100000000000) };
	c[1] = (struct class_bytes){ CLASS_PARAMETER, UINT64_C(10000000000) };
	return (struct result){ .spec = s, .limit = UINT64_C(80000000000), .by_class = c, .nclass = 2,
				.peak_step = 2, .peak_window = WIN_BACKWARD };
}

static void choose(struct arena *a, struct spec *s, const char *name)
{
	*VEC_PUSH(a, &s->memory) = (struct choice){ .opt = opt_find(name) };
}

static void static_side(struct arena *a)
{
	struct spec s = make_spec();
	struct class_bytes c[2];
	struct result r = make_result(&s, c, CLASS_OPTIMIZER);
	expect(a, &r, "whole states are sharded first", "first try: shard it", "more GPUs");
	s.par = (struct parallel){ .shard = 8, .replicate = 1, .zero = 3, .reshard_after_forward = true };
	expect(a, &r, "sharded states want more GPUs", "first try: more GPUs", "zero: 3");
	expect(a, &r, "then the host", "cpu_offload", NULL);
	s.par.cpu_offload = true;
	s.optim.name = OPT_ADAM8BIT;
	expect(a, &r, "what is on is not advised", "LoRA", "cpu_offload");
	expect(a, &r, "an 8-bit optimizer is not advised twice", "LoRA", "8-bit");
	s = make_spec();
	s.hw.gpus = s.par.replicate = 1;
	expect(a, &r, "one GPU", "more GPUs that share it", NULL);
	s.optim.name = OPT_ADAM8BIT;
	s.train.zero_grad_to_none = true;
	expect(a, &r, "the step in backward", "optimizer_in_backward", "8-bit");
	s.train.clip_grad_norm = 1;
	expect(a, &r, "clipping needs all gradients", "LoRA", "optimizer_in_backward");
	s.optim.name = OPT_ADAMW;
	r.peak_step = 1;
	r.peak_window = WIN_OPTIMIZER;
	r.allocated_first = 2;
	r.allocated_steady = 1;
	expect(a, &r, "first step", "the first optimizer step", "fused");
	s.optim.impl = IMPL_FOREACH;
	expect(a, &r, "first step of a foreach optimizer", "first try: a fused step", NULL);
}

static void dynamic_side(struct arena *a)
{
	struct spec s = make_spec();
	struct class_bytes c[2];
	struct result r = make_result(&s, c, CLASS_SAVED);
	expect(a, &r, "activations", "first try: recompute", "flash");
	s.kernel[K_ATTENTION] = kernel_named(K_ATTENTION, "eager");
	expect(a, &r, "eager attention goes first", "first try: kernels.attention: flash", NULL);
	s.kernel[K_ATTENTION] = kernel_named(K_ATTENTION, "flash");
	choose(a, &s, "recompute");
	expect(a, &r, "recomputed already", "first try: a smaller train.micro_batch", "memory.recompute");
	s.train.micro_batch = 1;
	expect(a, &r, "one sequence already", "shorter train.seq_len", "micro_batch");
}

static void other_sides(struct arena *a)
{
	struct spec s = make_spec();
	struct class_bytes c[2];
	struct result r = make_result(&s, c, CLASS_LOGITS);
	expect(a, &r, "logits", "first try: compute the loss in chunks", NULL);
	s.train.hold_logits = true;
	expect(a, &r, "held logits", "first try: drop the logits", NULL);
	choose(a, &s, "chunk_loss");
	expect(a, &r, "chunked already", "the loss head", "chunk");
	s = make_spec();
	s.par = (struct parallel){ .shard = 8, .replicate = 1, .zero = 3 };
	r = make_result(&s, c, CLASS_UNSHARDED);
	expect(a, &r, "gathered parameters stay", "first try: parallel.reshard_after_forward", NULL);
	r.fits = true;
	expect(a, &r, "nothing to be said when it fits", NULL, NULL);
}

int main(void)
{
	struct arena *a = arena_new();
	if (advice_check()) {
		failures++;
		printf("FAIL: a tip names an optimization that opts[] lacks: %s\n", advice_check());
	}
	static_side(a);
	dynamic_side(a);
	other_sides(a);
	arena_free(a);
	return failures != 0;
}
