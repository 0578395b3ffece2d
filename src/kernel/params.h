/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The parameters of a model, one list from which counting, sharding and the
 * graph are made.  Names and order are those of named_parameters() of the
 * transformers class. */
#ifndef MEMPLAN_PARAMS_H
#define MEMPLAN_PARAMS_H

#include "graph/size.h"
#include "input/spec.h"

/* Named dimensions that parameter shapes are written in; values from the model. */
struct model_dims {
	size_ref h, f, V, H, K, d, q, kv;     /* q = H·d, kv = K·d; printed a and g for H and K */
	size_ref E, k, fe, fs;                 /* experts, experts of a token, expert width, shared width */
	size_ref P;                            /* positions */
	size_ref rq, rkv, dn, dr, dv;          /* latent attention: ranks of q and kv; head parts without and with
	                                        * rotation; value head */
};
struct model_dims model_dims(struct arena *a, const struct model *m);

enum { PARAM_DIMS = 5 };
enum param_site { SITE_EMBEDDING, SITE_LAYER, SITE_FINAL, SITE_HEAD, SITE_VISION, SITE_MTP };
struct param {
	const char *name;              /* in a layer: "self_attn.q_proj.weight"; elsewhere the full name */
	enum param_site site;
	unsigned ndim; size_ref dim[PARAM_DIMS];
	bool tied;                     /* shares storage with the embedding: counted there */
	bool buffer;                   /* a buffer in the class, stored with the parameters; no count includes it */
	bool routed;                   /* has an expert dimension first: a token uses topk of E */
	bool linear, transposed;       /* weight of a linear module, the head apart; transposed: [in, out] */
	bool frozen, adapter;          /* not trained; added by LoRA (trained.h) */
	uint64_t copies;               /* like parameters under one row ("*" in the name); 1 else */
};
struct param_list { struct param *v; size_t n, cap; };

/* Parameters outside the decoder layers, in class order: [vision], embeddings, final norm, head. */
struct param_list params_outer(struct arena *a, const struct model *m, const struct model_dims *d);
/* Parameters of decoder layer i. */
struct param_list params_layer(struct arena *a, const struct model *m, const struct model_dims *d, uint64_t layer);
/* What a checkpoint holds for multi-token prediction; the transformers class does not build it, so no count
 * below includes it.  Empty without mtp_layers. */
struct param_list params_mtp(struct arena *a, const struct model *m, const struct model_dims *d);
/* Put before a layer's number and its parameter names: "model.layers." */
const char *params_layer_prefix(struct arena *a, const struct model *m);

uint64_t param_count(const struct param *p);          /* elements, copies included; 0 when tied or a buffer */
uint64_t model_parameters(struct arena *a, const struct model *m);   /* all */
uint64_t model_active_parameters(struct arena *a, const struct model *m);   /* per token */

#endif
