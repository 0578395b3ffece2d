/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Activation checkpointing of decoder layers: what a layer saves is dropped
 * and made again when its backward comes (torch.utils.checkpoint). */
#include <stddef.h>
#include <string.h>

#include "kernel/build.h"
#include "opt/opt.h"

struct knobs { int granularity; bool reentrant; int save; struct strings ops; uint64_t layers, every; };

enum { GRAIN_FULL, GRAIN_SELECTIVE };
static const struct field_choice grains[] = {
	[GRAIN_FULL] = { "full", "a layer keeps its input only" },
	[GRAIN_SELECTIVE] = { "selective", "a layer keeps its input and the outputs of some ops" },
};
/* in the order of sac_rows[] */
static const struct field_choice saves[] = {
	{ "matmul", "outputs of every matrix product and attention" },
	{ "every_second_matmul", "the same, but every second mm is recomputed" },
	{ "attention", "outputs of attention only" },
};

static const struct field fields[] = {
	{ .name = "granularity", .type = FIELD_CHOICE, .offset = offsetof(struct knobs, granularity),
	  .choices = grains, .nchoice = COUNT(grains), .deflt = "full", .doc = "what is kept" },
	{ .name = "reentrant", .type = FIELD_BOOL, .offset = offsetof(struct knobs, reentrant), .deflt = "false",
	  .doc = "use_reentrant=True: the whole layer runs again, its output included" },
	{ .name = "save", .type = FIELD_CHOICE, .offset = offsetof(struct knobs, save),
	  .choices = saves, .nchoice = COUNT(saves), .deflt = "matmul", .doc = "outputs that selective recompute keeps" },
	{ .name = "ops", .type = FIELD_STRINGS, .offset = offsetof(struct knobs, ops), .computed = "none",
	  .doc = "the same as a list of op names, [mm, silu]; in place of save where it is not empty" },
	{ .name = "layers", .type = FIELD_UINT, .offset = offsetof(struct knobs, layers), .max = 100000, .deflt = "0",
	  .unit = "layers", .doc = "checkpoint the first so many layers; 0: all" },
	{ .name = "every", .type = FIELD_UINT, .offset = offsetof(struct knobs, every), .min = 1, .max = 100000,
	  .deflt = "1", .unit = "layers", .doc = "checkpoint one layer in so many" },
};

static void check_ops(const struct strings *ops, struct loc loc, struct diag *d)
{
	size_t n = 0;
	while (sac_ops[n])
		n++;
	for (size_t i = 0; i < ops->n; i++) {
		size_t k = 0;
		while (sac_ops[k] && strcmp(sac_ops[k], ops->v[i]))
			k++;
		if (sac_ops[k])
			continue;
		diag_error(d, loc, "'recompute.ops' names '%s', which is no op whose output can be kept", ops->v[i]);
		names_hint(d, ops->v[i], sac_ops, n);
	}
}

static void check(const struct spec *s, const void *k, struct loc loc, struct diag *d)
{
	const struct knobs *knobs = k;
	check_ops(&knobs->ops, loc, d);
	if (knobs->granularity == GRAIN_SELECTIVE && knobs->reentrant)
		diag_error(d, loc, "selective recompute needs the non-reentrant form");
	if (knobs->granularity == GRAIN_FULL && (knobs->save != 0 || knobs->ops.n > 0))
		diag_error(d, loc, "'recompute.%s' wants granularity: selective", knobs->save != 0 ? "save" : "ops");
	if (knobs->layers > s->model.layers)
		diag_error(d, loc, "'recompute.layers' is %llu, but the model has %llu layers",
			   (unsigned long long)knobs->layers, (unsigned long long)s->model.layers);
}

static struct sac policy(const struct knobs *knobs)
{
	if (knobs->granularity == GRAIN_FULL)
		return (struct sac){ .name = NULL };
	if (knobs->ops.n == 0)
		return sac_rows[knobs->save];
	return (struct sac){ .name = "ops", .ops = knobs->ops.v };
}

/* needs: any recipe; leaves: layers traced as checkpoint regions */
static void apply(struct recipe *r, const void *k)
{
	const struct knobs *knobs = k;
	r->checkpoint = knobs->granularity == GRAIN_FULL ? CKPT_FULL : CKPT_SELECTIVE;
	r->reentrant = knobs->reentrant;
	r->sac = policy(knobs);
	r->checkpoint_layers = knobs->layers;
	r->checkpoint_every = knobs->every;
}

const struct opt opt_recompute = {
	.name = "recompute", .group = GROUP_REDUCE,
	.summary = "drop what layers save and compute it again in backward",
	.doc = "Each decoder layer becomes a checkpoint region: its forward keeps the layer's input (and, with "
	       "selective granularity, the outputs of some ops); its backward first runs the forward again. The "
	       "peak then holds the inputs of all layers and the saved set of one. Costs one more forward of "
	       "the layers, about a third more compute for full recompute. Does not touch the loss head.",
	.fields = fields, .nfield = COUNT(fields), .knob_size = sizeof(struct knobs),
	.check = check, .apply = apply,
};
