/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * torch.nn.functional.grouped_mm: rows sorted by group times one matrix per
 * group, and the gradients, each one grouped product (torch 2.14.1
 * derivatives.yaml _grouped_mm: mat2 before self). */
#include "kernel/aten/aten.h"

static uint64_t product_flops(struct tape *t, tensor_id rows, size_ref n)
{
	return mul_u64(2, mul_u64(tensor_numel(t, rows)->value, n->value));
}

static void grouped_mm(struct tape *t, tensor_id x, tensor_id y, tensor_id offsets, tensor_id out, size_ref width)
{
	tape_op(t, "_grouped_mm", (tensor_id[]){ x, y, offsets }, 3, &out, 1)->flops = product_flops(t, x, width);
}

/* saved: x where the weight needs a gradient, the weight where x does, the ends of the groups */
static void back_grouped_mm(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor x = *T(t, n->in[0]), w = *T(t, n->in[1]);
	tensor_id offsets = node_saved(t, n, n->nsaved - 1u);
	if (n->want[1]) {
		out[1] = tape_tensor(t, (enum dtype)T(t, grad[0])->dtype, 3, w.dim);
		grouped_mm(t, grad[0], node_saved(t, n, 0), offsets, out[1], x.dim[1]);
	}
	if (n->want[0]) {
		out[0] = tape_tensor(t, (enum dtype)T(t, grad[0])->dtype, 2, x.dim);
		grouped_mm(t, grad[0], node_saved(t, n, n->want[1] ? 1 : 0), offsets, out[0], x.dim[1]);
	}
}

tensor_id aten_grouped_mm(struct tape *t, tensor_id x, tensor_id weight, tensor_id offsets)
{
	tensor_id in[2] = { x, weight };
	struct anode *n = node_begin(t, "GroupedMmBackward0", back_grouped_mm, in, 2);
	size_ref rows = T(t, x)->dim[0], width = T(t, weight)->dim[1];
	if (n && n->want[1])
		node_save(t, n, x);
	if (n && n->want[0])
		node_save(t, n, weight);
	node_save(t, n, offsets);
	tensor_id y = tape_tensor(t, (enum dtype)T(t, x)->dtype, 2, SHAPE(rows, width));
	grouped_mm(t, x, weight, offsets, y, width);
	node_end(t, n, &y, 1);
	return y;
}
