/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Projections of a layer.  Where LoRA put an adapter beside one, its product
 * is added: peft 0.21.2 tuners/lora/layer.py Linear.forward. */
#include "kernel/build.h"

typedef tensor_id product_fn(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias);

static tensor_id weight_of(struct layer *l, const char *name, const char *suffix)
{
	return layer_param(l, arena_printf(l->b->a, "%s.%s", name, suffix));
}

/* result = result + lora_B(lora_A(dropout(x.to(lora_A.dtype)))) * scaling, then in the type it had before */
static tensor_id add_adapter(struct layer *l, const char *name, tensor_id x, tensor_id result, tensor_id a)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	enum dtype dt = (enum dtype)T(t, result)->dtype;
	const char *rule = set_rule(b, "peft 0.21.2 tuners/lora/layer.py");
	label(b, arena_printf(b->a, "%s adapter", name));
	tensor_id cast = aten_cast(t, x, (enum dtype)T(t, a)->dtype);
	tensor_id dropped = aten_dropout(t, cast, b->spec->train.lora.dropout);
	tensor_id low = aten_linear(t, dropped, a, NO_TENSOR);
	tape_hold(t, dropped);
	tensor_id high = aten_linear(t, low, weight_of(l, name, "lora_B.weight"), NO_TENSOR);
	tensor_id sum = aten_add(t, result, aten_mul_scalar(t, high));
	tape_hold(t, result);
	tensor_id y = aten_cast(t, sum, dt);
	tape_holdv(t, (tensor_id[]){ sum, cast, x }, 3);
	set_rule(b, rule);
	return y;
}

static tensor_id project(struct layer *l, product_fn *product, const char *name, tensor_id x)
{
	label(l->b, name);
	tensor_id y = product(l->b->t, x, weight_of(l, name, "weight"), weight_of(l, name, "bias"));
	tensor_id a = weight_of(l, name, "lora_A.weight");
	return a < 0 ? y : add_adapter(l, name, x, y, a);
}

tensor_id emit_linear(struct layer *l, const char *name, tensor_id x)
{
	return project(l, aten_linear, name, x);
}

tensor_id emit_conv1d(struct layer *l, const char *name, tensor_id x)
{
	return project(l, aten_conv1d, name, x);
}

/* modeling_falcon.py FalconLinear: input @ weight.T, then + bias; so does linear() of rows that are not contiguous */
tensor_id product_then_bias(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias)
{
	tensor_id y = aten_matmul_transposed(t, x, weight);
	if (bias < 0)
		return y;
	tensor_id z = aten_add(t, y, bias);
	tape_hold(t, y);
	return z;
}

tensor_id emit_linear_apart(struct layer *l, const char *name, tensor_id x)
{
	return project(l, product_then_bias, name, x);
}
