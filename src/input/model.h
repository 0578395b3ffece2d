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

/* ---- model_keys.c */
const struct model_key *model_key_find(const char *name);     /* NULL: no row */
bool model_key_structured(const char *name);          /* read by name: model.c, vision.c */
bool model_key_ignored(const char *name);             /* changes no size */
bool model_key_unmodelled(const char *name);          /* a switch that memplan does not follow */
enum { MODEL_KEY_NAMES = 256, MAX_LAYERS = 10000 };
size_t model_key_names(const char **names);           /* what may be written, for suggestions; at most MODEL_KEY_NAMES */
/* An unknown key, with the nearest of names. */
void model_unknown_key(struct diag *d, const struct pair *p, const char *const *names, size_t n);

/* ---- model.c */

/* Fills *out and returns it, or NULL after an error.  `name` is what the model is called.  A config.json that
 * transformers wrote (it has architectures or transformers_version) may omit whatever its class fills in and may
 * hold any further key; elsewhere the main dimensions are required and unknown keys are errors. */
const struct model *model_from_node(struct arena *a, struct diag *d, const struct node *n, const char *name,
				    struct model *out);

const enum act_kind *act_find(const char *name);      /* NULL: none of that name */
/* vision.c: the tower beside a language part; the tower that is the model itself. */
bool tower_from_node(struct arena *a, struct diag *d, const struct node *n, bool strict, struct model *m);
bool vision_from_node(struct diag *d, const struct node *outer, bool strict, const struct model *m, struct vision *out);

#endif
