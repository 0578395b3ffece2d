/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The parameters of a model, one list from which counting, sharding and the
 * graph are made.  Names and order are those of the transformers class. */
#ifndef MEMPLAN_PARAMS_H
#define MEMPLAN_PARAMS_H

#include "graph/size.h"
#include "input/spec.h"

/* Named dimensions that parameter shapes are written in; values from the model. */
struct model_dims {
	size_ref h, f, V, H, K, d, q, kv;     /* q = H·d, kv = K·d */
	size_ref E, fe, fs;                    /* experts, expert width, shared width */
	size_ref P;                            /* positions */
};
struct model_dims model_dims(struct arena *a, const struct model *m);

enum param_site { SITE_EMBEDDING, SITE_LAYER, SITE_FINAL, SITE_HEAD, SITE_VISION, SITE_MTP };
struct param {
	const char *name;              /* within its site: "self_attn.q_proj.weight"; full name elsewhere */
	enum param_site site;
	unsigned ndim; size_ref dim[4];
	bool tied;                     /* shares storage with the embedding: counted there */
	uint64_t copies;               /* like parameters under one row (vision blocks, MTP depths); 1 else */
};
struct param_list { struct param *v; size_t n, cap; };

/* Parameters outside the decoder layers, in class order: embeddings, [vision], final norm, head. */
struct param_list params_outer(struct arena *a, const struct model *m, const struct model_dims *d);
/* Parameters of decoder layer i. */
struct param_list params_layer(struct arena *a, const struct model *m, const struct model_dims *d, uint64_t layer);
uint64_t param_count(const struct param *p);          /* elements, copies included; 0 when tied */
uint64_t model_parameters(struct arena *a, const struct model *m);   /* all */
uint64_t model_active_parameters(struct arena *a, const struct model *m);   /* per token */

#endif
