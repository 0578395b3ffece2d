/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What if: a base plan against changed ones.  A change is what a person
 * types: an optimization's name, or PATH=VALUE; several are joined by "+". */
#ifndef MEMPLAN_WHATIF_H
#define MEMPLAN_WHATIF_H

#include "input/node.h"
#include "plan/plan.h"
#include "sim/clock.h"

struct trial {
	const char *label;             /* "chunk_loss + recompute" */
	const char **part; size_t npart;       /* the changes it is made of */
	bool answered;                 /* false: why[0..nwhy) says what is wrong */
	const char **why; size_t nwhy;
	bool fits;
	uint64_t allocated, process, allocated_first, allocated_steady, host_pinned;
	enum window window; const char *op;    /* of the peak */
	struct timing time;
	const char *gone, *came;       /* tensors that lost and won most bytes at the peak; NULL: none */
	uint64_t gone_bytes, came_bytes;
	int64_t saved;                 /* process bytes below the base; negative: above */
	bool combined;                 /* interaction is known: every part was also tried alone */
	int64_t interaction;           /* saved beyond the sum of the parts (negative: short of it) */
	bool pareto;                   /* no other trial has both a lower peak and a shorter step */
	bool tokens_change;            /* micro-batch, sequence length or accumulation differ from the base */
};

struct whatif {
	struct trial base;
	struct trial *trial; size_t ntrial;
	size_t nadvice;                /* of whatif_advise: trials taken, in order */
};

/* What a change stands for as --set texts; NULL and an error in d when it is neither a row of opts[] nor PATH=VALUE. */
const char **whatif_sets(struct arena *a, struct diag *d, const char *change, size_t *n);

/* Plans `root` (with the --set texts) and every change on it.  A change that has errors is kept with them; errors of the
 * base go to d, and the result is NULL. */
const struct whatif *whatif_try(struct arena *a, struct diag *d, const struct node *root, const char *const *set,
				size_t nset, const char *const *change, size_t nchange);
/* Every optimization that the plan does not have yet, alone and in combinations of up to `most`. */
const char **whatif_all(struct arena *a, struct diag *d, const struct node *root, const char *const *set, size_t nset,
			size_t most, size_t *n);
/* From the base to the smallest combination that fits: reduce and bound first, then shift, shorten and the
 * allocator, one change at a time, each on top of the last; trials that do not lower the peak are dropped. */
const struct whatif *whatif_advise(struct arena *a, struct diag *d, const struct node *root, const char *const *set,
				   size_t nset);

#endif
