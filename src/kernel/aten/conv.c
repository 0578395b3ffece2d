/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Convolution of patches: kernel and stride are one, so each patch becomes
 * one row.  The library's workspace is not counted. */
#include "kernel/aten/aten.h"

/* convolution_backward: what is wanted of input, weight and bias in one op */
static void back_convolution(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id r[3] = { grad[0], node_saved(t, n, 0), node_saved(t, n, 1) }, w[3];
	size_t k = 0;
	for (size_t i = 0; i < n->nin; i++)
		if (n->want[i]) {
			struct tensor v = *T(t, n->in[i]);
			w[k++] = out[i] = tape_tensor(t, (enum dtype)T(t, grad[0])->dtype, v.ndim, v.dim);
		}
	tape_op(t, "convolution_backward", r, 3, w, k);
}

tensor_id aten_patches(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias, size_ref side)
{
	bias = aten_autocast(t, bias);         /* arguments are cast from the last to the first */
	weight = aten_autocast(t, weight);
	x = aten_autocast(t, x);
	tensor_id in[3] = { x, weight, bias };
	size_t nin = bias < 0 ? 2 : 3;
	struct anode *n = node_begin(t, "ConvolutionBackward0", back_convolution, in, nin);
	struct tensor v = *T(t, x);
	node_save(t, n, x);
	node_save(t, n, weight);
	v.dim[1] = T(t, weight)->dim[0];
	for (unsigned i = 2; i < v.ndim; i++)
		v.dim[i] = side;
	tensor_id y = tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim);
	tape_op(t, "convolution", in, nin, &y, 1);
	node_end(t, n, &y, 1);
	return y;
}
