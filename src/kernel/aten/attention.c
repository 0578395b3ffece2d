/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Scaled dot-product attention back ends.  Outputs of the
 * memory-efficient kernel lie in memory as [B,S,H,d], those of the others
 * like q; workspaces are those of the CUDA kernels (flash_api.cpp,
 * mem_eff_attention, torch 2.14.1). */
#include "kernel/aten/aten.h"

struct heads { size_ref B, H, K, S, Sk, d, dv; };

static struct heads heads(struct tape *t, tensor_id q, tensor_id k, tensor_id v)
{
	const struct tensor *a = T(t, q), *b = T(t, k);
	return (struct heads){ a->dim[0], a->dim[1], b->dim[1], a->dim[2], b->dim[2], a->dim[3], T(t, v)->dim[3] };
}

static uint64_t attention_flops(const struct heads *x)
{
	uint64_t n = mul_u64(mul_u64(x->B->value, x->H->value), mul_u64(x->S->value, x->Sk->value));
	return mul_u64(n, 2 * (x->d->value + x->dv->value));
}

/* [B,H,S,d] in [B,S,H,d] memory */
static tensor_id bshd(struct tape *t, enum dtype dt, size_ref B, size_ref H, size_ref S, size_ref d)
{
	tensor_id x = tape_tensor(t, dt, 4, SHAPE(B, H, S, d));
	T(t, x)->stride[0] = H->value * S->value * d->value;
	T(t, x)->stride[1] = d->value;
	T(t, x)->stride[2] = H->value * d->value;
	return x;
}

static size_ref mul4(struct tape *t, size_ref a, size_ref b, size_ref c, size_ref d)
{
	return size_mul(t->a, size_mul(t->a, a, b), size_mul(t->a, c, d));
}

/* ---- flash */

static size_t flash_hidden(struct tape *t, const struct heads *x, enum dtype dt, tensor_id *w)
{
	size_ref rows = size_round_up(t->a, x->S, 128), one = size_const(t->a, 1);
	size_t n = 0;
	w[n++] = tape_workspace(t, DT_FP32, mul4(t, x->B, x->H, rows, one));                                /* softmax_d */
	w[n++] = tape_workspace(t, DT_FP32, mul4(t, x->B, x->H, rows, size_round_up(t->a, x->d, 32)));      /* dq_accum */
	if (x->H->value != x->K->value)
		for (int i = 0; i < 2; i++)                                                              /* dk, dv for all heads */
			w[n++] = tape_workspace(t, dt, mul4(t, x->B, x->H, x->Sk, x->d));
	return n;
}

/* saved: q, k, v, out, logsumexp, rng state (2) */
static void back_flash(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id w[8], r[8] = { grad[0] };
	struct heads x = heads(t, n->in[0], n->in[1], n->in[2]);
	for (size_t i = 0; i < 7; i++)
		r[1 + i] = node_saved(t, n, i);
	for (int i = 0; i < 3; i++)
		w[i] = out[i] = tape_like(t, n->in[i], (enum dtype)T(t, n->in[i])->dtype);
	size_t k = flash_hidden(t, &x, (enum dtype)T(t, n->in[0])->dtype, w + 3);
	struct op *o = tape_op(t, "_scaled_dot_product_flash_attention_backward", r, 8, w, 3 + k);
	o->flops = attention_flops(&x) * 5 / 2;
}

tensor_id aten_sdpa_flash(struct tape *t, tensor_id q, tensor_id k, tensor_id v)
{
	tensor_id in[3] = { aten_autocast(t, q), aten_autocast(t, k), aten_autocast(t, v) };
	struct anode *n = node_begin(t, "ScaledDotProductFlashAttentionBackward0", back_flash, in, 3);
	struct heads x = heads(t, in[0], in[1], in[2]);
	enum dtype dt = (enum dtype)T(t, in[0])->dtype;
	for (int i = 0; i < 3; i++)
		node_save(t, n, in[i]);
	tensor_id y[4] = { tape_like(t, in[0], dt), tape_tensor(t, DT_FP32, 3, SHAPE(x.B, x.H, x.S)),
		tape_tensor(t, DT_INT64, 1, SHAPE(size_const(t->a, 2))), tape_scalar(t, DT_INT64) };
	tape_op(t, "_scaled_dot_product_flash_attention", in, 3, y, 4)->flops = attention_flops(&x);
	for (int i = 0; i < 4; i++)
		node_save(t, n, y[i]);
	node_end(t, n, y, 1);
	return y[0];
}

/* ---- memory-efficient */

static size_t efficient_hidden(struct tape *t, const struct heads *x, enum dtype dt, tensor_id *w)
{
	size_ref one = size_const(t->a, 1), rows = size_round_up(t->a, x->S, 64);
	size_t n = 0;
	w[n++] = tape_workspace(t, DT_FP32, mul4(t, x->B, x->H, x->S, one));                                /* delta */
	if (dt == DT_FP32)
		return n;
	size_ref acc = mul4(t, x->B, x->H, rows, x->d);                                                  /* dq in fp32 */
	if (x->d->value > 128 || x->dv->value > 128)
		acc = size_add(t->a, acc, mul4(t, x->B, x->H, size_round_up(t->a, x->Sk, 64),
					       size_add(t->a, x->d, x->dv)));                            /* dk, dv */
	w[n++] = tape_workspace(t, DT_FP32, acc);
	return n;
}

/* saved: q, k, v, [mask], out, logsumexp, seed, offset */
static void back_efficient(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id w[8], r[9] = { grad[0] };
	struct heads x = heads(t, n->in[0], n->in[1], n->in[2]);
	enum dtype dt = (enum dtype)T(t, n->in[0])->dtype;
	for (size_t i = 0; i < n->nsaved; i++)
		r[1 + i] = node_saved(t, n, i);
	w[0] = out[0] = bshd(t, dt, x.B, x.H, x.S, x.d);
	w[1] = out[1] = bshd(t, dt, x.B, x.K, x.Sk, x.d);
	w[2] = out[2] = bshd(t, dt, x.B, x.K, x.Sk, x.dv);
	size_t k = efficient_hidden(t, &x, dt, w + 3);
	struct op *o = tape_op(t, "_scaled_dot_product_efficient_attention_backward", r, 1u + n->nsaved, w, 3 + k);
	o->flops = attention_flops(&x) * 5 / 2;
}

static tensor_id sdpa_saved(struct tape *t, tensor_id *in, tensor_id mask, const char *op, back_fn *back,
			    size_ref lse_rows, bool cudnn)
{
	struct anode *n = node_begin(t, op, back, in, 3);
	struct heads x = heads(t, in[0], in[1], in[2]);
	for (int i = 0; i < 3; i++)
		node_save(t, n, in[i]);
	node_save(t, n, mask);
	enum dtype dt = (enum dtype)T(t, in[0])->dtype;
	bool like_q = cudnn && x.d->value == x.dv->value;      /* MHA.cpp alloc_with_matching_layout */
	tensor_id y[4] = { like_q ? tape_like(t, in[0], dt) : bshd(t, dt, x.B, x.H, x.S, x.dv),
		tape_tensor(t, DT_FP32, cudnn ? 4 : 3, SHAPE(x.B, x.H, lse_rows, size_const(t->a, 1))),
		tape_scalar(t, DT_INT64), tape_scalar(t, DT_INT64) };
	tensor_id r[4] = { in[0], in[1], in[2], mask };
	tape_op(t, op, r, 4, y, 4)->flops = attention_flops(&x);
	for (int i = 0; i < 4; i++)
		node_save(t, n, y[i]);
	node_end(t, n, y, 1);
	return y[0];
}

tensor_id aten_sdpa_efficient(struct tape *t, tensor_id q, tensor_id k, tensor_id v, tensor_id mask)
{
	tensor_id in[3] = { aten_autocast(t, q), aten_autocast(t, k), aten_autocast(t, v) };
	return sdpa_saved(t, in, mask, "_scaled_dot_product_efficient_attention", back_efficient,
			  size_round_up(t->a, T(t, q)->dim[2], 32), false);
}

/* ---- cuDNN: the plan's workspace is the library's own secret and not counted */

static void back_cudnn(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id r[9] = { grad[0] };
	struct heads x = heads(t, n->in[0], n->in[1], n->in[2]);
	for (size_t i = 0; i < n->nsaved; i++)
		r[1 + i] = node_saved(t, n, i);
	for (int i = 0; i < 3; i++)
		out[i] = tape_like(t, n->in[i], (enum dtype)T(t, n->in[i])->dtype);
	struct op *o = tape_op(t, "_scaled_dot_product_cudnn_attention_backward", r, 1u + n->nsaved, out, 3);
	o->flops = attention_flops(&x) * 5 / 2;
}

tensor_id aten_sdpa_cudnn(struct tape *t, tensor_id q, tensor_id k, tensor_id v, tensor_id mask)
{
	tensor_id in[3] = { aten_autocast(t, q), aten_autocast(t, k), aten_autocast(t, v) };
	return sdpa_saved(t, in, mask, "_scaled_dot_product_cudnn_attention", back_cudnn, T(t, q)->dim[2], true);
}

/* ---- math (attention.cpp _scaled_dot_product_attention_math): half precision is computed in fp32; q and k are each
 * scaled by the root of the scale */

static tensor_id causal_bias(struct tape *t, size_ref S, size_ref Sk, enum dtype dt)
{
	const size_ref *dims = SHAPE(S, Sk);
	tensor_id ones = aten_new(t, "ones", DT_BOOL, 2, dims, NO_TENSOR, NO_TENSOR);
	tensor_id tril = aten_new(t, "tril", DT_BOOL, 2, dims, ones, NO_TENSOR);
	tensor_id zero = aten_new(t, "scalar_tensor", dt, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id low = aten_new(t, "scalar_tensor", dt, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id y = aten_new(t, "where", dt, 2, dims, tril, zero);
	tape_hold(t, low);
	return y;
}

tensor_id aten_sdpa_math(struct tape *t, tensor_id q, tensor_id k, tensor_id v, tensor_id mask, bool causal,
			 double dropout)
{
	enum dtype dt = (enum dtype)T(t, q)->dtype;
	size_ref S = T(t, q)->dim[2], Sk = T(t, k)->dim[2];
	tensor_id up[3] = { aten_cast(t, q, DT_FP32), aten_cast(t, k, DT_FP32), aten_cast(t, v, DT_FP32) };
	tensor_id qs = aten_mul_scalar(t, up[0]);
	if (causal)
		mask = causal_bias(t, S, Sk, DT_FP32);
	tensor_id ks = aten_mul_scalar(t, aten_transpose(t, up[1], 2, 3));
	tensor_id w = aten_matmul(t, qs, ks);
	if (mask >= 0)
		w = aten_add(t, w, mask);
	w = aten_dropout(t, aten_safe_softmax(t, w), dropout);
	tensor_id low = aten_cast(t, w, dt);   /* the second result */
	tensor_id y = aten_cast(t, aten_matmul(t, w, up[2]), dt);
	tape_holdv(t, (tensor_id[]){ mask, qs, ks, up[2], up[1], up[0], low }, 7);
	return y;
}
