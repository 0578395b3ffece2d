/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Gradient clipping, the optimizer step and zero_grad: states are made lazily
 * in the first step (torch 2.14.1 torch/optim). */
#include "kernel/step.h"

static tensor_id stacked(struct build *b, const struct pslot *p, tensor_id like, enum tensor_class cls, enum dtype dt,
			 const char *name)
{
	struct tape *t = b->t;
	t->cls = (int32_t)cls;
	label(b, name);
	t->layer = p->layer;
	tensor_id x = like >= 0 ? tape_like(t, like, dt) : tape_scalar(t, dt);
	struct storage *s = &b->g->storages.v[T(t, x)->storage];
	s->ncopies = p->copies;
	s->copies = p->copies > 1 ? size_const(b->a, p->copies) : NULL;
	t->cls = t->layer = -1;
	return x;
}

static void state(struct build *b, const struct pslot *p, tensor_id like, enum dtype dt, const char *name)
{
	tensor_id x = stacked(b, p, like, CLASS_OPTIMIZER, dt, name);
	tape_op1(b->t, "zeros_like", NO_TENSOR, NO_TENSOR, x);
}

static tensor_id local_grad(const struct pslot *p)
{
	return p->local_grad >= 0 ? p->local_grad : p->grad;
}

void trace_optimizer(struct build *b, bool first)
{
	for (size_t i = 0; first && i < b->t->params.n; i++) {
		const struct pslot *p = &b->t->params.v[i];
		if (local_grad(p) < 0)
			continue;
		state(b, p, NO_TENSOR, DT_FP32, "optimizer step count");
		state(b, p, p->local, (enum dtype)T(b->t, p->local)->dtype, "exp_avg");
		state(b, p, p->local, (enum dtype)T(b->t, p->local)->dtype, "exp_avg_sq");
	}
	tape_op(b->t, "_fused_adamw_", NULL, 0, NULL, 0);
}

void trace_clip(struct build *b)
{
	(void)b;
}

void trace_zero_grad(struct build *b)
{
	for (size_t i = 0; i < b->t->params.n; i++) {
		struct pslot *p = &b->t->params.v[i];
		tensor_id g = local_grad(p);
		tape_hold(b->t, g);
	}
}
