/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Views: shapes and strides, and the few ops that copy because strides do
 * not allow a view. */
#include "kernel/aten/aten.h"

#include <string.h>

bool tensor_is_contiguous(struct tape *t, tensor_id x)
{
	const struct tensor *v = T(t, x);
	uint64_t want = 1;
	for (unsigned i = v->ndim; i-- > 0;) {
		if (v->dim[i]->value != 1 && v->stride[i] != want)
			return false;
		want *= v->dim[i]->value;
	}
	return true;
}

bool tensor_is_dense(struct tape *t, tensor_id x)
{
	const struct tensor *v = T(t, x);
	uint64_t want = 1;
	bool used[MAX_DIMS] = { false };
	for (unsigned n = 0; n < v->ndim; n++) {
		unsigned i = 0;
		while (i < v->ndim && (used[i] || v->dim[i]->value == 1 || v->stride[i] != want))
			i++;
		if (i == v->ndim)
			break;
		used[i] = true;
		want *= v->dim[i]->value;
	}
	return want == tensor_numel(t, x)->value;
}

/* Whether dimension p stands before q in memory: 1 no, -1 yes, 0 undecided (a broadcast dimension). */
static int stride_order(const struct tensor *v, unsigned p, unsigned q)
{
	uint64_t a = v->stride[p], b = v->stride[q];
	if (a == 0 || b == 0)
		return 0;
	if (a != b)
		return a < b ? -1 : 1;
	return v->dim[p]->value > v->dim[q]->value;
}

/* at::infer_dense_strides(): the order of dimensions in memory is kept, gaps are closed. */
void tensor_dense_strides(struct tape *t, tensor_id x, uint64_t *out)
{
	const struct tensor *v = T(t, x);
	unsigned perm[MAX_DIMS] = { 0 };
	uint64_t next = 1;
	for (unsigned i = 0; i < v->ndim; i++)
		perm[i] = v->ndim - 1 - i;
	for (unsigned i = 1; i < v->ndim; i++) {
		unsigned at = i;
		for (unsigned k = i; k-- > 0;) {
			int order = stride_order(v, perm[k], perm[at]);
			if (order < 0)
				break;
			if (order > 0) {
				unsigned swap = perm[k];
				perm[k] = perm[at];
				perm[at] = swap;
				at = k;
			}
		}
	}
	for (unsigned i = 0; i < v->ndim; i++) {
		out[perm[i]] = next;
		next *= v->dim[perm[i]]->value;
	}
}

size_ref tensor_numel(struct tape *t, tensor_id x)
{
	size_ref n = size_const(t->a, 1);
	for (unsigned i = 0; i < T(t, x)->ndim; i++)
		n = size_mul(t->a, n, T(t, x)->dim[i]);
	return n;
}

bool tensor_same_shape(struct tape *t, tensor_id x, tensor_id y)
{
	const struct tensor *a = T(t, x), *b = T(t, y);
	if (a->ndim != b->ndim)
		return false;
	for (unsigned i = 0; i < a->ndim; i++)
		if (a->dim[i]->value != b->dim[i]->value)
			return false;
	return true;
}

static tensor_id make_view(struct tape *t, tensor_id x, unsigned ndim, const size_ref *dims, const uint64_t *strides)
{
	struct tensor *old = T(t, x);
	tensor_id y = graph_tensor(t->g, old->storage, (enum dtype)old->dtype, ndim, dims);
	struct tensor *v = T(t, y);
	memcpy(v->stride, strides, sizeof *strides * ndim);
	v->is_view = true;
	return y;
}

/* aten computeStride(): strides of the new shape over the same memory, false when a copy is needed. */
static bool view_strides(const struct tensor *v, unsigned ndim, const size_ref *dims, uint64_t *out)
{
	int vd = (int)ndim - 1;
	uint64_t tnum = 1, vnum = 1;
	uint64_t base = v->ndim ? v->stride[v->ndim - 1] : 1;
	for (int td = (int)v->ndim - 1; td >= 0; td--) {
		tnum *= v->dim[td]->value;
		if (td > 0 && (v->dim[td - 1]->value == 1 || v->stride[td - 1] == tnum * base))
			continue;
		while (vd >= 0 && (vnum < tnum || dims[vd]->value == 1)) {
			out[vd] = vnum * base;
			vnum *= dims[vd]->value;
			vd--;
		}
		if (vnum != tnum)
			return false;
		if (td > 0) {
			base = v->stride[td - 1];
			tnum = vnum = 1;
		}
	}
	for (; vd >= 0; vd--)
		out[vd] = vnum * base;
	return true;
}

static void back_reshape(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	size_ref dims[MAX_DIMS];
	unsigned nd = T(t, n->in[0])->ndim;
	memcpy(dims, T(t, n->in[0])->dim, sizeof dims);
	out[0] = aten_reshape(t, grad[0], nd, dims);
}

tensor_id aten_reshape(struct tape *t, tensor_id x, unsigned ndim, const size_ref *dims)
{
	uint64_t strides[MAX_DIMS] = { 0 };
	if (!view_strides(T(t, x), ndim, dims, strides)) {
		x = aten_contiguous(t, x);
		view_strides(T(t, x), ndim, dims, strides);
	}
	struct anode *n = node_begin(t, "ViewBackward0", back_reshape, &x, 1);
	tensor_id y = make_view(t, x, ndim, dims, strides);
	node_end(t, n, &y, 1);
	return y;
}

tensor_id aten_flatten(struct tape *t, tensor_id x)
{
	const struct tensor *v = T(t, x);
	size_ref rows = size_const(t->a, 1);
	for (unsigned i = 0; i + 1 < v->ndim; i++)
		rows = size_mul(t->a, rows, v->dim[i]);
	return aten_reshape(t, x, 2, SHAPE(rows, v->dim[v->ndim - 1]));
}

static void back_transpose(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = aten_transpose(t, grad[0], (unsigned)n->iarg[0], (unsigned)n->iarg[1]);
}

tensor_id aten_transpose(struct tape *t, tensor_id x, unsigned i, unsigned j)
{
	struct anode *n = node_begin(t, "TransposeBackward0", back_transpose, &x, 1);
	struct tensor v = *T(t, x);
	size_ref d = v.dim[i];
	uint64_t s = v.stride[i];
	v.dim[i] = v.dim[j];
	v.stride[i] = v.stride[j];
	v.dim[j] = d;
	v.stride[j] = s;
	tensor_id y = make_view(t, x, v.ndim, v.dim, v.stride);
	if (n) {
		n->iarg[0] = i;
		n->iarg[1] = j;
	}
	node_end(t, n, &y, 1);
	return y;
}

static void back_expand(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = aten_sum_to_size(t, grad[0], n->in[0]);
}

tensor_id aten_expand(struct tape *t, tensor_id x, unsigned ndim, const size_ref *dims)
{
	struct anode *n = node_begin(t, "ExpandBackward0", back_expand, &x, 1);
	const struct tensor *v = T(t, x);
	uint64_t strides[MAX_DIMS] = { 0 };
	for (unsigned i = 0; i < ndim; i++) {
		unsigned lead = ndim - v->ndim;
		bool same = i >= lead && v->dim[i - lead]->value == dims[i]->value;
		strides[i] = same ? v->stride[i - lead] : 0;
	}
	tensor_id y = make_view(t, x, ndim, dims, strides);
	node_end(t, n, &y, 1);
	return y;
}

static void back_pass(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	(void)t;
	(void)n;
	out[0] = grad[0];
}

/* A new tensor of the input's shape; strides do not matter to what is stored. */
static tensor_id full_like_input(struct tape *t, const struct anode *n, const char *op, tensor_id grad)
{
	size_ref dims[MAX_DIMS];
	memcpy(dims, T(t, n->in[0])->dim, sizeof dims);
	tensor_id y = tape_tensor(t, (enum dtype)T(t, grad)->dtype, T(t, n->in[0])->ndim, dims);
	tape_op1(t, op, grad, NO_TENSOR, y);
	return y;
}

static void back_select(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = full_like_input(t, n, "select_backward", grad[0]);
}

static tensor_id without_dim(struct tape *t, tensor_id x, unsigned dim)
{
	struct tensor v = *T(t, x);
	v.ndim--;
	for (unsigned i = dim; i < v.ndim; i++) {
		v.dim[i] = v.dim[i + 1];
		v.stride[i] = v.stride[i + 1];
	}
	return make_view(t, x, v.ndim, v.dim, v.stride);
}

/* x[..., i, ...]: the dimension goes */
tensor_id aten_select(struct tape *t, tensor_id x, unsigned dim)
{
	struct anode *n = node_begin(t, "SelectBackward0", back_select, &x, 1);
	tensor_id y = without_dim(t, x, dim);
	T(t, y)->param = T(t, x)->param;      /* where a parameter is gathered anew, its slices are too */
	node_end(t, n, &y, 1);
	return y;
}

static void back_slice(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = full_like_input(t, n, "slice_backward", grad[0]);
}

static tensor_id narrow(struct tape *t, tensor_id x, unsigned dim, size_ref len)
{
	struct tensor v = *T(t, x);
	v.dim[dim] = len;
	return make_view(t, x, v.ndim, v.dim, v.stride);
}

/* Indexing that takes the whole dimension is an alias (python_variable_indexing.cpp): its gradient passes. */
tensor_id aten_slice(struct tape *t, tensor_id x, unsigned dim, size_ref len)
{
	bool whole = T(t, x)->dim[dim]->value == len->value;
	struct anode *n = whole ? node_begin(t, "AliasBackward0", back_pass, &x, 1)
				: node_begin(t, "SliceBackward0", back_slice, &x, 1);
	tensor_id y = narrow(t, x, dim, len);
	node_end(t, n, &y, 1);
	return y;
}

/* unbind_backward: stack */
static void back_unbind(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = tape_tensor(t, (enum dtype)T(t, n->in[0])->dtype, T(t, n->in[0])->ndim, T(t, n->in[0])->dim);
	tape_op(t, "stack", grad, n->nout, out, 1);
}

void aten_unbind(struct tape *t, tensor_id x, tensor_id *out)
{
	struct anode *n = node_begin(t, "UnbindBackward0", back_unbind, &x, 1);
	size_t nout = (size_t)T(t, x)->dim[0]->value;
	for (size_t i = 0; i < nout; i++)
		out[i] = without_dim(t, x, 0);
	node_end(t, n, out, nout);
}

/* split_with_sizes_backward: one cat of the gradients; a missing one is made of zeros first. */
static void back_split(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id *all = NEWN(t->a, tensor_id, n->nout);
	const size_ref *len = n->dims;
	enum dtype dt = (enum dtype)T(t, n->in[0])->dtype;
	for (unsigned i = 0; i < n->nout; i++) {
		all[i] = grad[i];
		if (grad[i] < 0) {
			struct tensor v = *T(t, n->in[0]);
			v.dim[n->iarg[0]] = len[i];
			all[i] = tape_tensor(t, dt, v.ndim, v.dim);
			tape_op1(t, "zeros", NO_TENSOR, NO_TENSOR, all[i]);
		}
	}
	out[0] = tape_tensor(t, dt, T(t, n->in[0])->ndim, T(t, n->in[0])->dim);
	tape_op(t, "cat", all, n->nout, out, 1);
}

void aten_split(struct tape *t, tensor_id x, unsigned dim, unsigned nout, const size_ref *len, tensor_id *out)
{
	struct anode *n = node_begin(t, "SplitWithSizesBackward0", back_split, &x, 1);
	for (unsigned i = 0; i < nout; i++)
		out[i] = narrow(t, x, dim, len[i]);
	if (n && !n->dims) {
		size_ref *keep = NEWN(t->a, size_ref, nout);
		memcpy(keep, len, sizeof *len * nout);
		n->dims = keep;
		n->iarg[0] = dim;
	}
	node_end(t, n, out, nout);
}

static tensor_id copy_to(struct tape *t, tensor_id x, tensor_id y)
{
	struct anode *n = node_begin(t, "CloneBackward0", back_pass, &x, 1);
	tape_op1(t, "clone", x, NO_TENSOR, y);
	node_end(t, n, &y, 1);
	return y;
}

tensor_id aten_contiguous(struct tape *t, tensor_id x)
{
	if (tensor_is_contiguous(t, x))
		return x;
	size_ref dims[MAX_DIMS];
	memcpy(dims, T(t, x)->dim, sizeof dims);
	return copy_to(t, x, tape_tensor(t, (enum dtype)T(t, x)->dtype, T(t, x)->ndim, dims));
}

tensor_id aten_clone(struct tape *t, tensor_id x)
{
	return copy_to(t, x, tape_like(t, x, (enum dtype)T(t, x)->dtype));
}

/* cat_tensors_backward: views of the gradient */
static void back_cat(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	unsigned dim = (unsigned)n->iarg[0];
	for (size_t i = 0; i < n->nin; i++)
		if (n->want[i])
			out[i] = narrow(t, grad[0], dim, T(t, n->in[i])->dim[dim]);
}

tensor_id aten_cat_list(struct tape *t, const tensor_id *x, size_t nx, unsigned dim)
{
	struct anode *n = node_begin(t, "CatBackward0", back_cat, x, nx);
	struct tensor v = *T(t, x[0]);
	for (size_t i = 1; i < nx; i++)
		v.dim[dim] = size_add(t->a, v.dim[dim], T(t, x[i])->dim[dim]);
	if (n)
		n->iarg[0] = dim;
	tensor_id z = tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim);
	tape_op(t, "cat", x, nx, &z, 1);
	node_end(t, n, &z, 1);
	return z;
}

tensor_id aten_cat(struct tape *t, tensor_id x, tensor_id y, unsigned dim)
{
	return aten_cat_list(t, (tensor_id[]){ x, y }, 2, dim);
}

/* stack_tensors_backward: views of the gradient */
static void back_stack(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	for (unsigned i = 0; i < 2; i++)
		if (n->want[i])
			out[i] = aten_select(t, grad[0], T(t, grad[0])->ndim - 1u);
}

tensor_id aten_stack_last(struct tape *t, tensor_id x, tensor_id y)
{
	tensor_id in[2] = { x, y };
	struct anode *n = node_begin(t, "StackBackward0", back_stack, in, 2);
	struct tensor v = *T(t, x);
	v.dim[v.ndim] = size_const(t->a, 2);
	tensor_id z = tape_tensor(t, (enum dtype)v.dtype, v.ndim + 1u, v.dim);
	tape_op(t, "stack", in, 2, &z, 1);
	node_end(t, n, &z, 1);
	return z;
}

/* constant_pad_nd_backward: the gradient is narrowed and cloned */
static void back_pad(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor v = *T(t, n->in[0]);
	out[0] = tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim);
	tape_op1(t, "clone", grad[0], NO_TENSOR, out[0]);
}

tensor_id aten_pad_last(struct tape *t, tensor_id x, uint64_t multiple)
{
	struct tensor v = *T(t, x);
	size_ref len = v.dim[v.ndim - 1];
	if (len->value % multiple == 0)
		return x;
	struct anode *n = node_begin(t, "ConstantPadNdBackward0", back_pad, &x, 1);
	v.dim[v.ndim - 1] = size_round_up(t->a, len, multiple);
	tensor_id y = tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim);
	tape_op1(t, "constant_pad_nd", x, NO_TENSOR, y);
	node_end(t, n, &y, 1);
	return y;
}

tensor_id aten_detach(struct tape *t, tensor_id x)
{
	struct tensor v = *T(t, x);
	return make_view(t, x, v.ndim, v.dim, v.stride);
}
