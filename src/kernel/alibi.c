/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * ALiBi: slopes of the heads times positions, [B·H,1,S], as
 * build_alibi_tensor() of transformers 5.12.1 modeling_bloom.py and
 * modeling_falcon.py makes it once per forward. */
#include "kernel/build.h"

/* 2^(-8i/n) for the largest power of two of heads, and every second one of twice as many for the rest */
static tensor_id slopes(struct build *b)
{
	struct tape *t = b->t;
	uint64_t heads = b->d.H->value, two = 1;
	while (two * 2 <= heads)
		two *= 2;
	size_ref n = size_const(b->a, two), rest = size_const(b->a, heads - two);
	tensor_id base = aten_new(t, "empty", DT_FP32, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id powers = aten_new(t, "arange", DT_INT32, 1, &n, NO_TENSOR, NO_TENSOR);
	tensor_id y = aten_new(t, "pow", DT_FP32, 1, &n, base, powers), more = NO_TENSOR, odd = NO_TENSOR;
	if (two < heads) {
		more = aten_new(t, "empty", DT_FP32, 0, NULL, NO_TENSOR, NO_TENSOR);
		odd = aten_new(t, "arange", DT_INT32, 1, &rest, NO_TENSOR, NO_TENSOR);
		tensor_id tail = aten_new(t, "pow", DT_FP32, 1, &rest, more, odd);
		y = aten_new(t, "cat", DT_FP32, 1, &b->d.H, y, tail);
	}
	tape_holdv(t, (tensor_id[]){ base, powers, more, odd }, 4);
	return y;
}

tensor_id emit_alibi(struct build *b, tensor_id ones, enum dtype slope_type, enum dtype dt)
{
	struct tape *t = b->t;
	const size_ref *rows = SHAPE(b->B, b->S);
	enum dtype at_type = (enum dtype)T(t, ones)->dtype;
	label(b, "alibi");
	tensor_id slope = slopes(b);
	tensor_id sum = aten_new(t, "cumsum", at_type, 2, rows, ones, NO_TENSOR);
	tensor_id less = aten_new(t, "sub", at_type, 2, rows, sum, NO_TENSOR);
	tensor_id at = aten_new(t, "mul", at_type, 2, rows, less, ones);
	tensor_id cast = aten_cast(t, slope, slope_type);
	tensor_id y = aten_new(t, "mul", slope_type, 3, SHAPE(b->B, b->d.H, b->S), cast, at);
	y = aten_reshape(t, y, 3, SHAPE(size_mul(b->a, b->B, b->d.H), size_const(b->a, 1), b->S));
	tensor_id z = aten_cast(t, y, dt);
	tape_holdv(t, (tensor_id[]){ slope, at, y }, 3);
	return z;
}
