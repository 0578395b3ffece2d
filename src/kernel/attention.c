/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Attention back ends as transformers 5.12 drives them (sdpa_attention.py,
 * eager_attention_forward). */
#include "kernel/rows.h"

/* repeat_kv: [B,K,S,d] -> [B,H,S,d]; the reshape of an expanded tensor copies */
static tensor_id repeat_kv(struct build *b, tensor_id x, size_ref heads)
{
	struct tape *t = b->t;
	struct tensor v = *T(t, x);
	if (v.dim[1]->value == heads->value)
		return x;
	size_ref rep = size_ceil_div(b->a, heads, v.dim[1]), one = size_const(b->a, 1);
	tensor_id y = aten_reshape(t, x, 5, SHAPE(v.dim[0], v.dim[1], one, v.dim[2], v.dim[3]));
	y = aten_expand(t, y, 5, SHAPE(v.dim[0], v.dim[1], rep, v.dim[2], v.dim[3]));
	return aten_reshape(t, y, 4, SHAPE(v.dim[0], heads, v.dim[2], v.dim[3]));
}

/* attn_output.transpose(1, 2).contiguous() */
static tensor_id rows_first(struct build *b, tensor_id x)
{
	return aten_contiguous(b->t, aten_transpose(b->t, x, 1, 2));
}

/* ---- torch.nn.functional.scaled_dot_product_attention */

enum backend { FLASH, EFFICIENT, CUDNN, MATH };
enum { FLASH_MAX_HEAD = 256, FLASH_HEAD_MULTIPLE = 8, MASK_MULTIPLE = 16 };

/* sdp_utils.cpp: flash takes no mask, no fp32, equal heads of at most 256; cuDNN no fp32; the memory-efficient
 * kernel no grouped heads */
static enum backend choose(struct build *b, enum backend want, tensor_id q, tensor_id k, tensor_id v, bool mask)
{
	const struct tensor *vq = T(b->t, q), *vk = T(b->t, k), *vv = T(b->t, v);
	bool fp32 = vq->dtype == DT_FP32;
	if (want == FLASH && (mask || fp32 || vv->dim[3]->value != vq->dim[3]->value ||
			      vq->dim[3]->value > FLASH_MAX_HEAD))
		want = EFFICIENT;
	if (want == CUDNN && fp32)
		want = EFFICIENT;
	return want == EFFICIENT && vk->dim[1]->value != vq->dim[1]->value ? MATH : want;
}

/* A boolean mask becomes an additive one in the dtype of q. */
static tensor_id additive_mask(struct build *b, tensor_id mask, enum dtype dt)
{
	struct tape *t = b->t;
	if (mask < 0 || T(t, mask)->dtype != DT_BOOL)
		return mask;
	size_ref dims[4] = { b->B, size_const(b->a, 1), b->S, b->S };
	tensor_id low = aten_new(t, "full", dt, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id zero = aten_new(t, "scalar_tensor", dt, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id y = aten_new(t, "where", dt, 4, dims, mask, zero);
	tape_hold(t, low);
	return y;
}

/* Heads whose width is no multiple of eight are padded. */
static tensor_id flash_padded(struct build *b, tensor_id q, tensor_id k, tensor_id v)
{
	struct tape *t = b->t;
	size_ref d = T(t, q)->dim[3];
	q = aten_pad_last(t, q, FLASH_HEAD_MULTIPLE);
	k = aten_pad_last(t, k, FLASH_HEAD_MULTIPLE);
	v = aten_pad_last(t, v, FLASH_HEAD_MULTIPLE);
	tensor_id y = aten_sdpa_flash(t, q, k, v);
	return T(t, y)->dim[3]->value == d->value ? y : aten_slice(t, y, 3, d);
}

/* The kernel reads rows of the mask at multiples of 16 elements. */
static tensor_id efficient_masked(struct build *b, tensor_id q, tensor_id k, tensor_id v, tensor_id mask)
{
	struct tape *t = b->t;
	if (mask >= 0) {
		size_ref heads = T(t, q)->dim[1], len = T(t, mask)->dim[3];
		mask = aten_pad_last(t, mask, MASK_MULTIPLE);
		if (T(t, mask)->dim[3]->value != len->value)
			mask = aten_slice(t, mask, 3, len);
		mask = aten_expand(t, mask, 4, SHAPE(b->B, heads, b->S, b->S));
	}
	return aten_sdpa_efficient(t, q, k, v, mask);
}

/* grouped: enable_gqa; without it heads that differ in number are broadcast, which only plain operators do */
static tensor_id sdpa(struct build *b, const struct attention_in *x, enum backend want, tensor_id k, tensor_id v,
		      bool grouped)
{
	struct tape *t = b->t;
	tensor_id q = aten_autocast(t, x->q);
	k = aten_autocast(t, k);
	v = aten_autocast(t, v);
	bool broadcast = !grouped && T(t, k)->dim[1]->value != T(t, q)->dim[1]->value;
	enum backend backend = broadcast ? MATH : choose(b, want, q, k, v, x->mask >= 0);
	if (backend == MATH && grouped) {  /* repeat_interleave */
		k = repeat_kv(b, k, T(t, q)->dim[1]);
		v = repeat_kv(b, v, T(t, q)->dim[1]);
	}
	tensor_id mask = additive_mask(b, aten_autocast(t, x->mask), (enum dtype)T(t, q)->dtype), y;
	switch (backend) {
	case FLASH: y = flash_padded(b, q, k, v); break;
	case EFFICIENT: y = efficient_masked(b, q, k, v, mask); break;
	case CUDNN: y = aten_sdpa_cudnn(t, q, k, v, mask); break;
	default: y = aten_sdpa_math(t, q, k, v, mask, x->causal && mask < 0, x->dropout); break;
	}
	tape_holdv(t, (tensor_id[]){ q, k, v, mask }, 4);
	return y;
}

/* sdpa_attention_forward: grouped heads go to the kernel as they are only when there is no mask */
static tensor_id sdpa_attention(struct build *b, const struct attention_in *x, enum backend want)
{
	size_ref heads = T(b->t, x->q)->dim[1];
	tensor_id k = x->k, v = x->v;
	if (x->mask >= 0) {
		k = repeat_kv(b, k, heads);
		v = repeat_kv(b, v, heads);
	}
	tensor_id y = rows_first(b, sdpa(b, x, want, k, v, true));
	tape_holdv(b->t, (tensor_id[]){ k, v }, 2);
	return y;
}

tensor_id attention_flash(struct build *b, const struct attention_in *x)
{
	return sdpa_attention(b, x, FLASH);
}

tensor_id attention_efficient(struct build *b, const struct attention_in *x)
{
	return sdpa_attention(b, x, EFFICIENT);
}

tensor_id attention_cudnn(struct build *b, const struct attention_in *x)
{
	return sdpa_attention(b, x, CUDNN);
}

tensor_id attention_math(struct build *b, const struct attention_in *x)
{
	return sdpa_attention(b, x, MATH);
}

static enum backend backend_of(const struct kernel_row *row)
{
	static const struct { attention_fn *emit; enum backend backend; } rows[] = {
		{ attention_efficient, EFFICIENT }, { attention_cudnn, CUDNN }, { attention_math, MATH },
	};
	for (size_t i = 0; i < COUNT(rows); i++)
		if ((attention_fn *)row->emit == rows[i].emit)
			return rows[i].backend;
	return FLASH;
}

tensor_id emit_sdpa(struct build *b, const struct attention_in *x)
{
	const struct kernel_row *row = kernel_row(b->spec, K_ATTENTION);
	const char *rule = set_rule(b, row->source);
	label(b, "attention");
	tensor_id y = rows_first(b, sdpa(b, x, backend_of(row), x->k, x->v, false));
	set_rule(b, rule);
	return y;
}

/* ---- eager */

tensor_id attention_eager(struct build *b, const struct attention_in *x)
{
	struct tape *t = b->t;
	size_ref heads = T(t, x->q)->dim[1];
	tensor_id k = repeat_kv(b, x->k, heads), v = repeat_kv(b, x->v, heads);
	tensor_id w = aten_mul_scalar(t, aten_matmul(t, x->q, aten_transpose(t, k, 2, 3)));
	if (x->softcap > 0)
		w = aten_mul_scalar(t, aten_unary(t, UNARY_TANH, aten_div_scalar(t, w)));
	if (x->mask >= 0)
		w = aten_add(t, w, x->mask);
	tensor_id scores = w;
	w = aten_cast(t, aten_softmax(t, scores, DT_FP32), (enum dtype)T(t, x->q)->dtype);
	tape_hold(t, scores);
	w = aten_dropout(t, w, x->dropout);
	tensor_id y = rows_first(b, aten_matmul(t, w, v));
	tape_holdv(t, (tensor_id[]){ k, v }, 2);
	b->weights = w;
	return y;
}

tensor_id emit_attention(struct build *b, const struct attention_in *x)
{
	const struct kernel_row *row = kernel_row(b->spec, K_ATTENTION);
	const char *rule = set_rule(b, row->source);
	label(b, "attention");
	tensor_id y = ((attention_fn *)row->emit)(b, x);
	set_rule(b, rule);
	return y;
}

bool attention_is_eager(const struct build *b)
{
	return (attention_fn *)kernel_row(b->spec, K_ATTENTION)->emit == attention_eager;
}

/* ---- projections */

/* [B,S,n·d] -> [B,n,S,d] */
static tensor_id to_heads(struct build *b, tensor_id x, size_ref n)
{
	return aten_transpose(b->t, aten_reshape(b->t, x, 4, SHAPE(b->B, b->S, n, b->d.d)), 1, 2);
}

static tensor_id head_norm(struct layer *l, const char *name, tensor_id x)
{
	return emit_norm(l->b, name, x, layer_param(l, arena_printf(l->b->a, "%s.weight", name)), NO_TENSOR);
}

struct qkv { tensor_id q, k, v, whole; };

static tensor_id q_proj(struct layer *l, tensor_id x)
{
	return emit_linear(l, "self_attn.q_proj", x);
}

static tensor_id k_proj(struct layer *l, tensor_id x)
{
	return emit_linear(l, "self_attn.k_proj", x);
}

static tensor_id v_proj(struct layer *l, tensor_id x)
{
	return emit_linear(l, "self_attn.v_proj", x);
}

/* Llama, Mistral, Qwen2, Gemma; Gemma-3 then normalises each head */
static struct qkv qkv_split(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct qkv y = { .whole = NO_TENSOR };
	y.q = to_heads(b, q_proj(l, x), b->d.H);
	y.k = to_heads(b, k_proj(l, x), b->d.K);
	y.v = to_heads(b, v_proj(l, x), b->d.K);
	if (b->m->qk_norm == QKNORM_HEAD) {
		y.q = head_norm(l, "self_attn.q_norm", y.q);
		y.k = head_norm(l, "self_attn.k_norm", y.k);
	}
	return y;
}

/* Qwen3Attention: each projection is normalised before the next */
static struct qkv qkv_head_norm(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	struct qkv y = { .whole = NO_TENSOR };
	y.q = head_norm(l, "self_attn.q_norm", aten_reshape(t, q_proj(l, x), 4, SHAPE(b->B, b->S, b->d.H, b->d.d)));
	y.q = aten_transpose(t, y.q, 1, 2);
	y.k = head_norm(l, "self_attn.k_norm", aten_reshape(t, k_proj(l, x), 4, SHAPE(b->B, b->S, b->d.K, b->d.d)));
	y.k = aten_transpose(t, y.k, 1, 2);
	y.v = to_heads(b, v_proj(l, x), b->d.K);
	return y;
}

/* Olmo2Attention: norms over the full width of q and k */
static struct qkv qkv_full_norm(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct qkv y = { .whole = NO_TENSOR };
	y.q = head_norm(l, "self_attn.q_norm", q_proj(l, x));
	y.k = head_norm(l, "self_attn.k_norm", k_proj(l, x));
	y.v = v_proj(l, x);
	y.q = to_heads(b, y.q, b->d.H);
	y.k = to_heads(b, y.k, b->d.K);
	y.v = to_heads(b, y.v, b->d.K);
	return y;
}

/* Phi3Attention: slices of one projection */
static struct qkv qkv_fused(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	struct qkv y;
	y.whole = emit_linear(l, "self_attn.qkv_proj", x);
	y.q = aten_slice(t, y.whole, 2, b->d.q);
	y.k = aten_slice(t, y.whole, 2, b->d.kv);
	y.v = aten_slice(t, y.whole, 2, b->d.kv);
	y.q = to_heads(b, y.q, b->d.H);
	y.k = to_heads(b, y.k, b->d.K);
	y.v = to_heads(b, y.v, b->d.K);
	return y;
}

static struct qkv emit_qkv(struct layer *l, tensor_id x)
{
	const struct model *m = l->b->m;
	if (m->family->qkv == QKV_FUSED)
		return qkv_fused(l, x);
	if (m->qk_norm == QKNORM_FULL)
		return qkv_full_norm(l, x);
	return m->qk_norm == QKNORM_HEAD && !m->family->local_rope ? qkv_head_norm(l, x) : qkv_split(l, x);
}

/* LlamaAttention.forward */
tensor_id emit_attention_block(struct layer *l, tensor_id x)
{
	struct build *b = l->b;
	if (b->m->kv_lora > 0)
		return emit_latent_attention(l, x);
	struct qkv y = emit_qkv(l, x);
	emit_rope(b, &y.q, &y.k, l->sliding);
	struct attention_in in = { y.q, y.k, y.v, b->in.mask[l->sliding], true, b->m->dropout_attn, b->m->attn_softcap };
	tensor_id o = emit_attention(b, &in);
	o = aten_reshape(b->t, o, 3, SHAPE(b->B, b->S, b->d.q));
	tensor_id z = emit_linear(l, "self_attn.o_proj", o);
	tape_holdv(b->t, (tensor_id[]){ o, y.v, y.k, y.q, y.whole }, 5);
	return z;
}
