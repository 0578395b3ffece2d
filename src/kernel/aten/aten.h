/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The aten operators that training code reaches: what each allocates, what
 * its autograd node saves, and its derivative.  Rules: torch 2.14.1
 * derivatives.yaml (gradients are computed in the alphabetical order of the
 * argument names), native/ and meta registrations; shapes and strides follow
 * TensorIterator and view rules. */
#ifndef MEMPLAN_ATEN_H
#define MEMPLAN_ATEN_H

#include "kernel/tape.h"

#define SHAPE(...) ((const size_ref[]){ __VA_ARGS__ })

/* ---- view.c */
bool tensor_is_contiguous(struct tape *t, tensor_id x);
bool tensor_is_dense(struct tape *t, tensor_id x);          /* non-overlapping and dense */
void tensor_dense_strides(struct tape *t, tensor_id x, uint64_t *out);   /* of a new tensor laid out like x */
size_ref tensor_numel(struct tape *t, tensor_id x);
bool tensor_same_shape(struct tape *t, tensor_id x, tensor_id y);
tensor_id aten_reshape(struct tape *t, tensor_id x, unsigned ndim, const size_ref *dims);   /* a view where strides allow, else a clone */
tensor_id aten_flatten(struct tape *t, tensor_id x);        /* [..., n] -> [rows, n] */
tensor_id aten_transpose(struct tape *t, tensor_id x, unsigned i, unsigned j);
tensor_id aten_expand(struct tape *t, tensor_id x, unsigned ndim, const size_ref *dims);    /* same or leading new dims */
tensor_id aten_slice(struct tape *t, tensor_id x, unsigned dim, size_ref len);
tensor_id aten_select(struct tape *t, tensor_id x, unsigned dim);            /* one index of a dimension, which goes */
void aten_unbind(struct tape *t, tensor_id x, tensor_id *out);      /* all indices of the first dimension */
void aten_split(struct tape *t, tensor_id x, unsigned dim, unsigned n, const size_ref *len, tensor_id *out);
tensor_id aten_contiguous(struct tape *t, tensor_id x);
tensor_id aten_clone(struct tape *t, tensor_id x);          /* preserves strides */
tensor_id aten_cat(struct tape *t, tensor_id x, tensor_id y, unsigned dim);
tensor_id aten_cat_list(struct tape *t, const tensor_id *x, size_t nx, unsigned dim);
tensor_id aten_stack_last(struct tape *t, tensor_id x, tensor_id y);         /* along a new last dimension */
tensor_id aten_pad_last(struct tape *t, tensor_id x, uint64_t multiple);   /* last dimension up to a multiple; x itself when it is one */
tensor_id aten_detach(struct tape *t, tensor_id x);

/* ---- pointwise.c: type promotion and broadcasting as TensorIterator does */
tensor_id aten_add(struct tape *t, tensor_id x, tensor_id y);
tensor_id aten_sub(struct tape *t, tensor_id x, tensor_id y);
tensor_id aten_mul(struct tape *t, tensor_id x, tensor_id y);
tensor_id aten_add_(struct tape *t, tensor_id x, tensor_id y);       /* in place */
tensor_id aten_div_(struct tape *t, tensor_id x, tensor_id y);
tensor_id aten_mul_scalar_(struct tape *t, tensor_id x);
tensor_id aten_div_scalar_(struct tape *t, tensor_id x);
tensor_id aten_add_scalar(struct tape *t, tensor_id x);
tensor_id aten_mul_scalar(struct tape *t, tensor_id x);
tensor_id aten_div_scalar(struct tape *t, tensor_id x);
tensor_id aten_pow(struct tape *t, tensor_id x);            /* exponents other than 0 and 1 */
tensor_id aten_rsqrt(struct tape *t, tensor_id x);
tensor_id aten_neg(struct tape *t, tensor_id x);
tensor_id aten_cast(struct tape *t, tensor_id x, enum dtype dt);   /* x itself when it has that dtype */
tensor_id aten_mean(struct tape *t, tensor_id x);           /* of all elements */
tensor_id aten_repeat(struct tape *t, tensor_id x, unsigned ndim, const size_ref *dims);   /* dims: of the result */
tensor_id aten_sum_first(struct tape *t, tensor_id x);      /* over the first dimension, which goes */
tensor_id aten_mean_last(struct tape *t, tensor_id x);      /* over the last dimension, kept */
tensor_id aten_sum(struct tape *t, tensor_id x, unsigned dim, bool keep);   /* over one dimension */
tensor_id aten_sum_to_size(struct tape *t, tensor_id x, tensor_id like);
/* One tensor in, one out; the node saves the input or the result. */
enum aten_unary { UNARY_SILU, UNARY_GELU, UNARY_TANH, UNARY_RELU, UNARY_SIGMOID };
tensor_id aten_unary(struct tape *t, enum aten_unary op, tensor_id x);
/* An op without gradient: index arithmetic, masks. */
tensor_id aten_new(struct tape *t, const char *op, enum dtype dt, unsigned ndim, const size_ref *dims,
		   tensor_id r0, tensor_id r1);

/* ---- matmul.c */
/* torch.nn.functional.linear: x [..., in], weight [out, in], bias [out] or NO_TENSOR.  Autocast casts all three. */
tensor_id aten_linear(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias);
/* transformers Conv1D: addmm with weight [in, out]. */
tensor_id aten_conv1d(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias);
tensor_id aten_bmm(struct tape *t, tensor_id x, tensor_id y);
tensor_id aten_matmul_transposed(struct tape *t, tensor_id x, tensor_id weight);     /* x @ weight.T */
/* batched x [.., m, k] times y [.., k, n] as torch.matmul does it; one y may serve all heads of x. */
tensor_id aten_matmul(struct tape *t, tensor_id x, tensor_id y);
/* beta * bias + alpha * x y, alpha other than 1; the bias needs no gradient. */
tensor_id aten_baddbmm(struct tape *t, tensor_id bias, tensor_id x, tensor_id y);
tensor_id aten_autocast(struct tape *t, tensor_id x);       /* to the low-precision dtype under autocast; weights are cached */
tensor_id aten_autocast_fp32(struct tape *t, tensor_id x);
void aten_autocast_exit(struct tape *t);                    /* the outermost context ends: cached casts are dropped */

/* ---- grouped.c */
/* x [rows, k] sorted by group, weight [groups, n, k], offsets [groups]: the end of each group's rows. */
tensor_id aten_grouped_mm(struct tape *t, tensor_id x, tensor_id weight, tensor_id offsets);

/* ---- index.c */
tensor_id aten_topk(struct tape *t, tensor_id x, size_ref k, tensor_id *index);     /* along the last dimension */
tensor_id aten_gather(struct tape *t, tensor_id x, tensor_id index);
tensor_id aten_index(struct tape *t, tensor_id x, tensor_id index);         /* x[index]: rows */
tensor_id aten_index_dim(struct tape *t, tensor_id x, tensor_id index, unsigned dim);
/* x[i, j, None] of a matrix; `pair` holds both positions */
tensor_id aten_index_pair(struct tape *t, tensor_id x, tensor_id pair);
tensor_id aten_index_add_(struct tape *t, tensor_id x, tensor_id index, tensor_id source);   /* in place, rows */
tensor_id aten_masked_fill_(struct tape *t, tensor_id x, tensor_id mask);   /* in place */
tensor_id aten_slice_step(struct tape *t, tensor_id x, uint64_t step);      /* of the last dimension */

/* ---- conv.c: a kernel as large as its stride; side: of the result's spatial dimensions */
tensor_id aten_patches(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias, size_ref side);

/* ---- nn.c */
tensor_id aten_embedding(struct tape *t, tensor_id weight, tensor_id ids);
tensor_id aten_layer_norm(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias);   /* both or the bias may be NO_TENSOR */
tensor_id aten_rms_norm(struct tape *t, tensor_id x, tensor_id weight);     /* fused; composite when dtypes differ */
tensor_id aten_dropout(struct tape *t, tensor_id x, double p);
tensor_id aten_softmax(struct tape *t, tensor_id x, enum dtype out);        /* dtype= argument: x is cast first */
tensor_id aten_safe_softmax(struct tape *t, tensor_id x);
tensor_id aten_log_softmax(struct tape *t, tensor_id x);
tensor_id aten_nll_loss(struct tape *t, tensor_id logp, tensor_id target);

/* ---- attention.c: q [B,H,S,d], k and v [B,K,S,d]; a mask is additive, [B,1,S,S] or expanded */
tensor_id aten_sdpa_flash(struct tape *t, tensor_id q, tensor_id k, tensor_id v);
tensor_id aten_sdpa_efficient(struct tape *t, tensor_id q, tensor_id k, tensor_id v, tensor_id mask);
tensor_id aten_sdpa_cudnn(struct tape *t, tensor_id q, tensor_id k, tensor_id v, tensor_id mask);
tensor_id aten_sdpa_math(struct tape *t, tensor_id q, tensor_id k, tensor_id v, tensor_id mask, bool causal,
			 double dropout);

#endif
