/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Optimizations: one table.  Adding one is one new file, one line in opt.c
 * and one line in Makefile.am. */
#ifndef MEMPLAN_OPT_H
#define MEMPLAN_OPT_H

#include "input/field.h"
#include "input/spec.h"

enum opt_group { GROUP_REDUCE, GROUP_BOUND, GROUP_SHIFT, GROUP_SHORTEN, GROUP_ALLOCATOR, GROUP_SHARD, GROUP_PRECISION };
extern const char *const opt_group_names[];

struct graph;
struct recipe;                         /* how the step is to be traced (kernel/recipe.h) */
struct opt {
	const char *name;
	enum opt_group group;
	const char *summary, *doc;
	const struct field *fields; size_t nfield;     /* knobs */
	size_t knob_size;
	const char *const *needs, *const *conflicts;   /* NULL-ended names of other rows; NULL: none */
	/* diagnostics for this plan: unsafe or useless combinations */
	void (*check)(const struct spec *s, const void *knobs, struct loc loc, struct diag *d);
	/* Either may be NULL.  apply changes how the step is traced (kernel/build.h); edit changes the ops of the
	 * traced graph (graph/graph.h), never lifetimes. */
	void (*apply)(struct recipe *r, const void *knobs);
	void (*edit)(struct graph *g, const void *knobs);
};
extern const struct opt *const opts[];
extern const size_t nopt;
const struct opt *opt_find(const char *name);

#endif
