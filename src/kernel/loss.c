/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Language-model heads and losses. */
#include "kernel/rows.h"

/* transformers 5.12 loss_utils.py ForCausalLMLoss: labels are padded by one and shifted, logits go to fp32 */
static tensor_id shifted_labels(struct build *b, tensor_id *padded)
{
	struct tape *t = b->t;
	label(b, "labels");
	*padded = aten_new(t, "constant_pad_nd", DT_INT64, 2, SHAPE(b->B, size_add(b->a, b->S, size_const(b->a, 1))),
			   b->labels, NO_TENSOR);
	return aten_contiguous(t, aten_slice(t, *padded, 1, b->S));
}

static tensor_id cross_entropy(struct build *b, tensor_id logits, tensor_id target)
{
	label(b, "loss");
	return aten_nll_loss(b->t, aten_log_softmax(b->t, logits), target);
}

tensor_id loss_torch(struct build *b, tensor_id hidden, tensor_id head, tensor_id head_bias)
{
	struct tape *t = b->t;
	tensor_id padded;
	label(b, "lm_head");
	tensor_id logits = aten_linear(t, hidden, head, head_bias);
	label(b, "logits in fp32");
	tensor_id up = aten_cast(t, logits, DT_FP32);
	tensor_id target = shifted_labels(b, &padded);
	tensor_id loss = cross_entropy(b, aten_flatten(t, up), target);
	tape_holdv(t, (tensor_id[]){ up, padded, target, logits }, 4);
	b->logits = logits;
	return loss;
}

tensor_id emit_head_loss(struct build *b, tensor_id hidden)
{
	tensor_id head = outer_param(b, "lm_head.weight");
	if (head < 0)
		head = outer_param(b, "model.embed_tokens.weight");
	return ((loss_fn *)kernel_row(b->spec, K_LOSS)->emit)(b, hidden, head, outer_param(b, "lm_head.bias"));
}
