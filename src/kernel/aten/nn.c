/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Embedding, norms, dropout, softmax and losses, with the temporaries that
 * their CUDA kernels allocate out of sight of the dispatcher. */
#include "kernel/aten/aten.h"

#include <math.h>
#include <string.h>

/* EmbeddingBackwardKernel.cu (torch 2.14.1): more than 3072 indices are sorted, and rows are summed in fp32
 * partial segments of at most 10 rows. */
enum { EMBEDDING_SORT_ABOVE = 3072, EMBEDDING_SEGMENT = 10 };

static size_t embedding_hidden(struct tape *t, size_ref tokens, size_ref vocab, size_ref h, tensor_id *out)
{
	struct arena *a = t->a;
	size_ref one = size_const(a, 1);
	size_ref uniq = tokens->value < vocab->value ? tokens : vocab;
	size_ref parts = size_add(a, size_const(a, tokens->value / EMBEDDING_SEGMENT), uniq);
	size_ref idx[] = { tokens, tokens, tokens, one, uniq, uniq, one, parts };
	size_t n = 0;
	if (tokens->value <= EMBEDDING_SORT_ABOVE)
		return 0;
	for (size_t i = 0; i < COUNT(idx); i++)
		out[n++] = tape_workspace(t, DT_INT64, idx[i]);
	out[n++] = tape_workspace(t, DT_FP32, size_mul(a, h, parts));
	return n;
}

static void back_embedding(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor w = *T(t, n->in[0]);
	tensor_id writes[10];
	tensor_id r[2] = { grad[0], node_saved(t, n, 0) };
	out[0] = writes[0] = tape_tensor(t, (enum dtype)T(t, grad[0])->dtype, 2, w.dim);
	size_t k = embedding_hidden(t, tensor_numel(t, r[1]), w.dim[0], w.dim[1], writes + 1);
	tape_op(t, "embedding_dense_backward", r, 2, writes, 1 + k);
}

tensor_id aten_embedding(struct tape *t, tensor_id weight, tensor_id ids)
{
	struct anode *n = node_begin(t, "EmbeddingBackward0", back_embedding, &weight, 1);
	struct tensor v = *T(t, ids);
	v.dim[v.ndim] = T(t, weight)->dim[1];
	node_save(t, n, ids);
	tensor_id y = tape_tensor(t, (enum dtype)T(t, weight)->dtype, v.ndim + 1u, v.dim);
	tape_op1(t, "embedding", weight, ids, y);
	node_end(t, n, &y, 1);
	return y;
}

/* ---- norms */

enum { NORM_PARTIAL_ROWS = 32 };       /* layer_norm_kernel.cu: per-block partial sums of the weight gradients */

static size_ref norm_partials(struct tape *t, size_ref h)
{
	return size_mulc(t->a, h, NORM_PARTIAL_ROWS);
}

static void norm_stat_dims(struct tape *t, tensor_id x, struct tensor *v)
{
	*v = *T(t, x);
	v->dim[v->ndim - 1] = size_const(t->a, 1);
}

/* saved: x, [weight], mean, rstd */
static void back_layer_norm(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id w[5], r[5] = { grad[0] };
	size_t k = 0;
	struct tensor x = *T(t, n->in[0]);
	for (size_t i = 0; i < n->nsaved; i++)
		r[1 + i] = node_saved(t, n, i);
	if (n->want[0])
		w[k++] = out[0] = tape_tensor(t, (enum dtype)x.dtype, x.ndim, x.dim);
	for (unsigned i = 1; i < n->nin; i++)
		if (n->want[i])
			w[k++] = out[i] = tape_tensor(t, (enum dtype)T(t, n->in[i])->dtype, 1, &x.dim[x.ndim - 1]);
	bool partials = (n->nin > 1 && n->want[1]) || (n->nin > 2 && n->want[2]);
	for (int i = 0; partials && i < 2; i++)
		w[k++] = tape_workspace(t, DT_FP32, norm_partials(t, x.dim[x.ndim - 1]));
	tape_op(t, "native_layer_norm_backward", r, 1u + n->nsaved, w, k);
}

tensor_id aten_layer_norm(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias)
{
	x = aten_autocast_fp32(t, x);
	tensor_id in[3] = { x, weight, bias };
	size_t nin = weight < 0 ? 1 : bias < 0 ? 2 : 3;
	struct anode *n = node_begin(t, "NativeLayerNormBackward0", back_layer_norm, in, nin);
	struct tensor stat;
	node_save(t, n, x);
	node_save(t, n, weight);
	norm_stat_dims(t, x, &stat);
	bool whole = tensor_is_contiguous(t, x);
	struct tensor v = *T(t, x);
	tensor_id y[4] = { tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim) };
	y[1] = tape_tensor(t, DT_FP32, stat.ndim, stat.dim);
	y[2] = tape_tensor(t, DT_FP32, stat.ndim, stat.dim);
	if (!whole)                    /* layer_norm_kernel.cu: expect_contiguous() */
		y[3] = tape_workspace(t, (enum dtype)v.dtype, tensor_numel(t, x));
	tape_op(t, "native_layer_norm", in, nin, y, whole ? 3 : 4);
	node_save(t, n, y[1]);
	node_save(t, n, y[2]);
	node_end(t, n, y, 1);
	return y[0];
}

/* saved: x, weight, rstd */
static void back_rms_norm(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id w[3], r[4] = { grad[0], node_saved(t, n, 0), node_saved(t, n, 1), node_saved(t, n, 2) };
	size_t k = 0;
	struct tensor x = *T(t, n->in[0]), wt = *T(t, n->in[1]);
	if (n->want[0])
		w[k++] = out[0] = tape_tensor(t, (enum dtype)x.dtype, x.ndim, x.dim);
	if (n->want[1]) {
		w[k++] = out[1] = tape_tensor(t, (enum dtype)wt.dtype, 1, wt.dim);
		w[k++] = tape_workspace(t, DT_FP32, norm_partials(t, wt.dim[0]));
	}
	tape_op(t, "_fused_rms_norm_backward", r, 4, w, k);
}

/* at::rms_norm composite: taken when weight and input differ in dtype */
static tensor_id rms_norm_composite(struct tape *t, tensor_id x, tensor_id weight)
{
	tensor_id up = aten_cast(t, x, DT_FP32);
	tensor_id sq = aten_pow(t, up);
	tensor_id mean = aten_mean_last(t, sq);
	tensor_id r = aten_rsqrt(t, aten_add_scalar(t, mean));
	tensor_id y = aten_mul(t, up, r);
	y = aten_mul(t, y, weight);
	return aten_cast(t, y, (enum dtype)T(t, x)->dtype);
}

tensor_id aten_rms_norm(struct tape *t, tensor_id x, tensor_id weight)
{
	weight = aten_autocast_fp32(t, weight);        /* arguments are cast from the last to the first */
	x = aten_autocast_fp32(t, x);
	if (T(t, x)->dtype != T(t, weight)->dtype)
		return rms_norm_composite(t, x, weight);
	tensor_id in[2] = { x, weight };
	struct anode *n = node_begin(t, "FusedRmsNormBackward0", back_rms_norm, in, 2);
	struct tensor stat;
	node_save(t, n, x);
	node_save(t, n, weight);
	norm_stat_dims(t, x, &stat);
	struct tensor v = *T(t, x);                    /* the result is contiguous whatever x is */
	tensor_id y[2] = { tape_tensor(t, (enum dtype)v.dtype, v.ndim, v.dim),
			   tape_tensor(t, DT_FP32, stat.ndim, stat.dim) };
	tape_op(t, "_fused_rms_norm", in, 2, y, 2);
	node_save(t, n, y[1]);
	node_end(t, n, y, 1);
	return y[0];
}

/* ---- dropout: p = 0 is the identity */

static void back_dropout(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = tape_like(t, grad[0], (enum dtype)T(t, grad[0])->dtype);
	tape_op1(t, "native_dropout_backward", grad[0], node_saved(t, n, 0), out[0]);
}

tensor_id aten_dropout(struct tape *t, tensor_id x, double p)
{
	if (fabs(p) < 1e-12)
		return x;
	struct anode *n = node_begin(t, "NativeDropoutBackward0", back_dropout, &x, 1);
	tensor_id y[2] = { tape_like(t, x, (enum dtype)T(t, x)->dtype), tape_like(t, x, DT_BOOL) };
	tape_op(t, "native_dropout", &x, 1, y, 2);
	node_save(t, n, y[1]);
	node_end(t, n, y, 1);
	return y[0];
}

/* ---- softmax and losses: the result is saved */

struct soft_row { const char *op, *node, *back; };
static const struct soft_row soft_rows[] = {
	{ "_softmax", "SoftmaxBackward0", "_softmax_backward_data" },
	{ "_log_softmax", "LogSoftmaxBackward0", "_log_softmax_backward_data" },
	{ "_safe_softmax", "SafeSoftmaxBackward0", "_softmax_backward_data" },
};

static void back_soft(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	out[0] = tape_like(t, grad[0], (enum dtype)T(t, n->in[0])->dtype);
	tape_op1(t, soft_rows[n->iarg[0]].back, grad[0], node_saved(t, n, 0), out[0]);
}

static tensor_id soft(struct tape *t, tensor_id x, unsigned row, enum dtype dt)
{
	struct anode *n = node_begin(t, soft_rows[row].node, back_soft, &x, 1);
	if (n)
		n->iarg[0] = row;
	tensor_id y = tape_like(t, x, dt);
	tape_op1(t, soft_rows[row].op, x, NO_TENSOR, y);
	node_save(t, n, y);
	node_end(t, n, &y, 1);
	return y;
}

/* fp16 input with an fp32 result is one kernel (half_to_float); bf16 is cast first. */
tensor_id aten_softmax(struct tape *t, tensor_id x, enum dtype out)
{
	x = aten_autocast_fp32(t, x);
	if (T(t, x)->dtype != DT_FP16 || out != DT_FP32)
		x = aten_cast(t, x, out);
	return soft(t, x, 0, out);
}

tensor_id aten_safe_softmax(struct tape *t, tensor_id x)
{
	return soft(t, x, 2, (enum dtype)T(t, x)->dtype);
}

tensor_id aten_log_softmax(struct tape *t, tensor_id x)
{
	x = aten_autocast_fp32(t, x);
	return soft(t, x, 1, (enum dtype)T(t, x)->dtype);
}

static void back_nll(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	struct tensor x = *T(t, n->in[0]);
	tensor_id r[4] = { grad[0], node_saved(t, n, 0), node_saved(t, n, 1), node_saved(t, n, 2) };
	out[0] = tape_tensor(t, (enum dtype)x.dtype, x.ndim, x.dim);
	tape_op(t, "nll_loss_backward", r, 4, out, 1);
}

tensor_id aten_nll_loss(struct tape *t, tensor_id logp, tensor_id target)
{
	tensor_id in[2] = { logp, target };
	struct anode *n = node_begin(t, "NllLossBackward0", back_nll, in, 1);
	node_save(t, n, logp);
	node_save(t, n, target);
	tensor_id y[2] = { tape_scalar(t, DT_FP32), tape_scalar(t, DT_FP32) };
	tape_op(t, "nll_loss_forward", in, 2, y, 2);
	node_save(t, n, y[1]);
	node_end(t, n, y, 1);
	return y[0];
}
