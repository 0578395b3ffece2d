/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Operators that move rows about: selection, gather and index by tensors of
 * positions, in-place masks.  Their gradients are written into fresh zeros;
 * repeated positions are sorted first (torch 2.14.1 FunctionsManual.cpp,
 * native/cuda/Indexing.cu). */
#include "kernel/aten/aten.h"

/* x under a new version: what an in-place op returns. */
static tensor_id same_storage(struct tape *t, tensor_id x)
{
	return aten_detach(t, x);
}

static tensor_id zeros_like_input(struct tape *t, const struct anode *n, tensor_id grad)
{
	struct tensor v = *T(t, n->in[0]);
	tensor_id z = tape_tensor(t, (enum dtype)T(t, grad)->dtype, v.ndim, v.dim);
	tape_op1(t, "new_zeros", NO_TENSOR, NO_TENSOR, z);
	return z;
}

/* ---- largest values */

/* value_selecting_reduction_backward, gather_backward; saved: positions */
static void back_scatter(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = zeros_like_input(t, n, grad[0]);
	tape_op(t, n->iarg[0] ? "scatter_add_" : "scatter_",
		(tensor_id[]){ grad[0], node_saved(t, n, 0), out[0] }, 3, out, 1);
}

tensor_id aten_topk(struct tape *t, tensor_id x, size_ref k, tensor_id *index)
{
	struct anode *n = node_begin(t, "TopkBackward0", back_scatter, &x, 1);
	struct tensor v = *T(t, x);
	v.dim[v.ndim - 1] = k;
	tensor_id y[2] = { tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim), tape_tensor(t, DT_INT64, v.ndim, v.dim) };
	tape_op(t, "topk", &x, 1, y, 2);
	node_save(t, n, y[1]);
	node_end(t, n, y, 1);
	*index = y[1];
	return y[0];
}

tensor_id aten_gather(struct tape *t, tensor_id x, tensor_id index)
{
	struct anode *n = node_begin(t, "GatherBackward0", back_scatter, &x, 1);
	if (n)
		n->iarg[0] = true;
	node_save(t, n, index);
	tensor_id y = tape_like(t, index, (enum dtype)T(t, x)->dtype);
	tape_op1(t, "gather", x, index, y);
	node_end(t, n, &y, 1);
	return y;
}

/* ---- rows by position */

enum { INDEX_PUT_ARRAYS = 3 };         /* index_put_with_sort_kernel: sorted positions, their origins, the linear index */

/* _index_put_impl_ with accumulate; saved: positions */
static void back_index(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id index = node_saved(t, n, 0), w[1 + INDEX_PUT_ARRAYS];
	w[0] = out[0] = zeros_like_input(t, n, grad[0]);
	for (size_t i = 1; i < COUNT(w); i++)
		w[i] = tape_workspace(t, DT_INT64, tensor_numel(t, index));
	tape_op(t, "index_put", (tensor_id[]){ grad[0], index, out[0] }, 3, w, COUNT(w));
}

tensor_id aten_index(struct tape *t, tensor_id x, tensor_id index)
{
	return aten_index_dim(t, x, index, 0);
}

tensor_id aten_index_dim(struct tape *t, tensor_id x, tensor_id index, unsigned dim)
{
	struct anode *n = node_begin(t, "IndexBackward0", back_index, &x, 1);
	struct tensor v = *T(t, x);
	v.dim[dim] = T(t, index)->dim[0];
	node_save(t, n, index);
	tensor_id y = tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim);
	tape_op1(t, "index", x, index, y);
	node_end(t, n, &y, 1);
	return y;
}

/* zeros of the unsqueezed shape, written, then squeezed: a view; saved: positions */
static void back_index_pair(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	back_index(t, n, grad, out);
	T(t, out[0])->is_view = true;
}

tensor_id aten_index_pair(struct tape *t, tensor_id x, tensor_id pair)
{
	struct anode *n = node_begin(t, "IndexBackward0", back_index_pair, &x, 1);
	size_ref dims[2] = { T(t, pair)->dim[0], size_const(t->a, 1) };
	node_save(t, n, pair);
	tensor_id y = tape_tensor(t, (enum dtype)T(t, x)->dtype, 2, dims);
	tape_op1(t, "index", x, pair, y);
	node_end(t, n, &y, 1);
	return y;
}

/* self: grad, source: grad.index_select(index).expand_as(source); saved: index, source */
static void back_index_add(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor v = *T(t, n->in[1]);
	out[0] = grad[0];
	out[1] = tape_tensor(t, (enum dtype)T(t, grad[0])->dtype, v.ndim, v.dim);
	tape_op1(t, "index_select", grad[0], node_saved(t, n, 0), out[1]);
	T(t, out[1])->is_view = true;
}

tensor_id aten_index_add_(struct tape *t, tensor_id x, tensor_id index, tensor_id source)
{
	tensor_id in[2] = { x, source };
	struct anode *n = node_begin(t, "IndexAddBackward0", back_index_add, in, 2);
	node_save(t, n, index);
	if (n && n->want[1])
		node_save(t, n, source);
	tensor_id y = same_storage(t, x);
	tape_op(t, "index_add_", (tensor_id[]){ x, index, source }, 3, &y, 1);
	node_end(t, n, &y, 1);
	return y;
}

/* ---- masks */

static void back_masked_fill(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = tape_like(t, grad[0], (enum dtype)T(t, grad[0])->dtype);
	tape_op1(t, "masked_fill", grad[0], node_saved(t, n, 0), out[0]);
}

tensor_id aten_masked_fill_(struct tape *t, tensor_id x, tensor_id mask)
{
	struct anode *n = node_begin(t, "MaskedFillBackward0", back_masked_fill, &x, 1);
	node_save(t, n, mask);
	tensor_id y = same_storage(t, x);
	tape_op1(t, "masked_fill_", x, mask, y);
	node_end(t, n, &y, 1);
	return y;
}

/* ---- every second element of the last dimension */

static void back_step(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor v = *T(t, n->in[0]);
	out[0] = tape_tensor(t, (enum dtype)T(t, grad[0])->dtype, v.ndim, v.dim);
	tape_op1(t, "slice_backward", grad[0], NO_TENSOR, out[0]);
}

tensor_id aten_slice_step(struct tape *t, tensor_id x, uint64_t step)
{
	struct anode *n = node_begin(t, "SliceBackward0", back_step, &x, 1);
	tensor_id y = aten_detach(t, x);
	struct tensor *v = T(t, y);
	v->dim[v->ndim - 1] = size_ceil_div(t->a, v->dim[v->ndim - 1], size_const(t->a, step));
	v->stride[v->ndim - 1] *= step;
	node_end(t, n, &y, 1);
	return y;
}
