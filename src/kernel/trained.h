/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What of a model is trained: everything, all but frozen modules, or the
 * low-rank adapters that LoRA puts beside linear modules. */
#ifndef MEMPLAN_TRAINED_H
#define MEMPLAN_TRAINED_H

#include "kernel/params.h"

/* The lists of params_outer() and params_layer() with frozen parameters marked and adapters put after the module
 * they belong to. */
struct param_list trained_outer(struct arena *a, const struct spec *s, const struct model_dims *d);
struct param_list trained_layer(struct arena *a, const struct spec *s, const struct model_dims *d, uint64_t layer);

/* Type of what is trained, before any cast. */
static inline enum dtype trained_dtype(const struct spec *s)
{
	return s->train.lora.present ? s->train.lora.dtype : s->prec.params;
}
/* Which parameters of a decoder layer are frozen, as bits. */
uint64_t trained_mask(struct arena *a, const struct spec *s, const struct model_dims *d, uint64_t layer);

struct parameter_count { uint64_t all, trained; };
struct parameter_count trained_count(struct arena *a, const struct spec *s);

/* Reports names in train.lora.targets and train.freeze that the model does not have, and plans that train nothing. */
void trained_check(const struct spec *s, struct diag *d);

#endif
