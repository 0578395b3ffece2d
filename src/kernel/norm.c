/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * RMSNorm and LayerNorm. */
#include "kernel/build.h"
#include "kernel/rows.h"

/* The statistics part that all transformers RMSNorm classes share: x in fp32, normalised. */
static tensor_id normalise(struct build *b, tensor_id x, tensor_id *variance)
{
	struct tape *t = b->t;
	tensor_id up = aten_cast(t, x, DT_FP32);
	*variance = aten_mean_last(t, aten_pow(t, up));
	return aten_mul(t, up, aten_rsqrt(t, aten_add_scalar(t, *variance)));
}

/* transformers 5.12 LlamaRMSNorm.forward: weight * hidden.to(input_dtype) */
static tensor_id rms_composite(struct build *b, tensor_id x, tensor_id weight, tensor_id bias)
{
	struct tape *t = b->t;
	tensor_id variance, y = normalise(b, x, &variance), z;
	(void)bias;
	z = aten_mul(t, weight, aten_cast(t, y, (enum dtype)T(t, x)->dtype));
	tape_holdv(t, (tensor_id[]){ variance, y }, 2);
	return z;
}

/* Olmo2RMSNorm.forward: (weight * hidden).to(input_dtype) */
static tensor_id rms_composite_late_cast(struct build *b, tensor_id x, tensor_id weight, tensor_id bias)
{
	struct tape *t = b->t;
	tensor_id variance, y = normalise(b, x, &variance), z;
	(void)bias;
	z = aten_cast(t, aten_mul(t, weight, y), (enum dtype)T(t, x)->dtype);
	tape_holdv(t, (tensor_id[]){ variance, y }, 2);
	return z;
}

/* Gemma2RMSNorm.forward: _norm(x.float()) * (1.0 + weight.float()), then type_as(x) */
static tensor_id rms_composite_gemma(struct build *b, tensor_id x, tensor_id weight, tensor_id bias)
{
	struct tape *t = b->t;
	tensor_id up = aten_cast(t, x, DT_FP32);
	tensor_id r = aten_rsqrt(t, aten_add_scalar(t, aten_mean_last(t, aten_pow(t, up))));
	tensor_id y = aten_mul(t, up, r);
	(void)bias;
	tensor_id w = aten_add_scalar(t, aten_cast(t, weight, DT_FP32));
	tensor_id z = aten_mul(t, y, w);
	return aten_cast(t, z, (enum dtype)T(t, x)->dtype);
}

tensor_id norm_rms_composite(struct build *b, tensor_id x, tensor_id weight, tensor_id bias)
{
	static norm_fn *const by_kind[] = {
		[NORM_RMS] = rms_composite, [NORM_RMS_LATE_CAST] = rms_composite_late_cast,
		[NORM_RMS_GEMMA] = rms_composite_gemma, [NORM_LAYER] = rms_composite,
	};
	return by_kind[b->m->family->norm](b, x, weight, bias);
}

tensor_id norm_rms_fused(struct build *b, tensor_id x, tensor_id weight, tensor_id bias)
{
	(void)bias;
	return aten_rms_norm(b->t, x, weight);
}

tensor_id norm_layer_torch(struct build *b, tensor_id x, tensor_id weight, tensor_id bias)
{
	return aten_layer_norm(b->t, x, weight, bias);
}

tensor_id emit_norm(struct build *b, const char *name, tensor_id x, tensor_id weight, tensor_id bias)
{
	enum kernel_op op = b->m->family->norm == NORM_LAYER ? K_LAYER_NORM : K_RMS_NORM;
	label(b, name);
	return ((norm_fn *)kernel_row(b->spec, op)->emit)(b, x, weight, bias);
}
