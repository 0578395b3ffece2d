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
		[NORM_RMS_GEMMA] = rms_composite_gemma,
	};
	return by_kind[b->m->family->norm](b, x, weight, bias);
}

tensor_id norm_rms_fused(struct build *b, tensor_id x, tensor_id weight, tensor_id bias)
{
	(void)bias;
	return aten_rms_norm(b->t, x, weight);
}

/* OlmoLayerNorm.forward has no weights and normalises in fp32. */
static tensor_id layer_plain(struct build *b, tensor_id x)
{
	struct tape *t = b->t;
	tensor_id y = aten_layer_norm(t, aten_cast(t, x, DT_FP32), NO_TENSOR, NO_TENSOR);
	return aten_cast(t, y, (enum dtype)T(t, x)->dtype);
}

tensor_id norm_layer_torch(struct build *b, tensor_id x, tensor_id weight, tensor_id bias)
{
	return b->m->family->norm == NORM_LAYER_PLAIN ? layer_plain(b, x) : aten_layer_norm(b->t, x, weight, bias);
}

/* ---- Liger ops/rms_norm.py, ops/layer_norm.py: functions on contiguous rows; weight gradients are summed from one
 * fp32 row per multiprocessor */

/* ensure_contiguous: a copy made inside the function leaves no node. */
static tensor_id contiguous(struct tape *t, tensor_id x)
{
	if (tensor_is_contiguous(t, x))
		return x;
	struct tensor v = *T(t, x);
	tensor_id y = tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim);
	tape_op1(t, "clone", x, NO_TENSOR, y);
	return y;
}

static tensor_id sum_partials(struct tape *t, tensor_id partial, tensor_id weight)
{
	size_ref h = T(t, weight)->dim[0];
	tensor_id sum = tape_tensor(t, DT_FP32, 1, &h);
	tape_op1(t, "sum", partial, NO_TENSOR, sum);
	return aten_cast(t, sum, (enum dtype)T(t, weight)->dtype);
}

/* saved: x, weight, rstd; dims: multiprocessors.  iarg[0]: dx is written over dy */
static void back_liger_rms(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id dy = contiguous(t, grad[0]), weight = node_saved(t, n, 1), w[2];
	tensor_id r[4] = { dy, node_saved(t, n, 0), weight, node_saved(t, n, 2) };
	w[0] = tape_tensor(t, DT_FP32, 2, SHAPE(n->dims[0], T(t, weight)->dim[0]));
	w[1] = out[0] = n->iarg[0] ? aten_detach(t, dy) : tape_like(t, dy, (enum dtype)T(t, dy)->dtype);
	tape_op(t, "liger_rms_norm_backward", r, 4, w, 2);
	out[1] = sum_partials(t, w[0], weight);
}

/* saved: x, weight, mean, rstd; dims: multiprocessors */
static void back_liger_layer(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id dy = contiguous(t, grad[0]), weight = node_saved(t, n, 1), w[3];
	tensor_id r[5] = { dy, node_saved(t, n, 0), weight, node_saved(t, n, 2), node_saved(t, n, 3) };
	for (int i = 0; i < 2; i++)
		w[i] = tape_tensor(t, DT_FP32, 2, SHAPE(n->dims[0], T(t, weight)->dim[0]));
	w[2] = out[0] = tape_like(t, dy, (enum dtype)T(t, n->in[0])->dtype);
	tape_op(t, "liger_layer_norm_backward", r, 5, w, 3);
	for (int i = 0; i < 2; i++)
		if (n->nin > 1u + (unsigned)i)
			out[1 + i] = sum_partials(t, w[i], weight);
}

static const size_ref *multiprocessors(struct build *b)
{
	size_ref *dims = NEWN(b->a, size_ref, 1);
	dims[0] = size_dim(b->a, "sm", b->spec->hw.gpu.c[CONST_SM_COUNT].value, "multiprocessors");
	return dims;
}

static tensor_id row_stat(struct tape *t, tensor_id x, enum dtype dt)
{
	struct tensor v = *T(t, x);
	return tape_tensor(t, dt, v.ndim - 1u, v.dim);
}

/* LigerRMSNorm: in place in classes with a norm before each block only, as the residual's gradient is still needed
 * where a norm follows the block (LigerRMSNormForOlmo2, LigerRMSNormForGemma2, LigerRMSNormForGemma3) */
tensor_id norm_rms_liger(struct build *b, tensor_id x, tensor_id weight, tensor_id bias)
{
	struct tape *t = b->t;
	tensor_id in[2] = { x, weight }, rows = contiguous(t, x), y[2];
	struct anode *n = node_begin(t, "LigerRMSNormFunctionBackward", back_liger_rms, in, 2);
	(void)bias;
	if (n) {
		n->iarg[0] = b->m->family->block == BLOCK_PRE || b->m->family->block == BLOCK_PARALLEL;
		n->dims = multiprocessors(b);
	}
	node_save(t, n, rows);
	node_save(t, n, weight);
	y[0] = tape_like(t, rows, (enum dtype)T(t, x)->dtype);
	y[1] = row_stat(t, x, DT_FP32);
	tape_op(t, "liger_rms_norm", (tensor_id[]){ rows, weight }, 2, y, 2);
	node_save(t, n, y[1]);
	node_end(t, n, y, 1);
	return y[0];
}

tensor_id norm_layer_liger(struct build *b, tensor_id x, tensor_id weight, tensor_id bias)
{
	struct tape *t = b->t;
	if (weight < 0)
		return norm_layer_torch(b, x, weight, bias);
	tensor_id in[3] = { x, weight, bias }, rows = contiguous(t, x), y[3];
	struct anode *n = node_begin(t, "LigerLayerNormFunctionBackward", back_liger_layer, in, bias >= 0 ? 3 : 2);
	if (n)
		n->dims = multiprocessors(b);
	node_save(t, n, rows);
	node_save(t, n, weight);
	y[0] = tape_like(t, rows, (enum dtype)T(t, x)->dtype);
	y[1] = row_stat(t, x, (enum dtype)T(t, x)->dtype);
	y[2] = row_stat(t, x, (enum dtype)T(t, x)->dtype);
	tape_op(t, "liger_layer_norm", (tensor_id[]){ rows, weight, bias }, 3, y, 3);
	node_save(t, n, y[1]);
	node_save(t, n, y[2]);
	node_end(t, n, y, 1);
	return y[0];
}

tensor_id emit_norm(struct build *b, const char *name, tensor_id x, tensor_id weight, tensor_id bias)
{
	enum norm_kind kind = b->m->family->norm;
	enum kernel_op op = kind == NORM_LAYER || kind == NORM_LAYER_PLAIN ? K_LAYER_NORM : K_RMS_NORM;
	const struct kernel_row *row = kernel_row(b->spec, op);
	const char *rule = set_rule(b, row->source);
	label(b, name);
	tensor_id y = ((norm_fn *)row->emit)(b, x, weight, bias);
	set_rule(b, rule);
	return y;
}
