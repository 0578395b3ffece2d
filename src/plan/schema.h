/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The plan file: its field tables, reading it, what omitted keys become and
 * which combinations are impossible. */
#ifndef MEMPLAN_SCHEMA_H
#define MEMPLAN_SCHEMA_H

#include "input/node.h"
#include "input/spec.h"

enum { GPUS_MAX = 1 << 20 };

/* ---- schema.c: the rows of a plan file, for struct spec.  The choices of `framework`, the rows of `kernels` and
 * those of `memory` come from profiles[], kernels[] and opts[]. */
const struct field *plan_fields(struct arena *a, size_t *n);

/* ---- read.c */
struct plan_file {
	const struct spec *spec;       /* NULL: there were errors */
	const struct effective *values; size_t nvalue;
	const char *model_file;        /* where the model came from; NULL: the plan itself */
	const struct node *model;      /* its config.json, overrides applied */
};
/* The tree of a plan, which stays as it is, with --set texts applied to a copy of what they touch. */
struct plan_file plan_from(struct arena *a, struct diag *d, const struct node *root, const char *const *set, size_t nset);
struct plan_file plan_read(struct arena *a, struct diag *d, const char *path, const char *const *set, size_t nset);

/* What the readers of a plan share. */
struct plan_reader {
	struct field_reader r;
	struct spec *s;
	const struct node *root;
	struct plan_file file;
};
/* The value's place; where nothing was written, the section's. */
struct loc plan_loc(struct plan_reader *p, const char *path);
/* Whether the plan's author wrote this key. */
bool plan_given(struct plan_reader *p, const char *path);

/* ---- set.c: applies "a.b=VALUE" to the tree; NULL after an error */
const struct node *plan_set(struct arena *a, struct diag *d, const struct node *root, const char *text, size_t number);
/* `base` with the pairs of `over` in place of or after its own, mappings inside likewise. */
const struct node *node_merge(struct arena *a, const struct node *base, const struct node *over);

/* ---- rules.c */
void plan_complete(struct plan_reader *p);   /* omitted keys that depend on others */
void plan_check(struct plan_reader *p);      /* impossible combinations */

#endif
