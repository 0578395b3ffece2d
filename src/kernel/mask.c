/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Attention masks as transformers 5.12.1 masking_utils.py builds them, once
 * per forward.  SDPA is causal by itself and gets none unless a window is
 * shorter than the sequence; eager attention always gets one in floating
 * point. */
#include "kernel/rows.h"

/* torch.arange(n) + offset */
static tensor_id positions(struct build *b, size_ref n)
{
	tensor_id r = aten_new(b->t, "arange", DT_INT64, 1, &n, NO_TENSOR, NO_TENSOR);
	return aten_new(b->t, "add", DT_INT64, 1, &n, r, NO_TENSOR);
}

/* Positions of queries and keys, a padding mask [B,S], and the shape of what compares them. */
struct compared { tensor_id q, kv, padding; size_ref dims[4]; };
typedef tensor_id mask_fn(struct build *b, const struct compared *c);

/* result & mask */
static tensor_id both(struct build *b, const struct compared *c, tensor_id result, tensor_id mask)
{
	return aten_new(b->t, "bitwise_and", DT_BOOL, 4, c->dims, result, mask);
}

/* kv <= q */
static tensor_id causal(struct build *b, const struct compared *c)
{
	size_ref one = size_const(b->a, 1);
	return aten_new(b->t, "le", DT_BOOL, 4, SHAPE(one, one, b->S, b->S), c->kv, c->q);
}

/* and_masks(sliding_window_overlay, causal_mask_function): a 1, then &= kv > q - window, then &= kv <= q */
static tensor_id sliding(struct build *b, const struct compared *c)
{
	struct tape *t = b->t;
	tensor_id y = aten_new(t, "new_ones", DT_BOOL, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id first = aten_new(t, "sub", DT_INT64, 1, &b->S, c->q, NO_TENSOR);
	y = both(b, c, y, aten_new(t, "gt", DT_BOOL, 4, c->dims, c->kv, first));
	return both(b, c, y, causal(b, c));
}

/* and_masks(causal_mask_function, f) under vmap, where f says True: FalconModel asks for a mask that way */
static tensor_id overlaid(struct build *b, const struct compared *c)
{
	tensor_id y = aten_new(b->t, "new_ones", DT_BOOL, 1, &b->S, NO_TENSOR, NO_TENSOR);
	y = both(b, c, y, causal(b, c));
	return both(b, c, y, aten_new(b->t, "_to_copy", DT_BOOL, 0, NULL, NO_TENSOR, NO_TENSOR));
}

/* and_masks(causal_mask_function, padding_mask_function) */
static tensor_id padded(struct build *b, const struct compared *c)
{
	size_ref one = size_const(b->a, 1);
	struct compared all = *c;
	all.dims[0] = b->B;
	tensor_id y = aten_new(b->t, "new_ones", DT_BOOL, 0, NULL, NO_TENSOR, NO_TENSOR);
	y = both(b, c, y, causal(b, c));
	return both(b, &all, y, aten_new(b->t, "index", DT_BOOL, 4, SHAPE(b->B, one, one, b->S), c->padding, NO_TENSOR));
}

tensor_id emit_bool_mask(struct build *b, enum mask_kind kind, tensor_id padding)
{
	static mask_fn *const by_kind[] = {
		[MASK_CAUSAL] = causal, [MASK_SLIDING] = sliding, [MASK_OVERLAID] = overlaid, [MASK_PADDED] = padded,
	};
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1);
	tensor_id batch = aten_new(t, "arange", DT_INT64, 1, &b->B, NO_TENSOR, NO_TENSOR);
	tensor_id head = aten_new(t, "arange", DT_INT64, 1, &one, NO_TENSOR, NO_TENSOR);
	struct compared c = { .padding = padding, .dims = { one, one, b->S, b->S } };
	c.q = positions(b, b->S);
	c.kv = positions(b, b->S);
	tensor_id m = by_kind[kind](b, &c);
	tape_holdv(t, (tensor_id[]){ batch, head, c.q, c.kv }, 4);
	return aten_expand(t, m, 4, SHAPE(b->B, one, b->S, b->S));
}

tensor_id emit_float_mask(struct build *b, enum mask_kind kind, tensor_id padding, enum dtype dt)
{
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1), dims[4] = { b->B, one, b->S, b->S };
	tensor_id m = emit_bool_mask(b, kind, padding);
	tensor_id zero = aten_new(t, "empty", dt, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id low = aten_new(t, "scalar_tensor", dt, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id y = aten_new(t, "where", dt, 4, dims, m, low);
	tape_hold(t, zero);
	return y;
}

static tensor_id emit_mask(struct build *b, bool slides, enum dtype dt)
{
	enum mask_kind kind = slides ? MASK_SLIDING : MASK_CAUSAL;
	if (attention_is_eager(b))
		return emit_float_mask(b, kind, NO_TENSOR, dt);
	return slides && b->S->value >= b->m->sliding_window ? emit_bool_mask(b, kind, NO_TENSOR) : NO_TENSOR;
}

/* Mistral and Phi-3 make the one mask that all their layers use; the others a mapping of both kinds. */
void emit_masks(struct build *b, tensor_id embedded)
{
	const struct model *m = b->m;
	enum dtype dt = (enum dtype)T(b->t, embedded)->dtype;
	label(b, "attention mask");
	if (m->sliding_window == 0 || m->family->window != WINDOW_ALL)
		b->in.mask[0] = emit_mask(b, false, dt);
	if (m->sliding_window > 0)
		b->in.mask[1] = emit_mask(b, true, dt);
}
