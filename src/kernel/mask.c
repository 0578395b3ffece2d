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

/* and_masks(sliding_window_overlay, causal_mask_function): a 1, then &= kv > q - window, then &= kv <= q */
static tensor_id window_and_causal(struct build *b, tensor_id q, tensor_id kv, const size_ref *dims)
{
	struct tape *t = b->t;
	tensor_id ones = aten_new(t, "new_ones", DT_BOOL, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id first = aten_new(t, "sub", DT_INT64, 1, &b->S, q, NO_TENSOR);
	tensor_id gt = aten_new(t, "gt", DT_BOOL, 4, dims, kv, first);
	tensor_id in_window = aten_new(t, "bitwise_and", DT_BOOL, 4, dims, ones, gt);
	tape_hold(t, gt);
	tensor_id le = aten_new(t, "le", DT_BOOL, 4, dims, kv, q);
	return aten_new(t, "bitwise_and", DT_BOOL, 4, dims, in_window, le);
}

/* sdpa_mask(): True where a query sees a key, expanded over the batch */
static tensor_id bool_mask(struct build *b, bool sliding)
{
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1), dims[4] = { one, one, b->S, b->S };
	tensor_id batch = aten_new(t, "arange", DT_INT64, 1, &b->B, NO_TENSOR, NO_TENSOR);
	tensor_id head = aten_new(t, "arange", DT_INT64, 1, &one, NO_TENSOR, NO_TENSOR);
	tensor_id q = positions(b, b->S), kv = positions(b, b->S);
	tensor_id m = sliding ? window_and_causal(b, q, kv, dims) : aten_new(t, "le", DT_BOOL, 4, dims, kv, q);
	tape_holdv(t, (tensor_id[]){ batch, head, q, kv }, 4);
	return aten_expand(t, m, 4, SHAPE(b->B, one, b->S, b->S));
}

/* eager_mask(): where(mask, 0, lowest value) in the dtype of the hidden states */
static tensor_id float_mask(struct build *b, bool sliding, enum dtype dt)
{
	struct tape *t = b->t;
	size_ref one = size_const(b->a, 1), dims[4] = { b->B, one, b->S, b->S };
	tensor_id m = bool_mask(b, sliding);
	tensor_id zero = aten_new(t, "empty", dt, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id low = aten_new(t, "scalar_tensor", dt, 0, NULL, NO_TENSOR, NO_TENSOR);
	tensor_id y = aten_new(t, "where", dt, 4, dims, m, low);
	tape_hold(t, zero);
	return y;
}

static tensor_id emit_mask(struct build *b, bool sliding, enum dtype dt)
{
	if (attention_is_eager(b))
		return float_mask(b, sliding, dt);
	return sliding && b->S->value >= b->m->sliding_window ? bool_mask(b, sliding) : NO_TENSOR;
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
