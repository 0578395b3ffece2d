/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Optimizers: what each keeps for a parameter and what one step allocates on
 * top.  One row per algorithm and implementation.  States are made lazily in
 * the first step; tensors of a layer instance stand for those of all layers
 * that it stands for. */
#ifndef MEMPLAN_OPTIMIZER_H
#define MEMPLAN_OPTIMIZER_H

#include "kernel/step.h"

/* One step at work: the parameters that have a gradient. */
struct optimizing {
	struct build *b;
	struct tape *t;
	const struct optimizer *o;
	bool first;                    /* the step that makes the states */
	size_t n;
	const struct pslot **slot;
	tensor_id *param, *grad;       /* as the optimizer sees them: master copies, shards */
};

enum state_shape { STATE_LIKE, STATE_ONE, STATE_ROWS, STATE_COLUMNS, STATE_BLOCKS };
enum state_type { TYPE_STATE, TYPE_FP32, TYPE_BYTE };      /* TYPE_STATE: precision.optimizer */
struct state {
	const char *name, *op;
	enum state_shape shape;
	enum state_type type;
	bool (*when)(const struct optimizing *s, size_t i);    /* NULL: every parameter */
};

struct optimizer_row {
	enum optimizer_name name; enum optimizer_impl impl;
	const struct state *states; size_t nstate;     /* made before the step, in this order for each parameter */
	void (*step)(struct optimizing *s);
	const char *transient, *source;                /* in words: what a step needs beyond gradients and states */
};
extern const struct optimizer_row optimizers[];
extern const size_t noptimizer;
const struct optimizer_row *optimizer_row(enum optimizer_name name, enum optimizer_impl impl);   /* NULL: no such */

/* ---- optimizer.c: lists as optimizers make them */
struct optimizing optimizing(struct build *b, bool first);
/* A tensor that stands for those of all layers of slot p, in the place of parameter `like`. */
tensor_id slot_tensor(struct build *b, const struct pslot *p, tensor_id like, enum tensor_class cls, const char *name,
		      enum dtype dt, unsigned ndim, const size_ref *dims);
bool grad_is_matrix(const struct optimizing *s, size_t i);
void state_make(struct optimizing *s, size_t i, const struct state *st);
/* One tensor of x's shape for each parameter, made by one op; or for parameter i alone, a single layer's. */
tensor_id *list_like(struct optimizing *s, const char *op, const tensor_id *x);
tensor_id temp_like(struct optimizing *s, const char *op, tensor_id x);
void list_drop(struct optimizing *s, const tensor_id *list);

/* ---- optimizer_steps.c */
void step_adam_fused(struct optimizing *s);          /* one fused kernel */
void step_adam_foreach(struct optimizing *s);
void step_adam_forloop(struct optimizing *s);
void step_sgd_fused(struct optimizing *s);
void step_sgd_foreach(struct optimizing *s);
void step_sgd_forloop(struct optimizing *s);
void step_adafactor_foreach(struct optimizing *s);
void step_adafactor_forloop(struct optimizing *s);
void step_lion_forloop(struct optimizing *s);
void step_adam8bit(struct optimizing *s);

/* ---- optimizer_clip.c: gradient scaling and clipping */
tensor_id scale_loss(struct build *b, tensor_id loss);         /* loss itself without a scaler */
void unscale_gradients(struct optimizing *s);

#endif
