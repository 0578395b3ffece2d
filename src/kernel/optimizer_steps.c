/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What one step of each optimizer allocates and frees, in order.  A foreach
 * implementation handles all parameters at a time, a for-loop one after the
 * other; a Python name keeps its tensor until it is bound again. */
#include "kernel/optimizer.h"

void step_adam_fused(struct optimizing *s)
{
	tape_op(s->t, s->o->name == OPT_ADAM ? "_fused_adam_" : "_fused_adamw_", NULL, 0, NULL, 0);
}

/* ---- Adam, AdamW: _multi_tensor_adam, _single_tensor_adam */

static bool adds_decay(const struct optimizing *s)
{
	return s->o->name != OPT_ADAMW && s->o->weight_decay > 0;      /* AdamW decays the parameter in place */
}

void step_adam_foreach(struct optimizing *s)
{
	label(s->b, "gradients with weight decay");
	tensor_id *decayed = adds_decay(s) ? list_like(s, "_foreach_add", s->grad) : NULL;
	list_drop(s, decayed);
	label(s->b, "square roots of exp_avg_sq");
	list_drop(s, list_like(s, "_foreach_sqrt", s->param));
}

void step_adam_forloop(struct optimizing *s)
{
	tensor_id denom = NO_TENSOR;
	for (size_t i = 0; i < s->n; i++) {
		label(s->b, "gradient with weight decay");
		tensor_id grad = adds_decay(s) ? temp_like(s, "add", s->grad[i]) : NO_TENSOR;
		label(s->b, "denominator");
		tensor_id root = temp_like(s, "sqrt", s->param[i]), old = denom;
		denom = temp_like(s, "div", s->param[i]);
		tape_holdv(s->t, (tensor_id[]){ root, old, grad }, 3);
	}
	tape_hold(s->t, denom);
}

/* ---- SGD: the momentum is a copy of the first gradient */

static void make_momentum(struct optimizing *s, size_t i, const char *op)
{
	const struct state momentum = { "momentum_buffer", op, STATE_LIKE, TYPE_STATE, NULL };
	if (s->first && s->o->momentum > 0)
		state_make(s, i, &momentum);
}

void step_sgd_fused(struct optimizing *s)
{
	for (size_t i = 0; i < s->n; i++)
		make_momentum(s, i, "empty_like");
	tape_op(s->t, "_fused_sgd_", NULL, 0, NULL, 0);
}

void step_sgd_foreach(struct optimizing *s)
{
	label(s->b, "gradients with weight decay");
	tensor_id *decayed = s->o->weight_decay > 0 ? list_like(s, "_foreach_add", s->grad) : NULL;
	for (size_t i = 0; i < s->n; i++)
		make_momentum(s, i, "clone");
	list_drop(s, decayed);
}

void step_sgd_forloop(struct optimizing *s)
{
	label(s->b, "gradient with weight decay");
	for (size_t i = 0; i < s->n; i++) {
		tensor_id grad = s->o->weight_decay > 0 ? temp_like(s, "add", s->grad[i]) : NO_TENSOR;
		make_momentum(s, i, "clone");
		tape_hold(s->t, grad);
	}
}

/* ---- Adafactor: row_var @ col_var is as large as the parameter */

/* The parameters of one kind: matrices are factored, vectors are not. */
static struct optimizing only(const struct optimizing *s, bool matrix)
{
	struct optimizing part = *s;
	part.n = 0;
	part.slot = NEWN(s->b->a, const struct pslot *, s->n + 1);
	part.param = NEWN(s->b->a, tensor_id, s->n + 1);
	part.grad = NEWN(s->b->a, tensor_id, s->n + 1);
	for (size_t i = 0; i < s->n; i++) {
		if (grad_is_matrix(s, i) != matrix)
			continue;
		part.slot[part.n] = s->slot[i];
		part.param[part.n] = s->param[i];
		part.grad[part.n++] = s->grad[i];
	}
	return part;
}

void step_adafactor_foreach(struct optimizing *s)
{
	struct optimizing matrix = only(s, true), vector = only(s, false);
	label(s->b, "variance estimates");
	tensor_id *estimates = list_like(&matrix, "matmul", matrix.param);
	label(s->b, "squared gradients");
	list_drop(&vector, list_like(&vector, "_foreach_mul", vector.grad));
	label(s->b, "variance estimates");
	list_drop(&vector, list_like(&vector, "clone", vector.param));
	list_drop(&matrix, estimates);
}

void step_adafactor_forloop(struct optimizing *s)
{
	tensor_id estimate = NO_TENSOR, squared = NO_TENSOR;
	for (size_t i = 0; i < s->n; i++) {
		tensor_id old = estimate, before = squared;
		label(s->b, "squared gradient");
		if (!grad_is_matrix(s, i)) {
			squared = temp_like(s, "mul", s->grad[i]);
			tape_hold(s->t, before);
		}
		label(s->b, "variance estimate");
		estimate = temp_like(s, grad_is_matrix(s, i) ? "matmul" : "clone", s->param[i]);
		tape_hold(s->t, old);
	}
	tape_holdv(s->t, (tensor_id[]){ estimate, squared }, 2);
}

/* ---- Lion: clone, then a sum out of place */

void step_lion_forloop(struct optimizing *s)
{
	label(s->b, "update");
	for (size_t i = 0; i < s->n; i++) {
		tensor_id clone = temp_like(s, "clone", s->param[i]);
		tensor_id update = temp_like(s, "add", s->param[i]);
		tape_holdv(s->t, (tensor_id[]){ clone, update }, 2);
	}
}

/* ---- bitsandbytes: the two quantisation maps are shared by all parameters */

void step_adam8bit(struct optimizing *s)
{
	enum { MAP = 256 };
	size_ref n = size_const(s->b->a, MAP);
	for (int i = 0; s->first && i < 2; i++) {
		int32_t id = graph_storage(s->b->g, "quantisation map", CLASS_OPTIMIZER, PLACE_GPU, DT_FP32,
					   size_mulc(s->b->a, n, dtypes[DT_FP32].bytes));
		tensor_id map = graph_tensor(s->b->g, id, DT_FP32, 1, &n);
		tape_op1(s->t, "to", NO_TENSOR, NO_TENSOR, map);
	}
	tape_op(s->t, "optimizer_update_8bit_blockwise", NULL, 0, NULL, 0);
}
