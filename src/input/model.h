/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Models: reading what a Hugging Face config.json says, from JSON or YAML,
 * into struct model.  Every key that bears on memory is one row of a table. */
#ifndef MEMPLAN_MODEL_H
#define MEMPLAN_MODEL_H

#include "input/family.h"
#include "input/node.h"

enum key_type { TYPE_UINT, TYPE_REAL, TYPE_BOOL };
struct model_key {
	const char *name;
	int key;                       /* enum config_key; spellings of one thing share it */
	enum key_type type;
	double min, max;
	const char *doc;               /* NULL: another spelling of the row above */
};
extern const struct model_key model_keys[];
extern const size_t nmodel_key;

/* Fills *out and returns it, or NULL after an error.  `name` is what the model is called.  A config.json that
 * transformers wrote (it has architectures or transformers_version) may omit whatever its class fills in and may
 * hold any further key; elsewhere the main dimensions are required and unknown keys are errors. */
const struct model *model_from_node(struct arena *a, struct diag *d, const struct node *n, const char *name,
				    struct model *out);

const enum act_kind *act_find(const char *name);      /* NULL: none of that name */
/* vision.c: the tower beside a language part; the tower that is the model itself. */
bool tower_from_node(struct arena *a, struct diag *d, const struct node *n, bool strict, struct model *m);
bool vision_from_node(struct diag *d, const struct node *outer, bool strict, const struct model *m, struct vision *out);
/* An unknown key, with the nearest of names and what stands in ignored keys. */
void model_unknown_key(struct diag *d, const struct pair *p, const char *const *names, size_t n);
bool model_key_ignored(const char *name);

#endif
