/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Pointwise ops and reductions.  One output per op: TensorIterator promotes
 * types and broadcasts without temporaries; its output keeps the order
 * of dimensions in memory of the first operand of full shape. */
#include "kernel/aten/aten.h"

#include <string.h>

static enum dtype promote(struct tape *t, tensor_id x, tensor_id y)
{
	enum dtype a = (enum dtype)T(t, x)->dtype, b = (enum dtype)T(t, y)->dtype;
	if (a == b || T(t, y)->ndim == 0)
		return a;
	if (T(t, x)->ndim == 0)
		return b;
	return dtypes[a].floating && dtypes[b].floating ? DT_FP32 : dtypes[a].floating ? a : b;
}

/* Of full shape and not expanded: such an operand decides the strides of the result. */
static bool full_shape(const struct tensor *v, unsigned ndim, const size_ref *dims)
{
	if (v->ndim != ndim)
		return false;
	for (unsigned i = 0; i < ndim; i++)
		if (v->dim[i]->value != dims[i]->value || (v->stride[i] == 0 && v->dim[i]->value > 1))
			return false;
	return true;
}

static unsigned broadcast(struct tape *t, tensor_id x, tensor_id y, size_ref *dims)
{
	const struct tensor *a = T(t, x), *b = T(t, y);
	unsigned n = a->ndim > b->ndim ? a->ndim : b->ndim;
	for (unsigned i = 0; i < n; i++) {
		size_ref p = i + a->ndim >= n ? a->dim[i + a->ndim - n] : NULL;
		size_ref q = i + b->ndim >= n ? b->dim[i + b->ndim - n] : NULL;
		dims[i] = !p || (q && p->value == 1) ? q : p;
	}
	return n;
}

/* The output of a pointwise op of x and y. */
static tensor_id result(struct tape *t, tensor_id x, tensor_id y, enum dtype dt)
{
	size_ref dims[MAX_DIMS];
	unsigned n = broadcast(t, x, y, dims);
	tensor_id from[2] = { x, y };
	tensor_id z = tape_tensor(t, dt, n, dims);
	for (int i = 0; i < 2; i++)
		if (full_shape(T(t, from[i]), n, dims)) {
			tensor_dense_strides(t, from[i], T(t, z)->stride);
			break;
		}
	return z;
}

static tensor_id binary(struct tape *t, const char *op, tensor_id x, tensor_id y)
{
	tensor_id z = result(t, x, y, promote(t, x, y));
	tape_op1(t, op, x, y, z);
	return z;
}

static tensor_id unary(struct tape *t, const char *op, tensor_id x)
{
	tensor_id z = tape_like(t, x, (enum dtype)T(t, x)->dtype);
	tape_op1(t, op, x, NO_TENSOR, z);
	return z;
}

/* ---- sums, products */

static void back_add(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	(void)t;
	for (unsigned i = 0; i < n->nin; i++)
		out[i] = grad[0];
}

tensor_id aten_add(struct tape *t, tensor_id x, tensor_id y)
{
	tensor_id in[2] = { x, y };
	struct anode *n = node_begin(t, "AddBackward0", back_add, in, 2);
	tensor_id z = binary(t, "add", x, y);
	node_end(t, n, &z, 1);
	return z;
}

/* x under a new version: what an in-place op returns. */
static tensor_id in_place(struct tape *t, const char *op, tensor_id x, tensor_id y)
{
	tensor_id z = aten_detach(t, x);
	tape_op1(t, op, x, y, z);
	return z;
}

tensor_id aten_add_(struct tape *t, tensor_id x, tensor_id y)
{
	tensor_id in[2] = { x, y };
	struct anode *n = node_begin(t, "AddBackward0", back_add, in, 2);
	tensor_id z = in_place(t, "add_", x, y);
	node_end(t, n, &z, 1);
	return z;
}

/* other: -grad, self: grad */
static void back_sub(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	if (n->want[1])
		out[1] = unary(t, "neg", grad[0]);
	out[0] = grad[0];
}

tensor_id aten_sub(struct tape *t, tensor_id x, tensor_id y)
{
	tensor_id in[2] = { x, y };
	struct anode *n = node_begin(t, "SubBackward0", back_sub, in, 2);
	tensor_id z = binary(t, "sub", x, y);
	node_end(t, n, &z, 1);
	return z;
}

/* other: grad * self, then self: grad * other */
static void back_mul(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	size_t other = 0, self = n->want[0] ? 1 : 0;
	if (n->want[1])
		out[1] = binary(t, "mul", grad[0], node_saved(t, n, self));
	if (n->want[0])
		out[0] = binary(t, "mul", grad[0], node_saved(t, n, other));
}

tensor_id aten_mul(struct tape *t, tensor_id x, tensor_id y)
{
	tensor_id in[2] = { x, y };
	struct anode *n = node_begin(t, "MulBackward0", back_mul, in, 2);
	if (n && n->want[0])
		node_save(t, n, y);
	if (n && n->want[1])
		node_save(t, n, x);
	tensor_id z = binary(t, "mul", x, y);
	node_end(t, n, &z, 1);
	return z;
}

/* div_tensor_other_backward: -grad * ((self / other) / other), then div_tensor_self_backward: grad / other */
static void back_div(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id other = node_saved(t, n, 0);
	if (n->want[1]) {
		tensor_id once = binary(t, "div", node_saved(t, n, 1), other);
		tensor_id twice = binary(t, "div", once, other);
		tensor_id neg = unary(t, "neg", grad[0]);
		out[1] = binary(t, "mul", neg, twice);
		tape_holdv(t, (tensor_id[]){ neg, twice, once }, 3);
	}
	if (n->want[0])
		out[0] = binary(t, "div", grad[0], other);
}

/* The numbers that are overwritten are cloned first where the divisor's gradient needs them. */
tensor_id aten_div_(struct tape *t, tensor_id x, tensor_id y)
{
	tensor_id in[2] = { x, y }, old = NO_TENSOR;
	struct anode *n = node_begin(t, "DivBackward0", back_div, in, 2);
	node_save(t, n, y);
	if (n && n->want[1]) {
		old = unary(t, "clone", x);
		node_save(t, n, old);
	}
	tensor_id z = in_place(t, "div_", x, y);
	node_end(t, n, &z, 1);
	return z;
}

tensor_id aten_add_scalar(struct tape *t, tensor_id x)
{
	struct anode *n = node_begin(t, "AddBackward0", back_add, &x, 1);
	tensor_id z = unary(t, "add", x);
	node_end(t, n, &z, 1);
	return z;
}

static void back_mul_scalar(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = unary(t, n->iarg[0] ? "div" : "mul", grad[0]);
}

static tensor_id scale(struct tape *t, tensor_id x, bool div)
{
	struct anode *n = node_begin(t, div ? "DivBackward0" : "MulBackward0", back_mul_scalar, &x, 1);
	if (n)
		n->iarg[0] = div;
	tensor_id z = unary(t, div ? "div" : "mul", x);
	node_end(t, n, &z, 1);
	return z;
}

tensor_id aten_mul_scalar(struct tape *t, tensor_id x)
{
	return scale(t, x, false);
}

tensor_id aten_div_scalar(struct tape *t, tensor_id x)
{
	return scale(t, x, true);
}

static tensor_id scale_(struct tape *t, tensor_id x, bool div)
{
	struct anode *n = node_begin(t, div ? "DivBackward0" : "MulBackward0", back_mul_scalar, &x, 1);
	if (n)
		n->iarg[0] = div;
	tensor_id z = in_place(t, div ? "div_" : "mul_", x, NO_TENSOR);
	node_end(t, n, &z, 1);
	return z;
}

tensor_id aten_mul_scalar_(struct tape *t, tensor_id x)
{
	return scale_(t, x, false);
}

tensor_id aten_div_scalar_(struct tape *t, tensor_id x)
{
	return scale_(t, x, true);
}

/* pow_backward: grad * (exponent * self.pow(exponent - 1)) */
static void back_pow(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id p = unary(t, "pow", node_saved(t, n, 0));
	tensor_id m = unary(t, "mul", p);
	out[0] = binary(t, "mul", grad[0], m);
	tape_holdv(t, (tensor_id[]){ p, m }, 2);
}

tensor_id aten_pow(struct tape *t, tensor_id x)
{
	x = aten_autocast_fp32(t, x);
	struct anode *n = node_begin(t, "PowBackward0", back_pow, &x, 1);
	node_save(t, n, x);
	tensor_id z = unary(t, "pow", x);
	node_end(t, n, &z, 1);
	return z;
}

/* -0.5 * grad * result.pow(3) */
static void back_rsqrt(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id p = unary(t, "pow", node_saved(t, n, 0));
	tensor_id m = unary(t, "mul", grad[0]);
	out[0] = binary(t, "mul", m, p);
	tape_holdv(t, (tensor_id[]){ p, m }, 2);
}

tensor_id aten_rsqrt(struct tape *t, tensor_id x)
{
	x = aten_autocast_fp32(t, x);
	struct anode *n = node_begin(t, "RsqrtBackward0", back_rsqrt, &x, 1);
	tensor_id z = unary(t, "rsqrt", x);
	node_save(t, n, z);
	node_end(t, n, &z, 1);
	return z;
}

static void back_neg(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	(void)n;
	out[0] = unary(t, "neg", grad[0]);
}

tensor_id aten_neg(struct tape *t, tensor_id x)
{
	struct anode *n = node_begin(t, "NegBackward0", back_neg, &x, 1);
	tensor_id z = unary(t, "neg", x);
	node_end(t, n, &z, 1);
	return z;
}

static void back_cast(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = aten_cast(t, grad[0], (enum dtype)T(t, n->in[0])->dtype);
}

tensor_id aten_cast(struct tape *t, tensor_id x, enum dtype dt)
{
	if (T(t, x)->dtype == dt)
		return x;
	struct anode *n = node_begin(t, "ToCopyBackward0", back_cast, &x, 1);
	tensor_id z = tape_like(t, x, dt);
	tape_op1(t, "_to_copy", x, NO_TENSOR, z);
	node_end(t, n, &z, 1);
	return z;
}

/* ---- reductions */

/* mean_backward: the gradient expanded, divided by the count */
static void back_mean(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor v = *T(t, n->in[0]);
	tensor_id e = aten_expand(t, grad[0], v.ndim, v.dim);
	out[0] = unary(t, "div", e);
}

tensor_id aten_mean(struct tape *t, tensor_id x)
{
	struct anode *n = node_begin(t, "MeanBackward0", back_mean, &x, 1);
	tensor_id z = tape_scalar(t, (enum dtype)T(t, x)->dtype);
	tape_op1(t, "mean", x, NO_TENSOR, z);
	node_end(t, n, &z, 1);
	return z;
}

/* sum_backward: the gradient expanded */
static void back_sum_first(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor v = *T(t, n->in[0]);
	out[0] = aten_expand(t, grad[0], v.ndim, v.dim);
}

tensor_id aten_sum_first(struct tape *t, tensor_id x)
{
	struct anode *n = node_begin(t, "SumBackward1", back_sum_first, &x, 1);
	struct tensor v = *T(t, x);
	tensor_id z = tape_tensor(t, (enum dtype)v.dtype, v.ndim - 1u, v.dim + 1);
	tape_op1(t, "sum", x, NO_TENSOR, z);
	node_end(t, n, &z, 1);
	return z;
}

/* repeat_backward: sums over the repetitions */
static void back_repeat(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = aten_sum_to_size(t, grad[0], n->in[0]);
}

tensor_id aten_repeat(struct tape *t, tensor_id x, unsigned ndim, const size_ref *dims)
{
	struct anode *n = node_begin(t, "RepeatBackward0", back_repeat, &x, 1);
	tensor_id y = tape_tensor(t, (enum dtype)T(t, x)->dtype, ndim, dims);
	tape_op1(t, "repeat", x, NO_TENSOR, y);
	node_end(t, n, &y, 1);
	return y;
}

tensor_id aten_mean_last(struct tape *t, tensor_id x)
{
	struct anode *n = node_begin(t, "MeanBackward1", back_mean, &x, 1);
	struct tensor v = *T(t, x);
	v.dim[v.ndim - 1] = size_const(t->a, 1);
	tensor_id z = tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim);
	tape_op1(t, "mean", x, NO_TENSOR, z);
	node_end(t, n, &z, 1);
	return z;
}

/* sum_backward: the gradient expanded, a view; dims: of the sum with the dimension kept */
static void back_sum(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor v = *T(t, n->in[0]);
	out[0] = aten_expand(t, aten_reshape(t, grad[0], v.ndim, n->dims), v.ndim, v.dim);
}

static unsigned without_dim(const struct tensor *v, unsigned dim, size_ref *out)
{
	unsigned n = 0;
	for (unsigned i = 0; i < v->ndim; i++)
		if (i != dim)
			out[n++] = v->dim[i];
	return n;
}

tensor_id aten_sum(struct tape *t, tensor_id x, unsigned dim, bool keep)
{
	struct anode *n = node_begin(t, "SumBackward1", back_sum, &x, 1);
	struct tensor v = *T(t, x);
	size_ref *kept = NEWN(t->a, size_ref, MAX_DIMS), rest[MAX_DIMS];
	unsigned nrest = without_dim(&v, dim, rest);
	memcpy(kept, v.dim, sizeof v.dim);
	kept[dim] = size_const(t->a, 1);
	if (n)
		n->dims = kept;
	enum dtype dt = t->autocast ? DT_FP32 : (enum dtype)v.dtype;       /* autocast sets the dtype argument */
	tensor_id z = keep ? tape_tensor(t, dt, v.ndim, kept) : tape_tensor(t, dt, nrest, rest);
	tape_op1(t, "sum", x, NO_TENSOR, z);
	node_end(t, n, &z, 1);
	return z;
}

/* at::sum_to: dimensions that were broadcast are summed; x itself when there is none. */
tensor_id aten_sum_to_size(struct tape *t, tensor_id x, tensor_id like)
{
	struct tensor v = *T(t, like);
	if (tensor_same_shape(t, x, like))
		return x;
	if (tensor_numel(t, x)->value == tensor_numel(t, like)->value)
		return aten_reshape(t, x, v.ndim, v.dim);
	tensor_id z = tape_tensor(t, (enum dtype)T(t, x)->dtype, v.ndim, v.dim);
	tape_op1(t, "sum", x, NO_TENSOR, z);
	return z;
}

/* ---- activations */

struct unary_row { const char *op, *node, *back; bool saves_result; };
static const struct unary_row unary_rows[] = {
	[UNARY_SILU] = { "silu", "SiluBackward0", "silu_backward", false },
	[UNARY_GELU] = { "gelu", "GeluBackward0", "gelu_backward", false },
	[UNARY_TANH] = { "tanh", "TanhBackward0", "tanh_backward", true },
	[UNARY_RELU] = { "relu", "ReluBackward0", "threshold_backward", true },
	[UNARY_SIGMOID] = { "sigmoid", "SigmoidBackward0", "sigmoid_backward", true },
};

static void back_unary(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = tape_like(t, grad[0], (enum dtype)T(t, grad[0])->dtype);
	tape_op1(t, unary_rows[n->iarg[0]].back, grad[0], node_saved(t, n, 0), out[0]);
}

tensor_id aten_unary(struct tape *t, enum aten_unary op, tensor_id x)
{
	const struct unary_row *row = &unary_rows[op];
	struct anode *n = node_begin(t, row->node, back_unary, &x, 1);
	if (n)
		n->iarg[0] = op;
	if (!row->saves_result)
		node_save(t, n, x);
	tensor_id z = unary(t, row->op, x);
	if (row->saves_result)
		node_save(t, n, z);
	node_end(t, n, &z, 1);
	return z;
}

tensor_id aten_new(struct tape *t, const char *op, enum dtype dt, unsigned ndim, const size_ref *dims,
		   tensor_id r0, tensor_id r1)
{
	tensor_id z = tape_tensor(t, dt, ndim, dims);
	tape_op1(t, op, r0, r1, z);
	return z;
}
