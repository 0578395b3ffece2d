/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Matrix products.  mm without a bias computes the weight's gradient first
 * (mat2 before self), addmm the input's (mat1 before mat2 before the bias). */
#include "kernel/aten/aten.h"

#include <string.h>

/* ---- autocast (torch/csrc autocast_mode.cpp): only fp32 leaf weights are cached, until the context ends */

tensor_id aten_autocast(struct tape *t, tensor_id x)
{
	if (!t->autocast || x < 0 || T(t, x)->dtype != DT_FP32)
		return x;
	struct pslot *p = T(t, x)->param >= 0 ? &t->params.v[T(t, x)->param] : NULL;
	bool cached = p && p->trainable && p->ndim == T(t, x)->ndim;       /* a slice is no leaf */
	if (cached && p->cast >= 0 && p->cast_epoch == t->cast_epoch)
		return p->cast;
	int32_t cls = t->cls;
	if (p)
		t->cls = CLASS_WEIGHT_CAST;
	tensor_id y = aten_cast(t, x, t->low);
	t->cls = cls;
	if (cached) {
		p->cast = y;
		p->cast_epoch = t->cast_epoch;
		*VEC_PUSH(t->a, &t->casts) = y;
	}
	return y;
}

tensor_id aten_autocast_fp32(struct tape *t, tensor_id x)
{
	return t->autocast ? aten_cast(t, x, DT_FP32) : x;
}

void aten_autocast_exit(struct tape *t)
{
	tape_holdv(t, t->casts.v, t->casts.n);
	t->casts.n = 0;
	t->cast_epoch++;
}

/* ---- mm, addmm */

static uint64_t product_flops(struct tape *t, tensor_id x, size_ref n)
{
	return mul_u64(2, mul_u64(tensor_numel(t, x)->value, n->value));
}

/* x [m,k] times w [n,k] transposed, or w [k,n] */
static tensor_id mm_out(struct tape *t, const char *op, tensor_id x, tensor_id w, tensor_id bias, bool transposed)
{
	size_ref n = T(t, w)->dim[transposed ? 0 : 1];
	tensor_id y = tape_tensor(t, (enum dtype)T(t, x)->dtype, 2, SHAPE(T(t, x)->dim[0], n));
	tensor_id r[3] = { x, w, bias };
	tape_op(t, op, r, 3, &y, 1)->flops = product_flops(t, x, n);
	return y;
}

static tensor_id grad_weight(struct tape *t, tensor_id grad, tensor_id x, tensor_id like)
{
	struct tensor w = *T(t, like);
	tensor_id g = tape_tensor(t, (enum dtype)T(t, grad)->dtype, 2, w.dim);
	tape_op1(t, "mm", grad, x, g)->flops = product_flops(t, grad, T(t, x)->dim[1]);
	return g;
}

static tensor_id grad_input(struct tape *t, tensor_id grad, tensor_id w, tensor_id like)
{
	struct tensor x = *T(t, like);
	tensor_id g = tape_tensor(t, (enum dtype)T(t, grad)->dtype, 2, x.dim);
	tape_op1(t, "mm", grad, w, g)->flops = product_flops(t, grad, x.dim[1]);
	return g;
}

/* in: x [m,k], w; saved: x if w needs a gradient, w if x does.  iarg[0]: w came through t() */
static void back_mm(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	if (n->want[1]) {
		out[1] = grad_weight(t, grad[0], node_saved(t, n, 0), n->in[1]);
		T(t, out[1])->is_view = n->iarg[0];
	}
	if (n->want[0])
		out[0] = grad_input(t, grad[0], node_saved(t, n, n->want[1] ? 1 : 0), n->in[0]);
}

/* in: x, w, bias */
static void back_addmm(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	if (n->want[0])
		out[0] = grad_input(t, grad[0], node_saved(t, n, n->want[1] ? 1 : 0), n->in[0]);
	if (n->want[1]) {
		out[1] = grad_weight(t, grad[0], node_saved(t, n, 0), n->in[1]);
		T(t, out[1])->is_view = n->iarg[0];
	}
	if (n->want[2])
		out[2] = grad[0];
}

static tensor_id mm_node(struct tape *t, tensor_id x, tensor_id w, tensor_id bias, bool transposed)
{
	tensor_id in[3] = { x, w, bias };
	struct anode *n = bias >= 0 ? node_begin(t, "AddmmBackward0", back_addmm, in, 3)
				    : node_begin(t, "MmBackward0", back_mm, in, 2);
	if (n && n->want[1])
		node_save(t, n, x);
	if (n && n->want[0])
		node_save(t, n, w);
	if (n)
		n->iarg[0] = transposed;
	tensor_id y = mm_out(t, bias >= 0 ? "addmm" : "mm", x, w, bias, transposed);
	node_end(t, n, &y, 1);
	return y;
}

/* Of a view of a weight: autocast does not cache it. */
static tensor_id autocast_view(struct tape *t, tensor_id w)
{
	int32_t cls = t->cls;
	t->cls = CLASS_WEIGHT_CAST;
	tensor_id y = t->autocast && T(t, w)->dtype == DT_FP32 ? aten_cast(t, w, t->low) : w;
	t->cls = cls;
	return y;
}

static tensor_id product(struct tape *t, tensor_id x, tensor_id w, tensor_id bias, bool transposed)
{
	x = aten_autocast(t, x);
	struct tensor v = *T(t, x);
	if (v.ndim == 2)
		return mm_node(t, x, w, bias, transposed);
	tensor_id y = mm_node(t, aten_flatten(t, x), w, bias, transposed);
	v.dim[v.ndim - 1] = T(t, y)->dim[1];
	return aten_reshape(t, y, v.ndim, v.dim);
}

static tensor_id linear(struct tape *t, tensor_id x, tensor_id w, tensor_id bias, bool transposed)
{
	bias = aten_autocast(t, bias);         /* arguments are cast from the last to the first */
	w = aten_autocast(t, w);
	return product(t, x, w, bias, transposed);
}

tensor_id aten_matmul_transposed(struct tape *t, tensor_id x, tensor_id weight)
{
	return product(t, x, autocast_view(t, weight), NO_TENSOR, true);
}

tensor_id aten_linear(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias)
{
	return linear(t, x, weight, bias, true);
}

tensor_id aten_conv1d(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias)
{
	return linear(t, x, weight, bias, false);
}

/* ---- batched */

static tensor_id bmm_out(struct tape *t, const char *op, tensor_id x, tensor_id y, size_ref m, size_ref n, size_ref k)
{
	size_ref b = T(t, x)->dim[0];
	tensor_id z = tape_tensor(t, (enum dtype)T(t, x)->dtype, 3, SHAPE(b, m, n));
	tape_op1(t, op, x, y, z)->flops = mul_u64(2, mul_u64(mul_u64(b->value, m->value), mul_u64(n->value, k->value)));
	return z;
}

/* mat2: self^T grad, then self: grad mat2^T */
static void back_bmm(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor x = *T(t, n->in[0]), y = *T(t, n->in[1]);
	if (n->want[1])
		out[1] = bmm_out(t, "bmm", node_saved(t, n, 0), grad[0], y.dim[1], y.dim[2], x.dim[1]);
	if (n->want[0])
		out[0] = bmm_out(t, "bmm", grad[0], node_saved(t, n, n->want[1] ? 1 : 0), x.dim[1], x.dim[2], y.dim[2]);
}

tensor_id aten_bmm(struct tape *t, tensor_id x, tensor_id y)
{
	tensor_id in[2] = { x, y };
	struct anode *n = node_begin(t, "BmmBackward0", back_bmm, in, 2);
	if (n && n->want[1])
		node_save(t, n, x);
	if (n && n->want[0])
		node_save(t, n, y);
	tensor_id z = bmm_out(t, "bmm", x, y, T(t, x)->dim[1], T(t, y)->dim[2], T(t, y)->dim[1]);
	node_end(t, n, &z, 1);
	return z;
}

static tensor_id flatten_batch(struct tape *t, tensor_id x)
{
	struct tensor v = *T(t, x);
	if (v.ndim == 3)
		return x;
	return aten_reshape(t, x, 3, SHAPE(size_mul(t->a, v.dim[0], v.dim[1]), v.dim[2], v.dim[3]));
}

tensor_id aten_matmul(struct tape *t, tensor_id x, tensor_id y)
{
	y = aten_autocast(t, y);
	x = aten_autocast(t, x);
	struct tensor v = *T(t, x), w = *T(t, y);
	size_ref n = w.dim[w.ndim - 1];
	if (v.ndim == 4 && w.dim[1]->value != v.dim[1]->value)
		y = aten_expand(t, y, 4, SHAPE(v.dim[0], v.dim[1], w.dim[2], w.dim[3]));
	tensor_id z = aten_bmm(t, flatten_batch(t, x), flatten_batch(t, y));
	if (v.ndim == 3)
		return z;
	v.dim[3] = n;
	return aten_reshape(t, z, 4, v.dim);
}

static tensor_id scaled(struct tape *t, tensor_id x)
{
	tensor_id y = tape_like(t, x, (enum dtype)T(t, x)->dtype);
	tape_op1(t, "mul", x, NO_TENSOR, y);
	return y;
}

/* batch1: grad batch2^T * alpha, batch2: batch1^T grad * alpha */
static void back_baddbmm(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor x = *T(t, n->in[0]), y = *T(t, n->in[1]);
	if (n->want[0])
		out[0] = scaled(t, bmm_out(t, "bmm", grad[0], node_saved(t, n, n->want[1] ? 1 : 0),
					   x.dim[1], x.dim[2], y.dim[2]));
	if (n->want[1])
		out[1] = scaled(t, bmm_out(t, "bmm", node_saved(t, n, 0), grad[0], y.dim[1], y.dim[2], x.dim[1]));
}

tensor_id aten_baddbmm(struct tape *t, tensor_id bias, tensor_id x, tensor_id y)
{
	y = aten_autocast(t, y);
	x = aten_autocast(t, x);
	bias = aten_autocast(t, bias);
	tensor_id in[2] = { x, y };
	struct anode *n = node_begin(t, "BaddbmmBackward0", back_baddbmm, in, 2);
	if (n && n->want[1])
		node_save(t, n, x);
	if (n && n->want[0])
		node_save(t, n, y);
	size_ref b = T(t, x)->dim[0], m = T(t, x)->dim[1], k = T(t, y)->dim[1], w = T(t, y)->dim[2];
	tensor_id r[3] = { bias, x, y }, z = tape_tensor(t, (enum dtype)T(t, x)->dtype, 3, SHAPE(b, m, w));
	tape_op(t, "baddbmm", r, 3, &z, 1)->flops = mul_u64(2, mul_u64(mul_u64(b->value, m->value), mul_u64(w->value, k->value)));
	node_end(t, n, &z, 1);
	return z;
}
