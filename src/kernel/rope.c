/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Positions: rotary embedding as transformers and Liger apply it. */
#include "kernel/rows.h"

/* modeling_llama.py rotate_half: cat((-x2, x1)) of the two halves */
static tensor_id rotate_half(struct build *b, tensor_id x)
{
	struct tape *t = b->t;
	size_ref d = T(t, x)->dim[3], half = size_ceil_div(b->a, d, size_const(b->a, 2));
	tensor_id x1 = aten_slice(t, x, 3, half), x2 = aten_slice(t, x, 3, half);
	tensor_id in[2] = { aten_neg(t, x2), x1 };
	tensor_id y = aten_cat(t, in[0], in[1], 3);
	T(t, y)->dim[3] = d;
	return y;
}

/* (x * cos) + (rotate_half(x) * sin) */
static tensor_id rotate(struct build *b, tensor_id x, tensor_id cos, tensor_id sin)
{
	struct tape *t = b->t;
	tensor_id a = aten_mul(t, x, cos);
	return aten_add(t, a, aten_mul(t, rotate_half(b, x), sin));
}

/* modeling_phi3.py: q and k are sliced, even where the whole head is rotated, and joined again */
struct halves { tensor_id rotated, rest; };

static struct halves slice_head(struct build *b, tensor_id x)
{
	size_ref d = T(b->t, x)->dim[3];
	bool whole = d->value == b->rotary->value;
	struct halves y = { aten_slice(b->t, x, 3, b->rotary), NO_TENSOR };
	y.rest = aten_slice(b->t, x, 3, whole ? size_const(b->a, 0) : size_sub(b->a, d, b->rotary));
	return y;
}

static tensor_id join(struct build *b, tensor_id rotated, tensor_id rest, size_ref d)
{
	tensor_id y = aten_cat(b->t, rotated, rest, 3);
	T(b->t, y)->dim[3] = d;
	return y;
}

static void rotate_sliced(struct build *b, tensor_id *q, tensor_id *k, tensor_id cos, tensor_id sin)
{
	size_ref d = T(b->t, *q)->dim[3];
	struct halves hq = slice_head(b, *q);
	struct halves hk = slice_head(b, *k);
	*q = join(b, rotate(b, hq.rotated, cos, sin), hq.rest, d);
	*k = join(b, rotate(b, hk.rotated, cos, sin), hk.rest, d);
}

/* modeling_glm4_moe.py, modeling_gpt_neox.py: part of each head; both are rotated before they are joined */
static struct rotated rotate_part(struct build *b, tensor_id q, tensor_id k, tensor_id cos, tensor_id sin)
{
	size_ref d = T(b->t, q)->dim[3];
	struct halves hq = slice_head(b, q), hk = slice_head(b, k);
	struct rotated y = { .q_front = rotate(b, hq.rotated, cos, sin) };
	y.k_front = rotate(b, hk.rotated, cos, sin);
	y.q = join(b, y.q_front, hq.rest, d);
	y.k = join(b, y.k_front, hk.rest, d);
	return y;
}

/* modeling_olmo2.py: fp32 angles, the results go back to the dtypes of q and k */
static void rotate_whole(struct build *b, tensor_id *q, tensor_id *k, tensor_id cos, tensor_id sin)
{
	struct tape *t = b->t;
	enum dtype dq = (enum dtype)T(t, *q)->dtype, dk = (enum dtype)T(t, *k)->dtype;
	tensor_id rq = rotate(b, *q, cos, sin), rk = rotate(b, *k, cos, sin);
	bool cast = b->m->family->rope == ROPE_FP32;
	*q = cast ? aten_cast(t, rq, dq) : rq;
	*k = cast ? aten_cast(t, rk, dk) : rk;
	tape_holdv(t, (tensor_id[]){ rq, rk }, 2);
}

/* cos.unsqueeze(1) */
static tensor_id unsqueezed(struct build *b, tensor_id cos)
{
	struct tensor c = *T(b->t, cos);
	return aten_reshape(b->t, cos, 4, SHAPE(c.dim[0], size_const(b->a, 1), c.dim[1], c.dim[2]));
}

/* Classes of LAYOUT_NEOX cut heads even where the whole is rotated. */
void rope_torch(struct build *b, tensor_id *q, tensor_id *k, tensor_id cos, tensor_id sin)
{
	bool part = T(b->t, *q)->dim[3]->value != b->rotary->value || b->m->family->layout == LAYOUT_NEOX;
	tensor_id old[2] = { *q, *k };
	cos = unsqueezed(b, cos);
	sin = unsqueezed(b, sin);
	if (b->m->family->rope == ROPE_SLICED) {
		rotate_sliced(b, q, k, cos, sin);
	} else if (part) {
		struct rotated y = rotate_part(b, *q, *k, cos, sin);
		*q = y.q;
		*k = y.k;
	} else {
		rotate_whole(b, q, k, cos, sin);
	}
	tape_holdv(b->t, old, 2);
}

struct rotated emit_rope_part(struct build *b, tensor_id q, tensor_id k)
{
	label(b, "rope");
	return rotate_part(b, q, k, unsqueezed(b, b->in.cos[0]), unsqueezed(b, b->in.sin[0]));
}

/* ---- Liger ops/rope.py: q and k, gradients too, are rotated in place as [B,S,H,d] rows, copied first where they
 * are not laid out so; the node remembers cos and sin */

static tensor_id rows_view(struct tape *t, tensor_id x)
{
	enum tape_mode mode = t->mode;
	t->mode = TAPE_NOGRAD;
	tensor_id y = aten_transpose(t, aten_contiguous(t, aten_transpose(t, x, 1, 2)), 1, 2);
	t->mode = mode;
	return y;
}

static void back_liger_rope(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	tensor_id r[4] = { NO_TENSOR, NO_TENSOR, node_saved(t, n, 0), node_saved(t, n, 1) };
	for (int i = 0; i < 2; i++)
		r[i] = out[i] = rows_view(t, grad[i]);
	tape_op(t, "liger_rope_backward", r, 4, out, 2);
}

void rope_liger(struct build *b, tensor_id *q, tensor_id *k, tensor_id cos, tensor_id sin)
{
	struct tape *t = b->t;
	if (T(t, *q)->dim[3]->value != b->rotary->value) {     /* the kernel rotates whole heads */
		rope_torch(b, q, k, cos, sin);
		return;
	}
	tensor_id in[2] = { *q, *k }, out[2];
	struct anode *n = node_begin(t, "LigerRopeFunctionBackward", back_liger_rope, in, 2);
	node_save(t, n, cos);
	node_save(t, n, sin);
	out[0] = rows_view(t, in[0]);
	out[1] = rows_view(t, in[1]);
	tensor_id r[4] = { out[0], out[1], cos, sin };
	tape_op(t, "liger_rope", r, 4, out, 2);
	node_end(t, n, out, 2);
	tape_holdv(t, in, 2);
	*q = out[0];
	*k = out[1];
}

/* ---- torchtitan models/common/rope.py ComplexRoPE (b5bcd76): q and k in fp32 as complex numbers times a cached
 * e^(i·angle); a complex pair is two fp32 numbers here, which takes the same bytes */

void rope_complex(struct build *b, tensor_id *q, tensor_id *k, tensor_id cos, tensor_id sin)
{
	struct tape *t = b->t;
	tensor_id *x[2] = { q, k }, up[2], y[2], old[2] = { *q, *k };
	(void)sin;
	for (int i = 0; i < 2; i++)
		up[i] = aten_cast(t, *x[i], DT_FP32);
	for (int i = 0; i < 2; i++)
		y[i] = aten_mul(t, up[i], cos);
	for (int i = 0; i < 2; i++)
		*x[i] = aten_cast(t, y[i], (enum dtype)T(t, old[i])->dtype);
	tape_holdv(t, up, 2);
	tape_holdv(t, y, 2);
	tape_holdv(t, old, 2);
}

/* The cache is a buffer of the model, made for seq_len positions. */
static bool cached_angles(struct build *b)
{
	return b->m->kv_lora == 0 && kernel_row(b->spec, K_ROPE)->emit == (void (*)(void))rope_complex;
}

void add_angles(struct build *b, unsigned kinds)
{
	size_ref one = size_const(b->a, 1), half = size_ceil_div(b->a, b->rotary, size_const(b->a, 2));
	for (unsigned i = 0; i < 2 * kinds && !cached_angles(b); i++)
		add_buffer(b, "rotary inv_freq", DT_FP32, 1, &half, 1);
	for (unsigned i = 0; i < kinds && cached_angles(b); i++)
		b->angles[i] = add_buffer(b, "rotary cache", DT_FP32, 4, SHAPE(one, one, b->S, b->rotary), 1);
}

bool local_angles(const struct build *b, bool sliding)
{
	return sliding && b->in.cos[1] >= 0;
}

void emit_rope(struct build *b, tensor_id *q, tensor_id *k, bool sliding)
{
	int which = local_angles(b, sliding);
	const struct kernel_row *row = kernel_row(b->spec, K_ROPE);
	const char *rule = set_rule(b, row->source);
	label(b, "rope");
	((rope_fn *)row->emit)(b, q, k, b->in.cos[which], b->in.sin[which]);
	set_rule(b, rule);
}

/* The part of a head that is rotated: an even number, as int(head_dim * partial_rotary_factor) of pairs. */
size_ref rotary_width(struct build *b)
{
	if (b->m->kv_lora > 0)
		return b->d.dr;
	uint64_t d = (uint64_t)((double)b->d.d->value * b->m->rotary_fraction);
	return d == b->d.d->value ? b->d.d : size_dim(b->a, "r", d, "rotated part of a head");
}

/* modeling_llama.py LlamaRotaryEmbedding.forward: fp32 angles, cos and sin in the dtype of the hidden states;
 * OLMo's keep fp32 */
static void emit_cos_sin(struct build *b, int which, enum dtype dt)
{
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1), half = size_ceil_div(b->a, b->rotary, size_const(b->a, 2));
	struct tensor pos = *T(t, b->in.position_ids);
	size_ref rows = pos.dim[0];
	size_ref emb_dims[3] = { rows, b->S, b->rotary };
	label(b, "rotary embedding");
	tensor_id p = aten_new(t, "_to_copy", DT_FP32, 3, SHAPE(rows, one, b->S), b->in.position_ids, NO_TENSOR);
	tensor_id freqs = aten_new(t, "bmm", DT_FP32, 3, SHAPE(rows, half, b->S), p, NO_TENSOR);
	tensor_id emb = aten_new(t, "cat", DT_FP32, 3, emb_dims, freqs, NO_TENSOR);
	tensor_id c = aten_new(t, "mul", DT_FP32, 3, emb_dims,
			       aten_new(t, "cos", DT_FP32, 3, emb_dims, emb, NO_TENSOR), NO_TENSOR);
	tensor_id s = aten_new(t, "mul", DT_FP32, 3, emb_dims,
			       aten_new(t, "sin", DT_FP32, 3, emb_dims, emb, NO_TENSOR), NO_TENSOR);
	b->in.cos[which] = aten_cast(t, c, dt);
	b->in.sin[which] = aten_cast(t, s, dt);
	tape_holdv(t, (tensor_id[]){ s, c, emb, freqs, p }, 5);
}

/* DeepseekV2RotaryEmbedding.forward: torch.polar(ones, freqs); a complex number is two of fp32 here */
static void emit_polar(struct build *b)
{
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1), half = size_ceil_div(b->a, b->rotary, size_const(b->a, 2));
	size_ref rows = T(t, b->in.position_ids)->dim[0], dims[3] = { rows, b->S, b->rotary };
	label(b, "rotary embedding");
	tensor_id p = aten_new(t, "_to_copy", DT_FP32, 3, SHAPE(rows, one, b->S), b->in.position_ids, NO_TENSOR);
	tensor_id freqs = aten_new(t, "bmm", DT_FP32, 3, SHAPE(rows, half, b->S), p, NO_TENSOR);
	tensor_id ones = aten_new(t, "ones_like", DT_FP32, 3, SHAPE(rows, half, b->S), freqs, NO_TENSOR);
	tensor_id polar = aten_new(t, "polar", DT_FP32, 3, dims, ones, freqs);
	b->in.cos[0] = aten_new(t, "mul", DT_FP32, 3, dims, polar, NO_TENSOR);
	tape_holdv(t, (tensor_id[]){ freqs, p }, 2);
}

void emit_position_ids(struct build *b)
{
	struct tape *t = b->t;
	size_ref dims[2] = { size_const(b->a, 1), b->S };
	label(b, "position ids");
	if (b->batch_positions >= 0) {
		b->in.position_ids = b->batch_positions;
		return;
	}
	tensor_id r = aten_new(t, "arange", DT_INT64, 2, dims, NO_TENSOR, NO_TENSOR);
	b->in.position_ids = aten_new(t, "add", DT_INT64, 2, dims, r, NO_TENSOR);
}

void emit_rotary(struct build *b, tensor_id embedded, unsigned kinds)
{
	enum dtype dt = b->m->family->rope == ROPE_FP32 ? DT_FP32 : (enum dtype)T(b->t, embedded)->dtype;
	for (unsigned i = 0; i < kinds; i++)
		if (cached_angles(b))
			b->in.cos[i] = b->in.sin[i] = b->angles[i];
		else if (b->m->family->rope == ROPE_COMPLEX)
			emit_polar(b);
		else
			emit_cos_sin(b, (int)i, dt);
}
