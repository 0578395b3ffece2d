/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Language-model heads and losses: whole logits, logits in chunks, and the
 * head fused with the loss. */
#include "kernel/data_parallel.h"
#include "kernel/rows.h"

/* transformers 5.12.1 loss_utils.py ForCausalLMLoss: labels are padded by one and shifted */
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

/* modeling_gemma2.py: tanh(logits / cap) * cap */
static tensor_id emit_logits(struct build *b, tensor_id logits)
{
	struct tape *t = b->t;
	if (b->m->final_softcap <= 0)
		return logits;
	return aten_mul_scalar(t, aten_unary(t, UNARY_TANH, aten_div_scalar(t, logits)));
}

/* ---- whole logits, in fp32 for the loss */

tensor_id loss_torch(struct build *b, tensor_id hidden, tensor_id head, tensor_id head_bias)
{
	struct tape *t = b->t;
	tensor_id padded;
	label(b, "lm_head");
	tensor_id raw = aten_linear(t, hidden, head, head_bias);
	b->dp->head_output(b, raw);
	tensor_id logits = emit_logits(b, raw);
	label(b, "logits in fp32");
	tensor_id up = aten_cast(t, logits, DT_FP32);
	tensor_id target = shifted_labels(b, &padded);
	tensor_id loss = cross_entropy(b, aten_flatten(t, up), target);
	tape_holdv(t, (tensor_id[]){ up, padded, target, hidden, logits }, 5);
	b->logits = logits;
	return loss;
}

/* ---- logits in chunks of rows */

struct chunk { struct build *b; tensor_id target, head, bias; };

static tensor_id chunk_loss(void *ctx, tensor_id hidden)
{
	struct chunk *c = ctx;
	struct build *b = c->b;
	label(b, "lm_head");
	tensor_id logits = emit_logits(b, aten_linear(b->t, hidden, c->head, c->bias));
	label(b, "logits in fp32");
	tensor_id up = aten_cast(b->t, logits, DT_FP32);
	tensor_id loss = cross_entropy(b, up, c->target);
	tape_hold(b->t, up);
	return loss;
}

/* torch.Tensor.chunk: ceil(rows / n) rows each, the last may be shorter, there may be fewer */
static unsigned chunk_rows(struct build *b, size_ref rows, size_ref *len)
{
	const struct recipe *r = &b->recipe;
	size_ref each = r->loss_chunks ? size_ceil_div(b->a, rows, size_const(b->a, r->loss_chunks))
				       : size_const(b->a, r->loss_chunk_rows);
	unsigned n = (unsigned)ceil_div_u64(rows->value, each->value);
	for (unsigned i = 0; i + 1 < n; i++)
		len[i] = each;
	len[n - 1] = n * each->value == rows->value ? each : size_sub(b->a, rows, size_mulc(b->a, each, n - 1));
	return n;
}

static tensor_id one_chunk(struct build *b, struct chunk *c, tensor_id hidden)
{
	struct tape *t = b->t;
	if (!b->recipe.loss_checkpoint)
		return chunk_loss(c, hidden);
	const struct sac *sac = t->sac;
	size_t n = t->nkwarg;
	tensor_id first = t->kwargs[0];
	t->sac = NULL;
	t->kwargs[0] = c->target;
	t->nkwarg = 1;
	tensor_id loss = tape_checkpoint(t, chunk_loss, c, hidden, true);
	t->sac = sac;
	t->kwargs[0] = first;
	t->nkwarg = n;
	return loss;
}

static tensor_id loss_in_chunks(struct build *b, tensor_id hidden, tensor_id head, tensor_id head_bias)
{
	struct tape *t = b->t;
	tensor_id rows = aten_flatten(t, hidden), padded, total = NO_TENSOR;
	size_ref nrow = T(t, rows)->dim[0];
	uint64_t most = b->recipe.loss_chunks ? b->recipe.loss_chunks : ceil_div_u64(nrow->value, b->recipe.loss_chunk_rows);
	size_ref *len = NEWN(b->a, size_ref, most + 1);
	tensor_id *part = NEWN(b->a, tensor_id, most + 1), target = shifted_labels(b, &padded);
	unsigned n = chunk_rows(b, nrow, len);
	aten_split(t, rows, 0, n, len, part);
	for (unsigned i = 0; i < n; i++) {
		struct chunk *c = NEW(b->a, struct chunk);
		*c = (struct chunk){ b, target, head, head_bias };
		tensor_id loss = one_chunk(b, c, part[i]), old = total;
		label(b, "loss");
		total = old < 0 ? aten_add_scalar(t, loss) : aten_add(t, old, loss);
		tape_hold(t, old < 0 ? loss : old);
	}
	tensor_id mean = aten_div_scalar(t, total);
	tape_holdv(t, (tensor_id[]){ total, padded, target, hidden }, 4);
	return mean;
}

/* ---- head and loss in one function that makes the gradients in its forward (Liger fused_linear_cross_entropy.py:
 * chunk = next power of two of ceil(rows / ceil(V / h)); one [chunk, V] product at a time, of which the old one
 * lives until its Python name is bound again) */

static void back_fused_linear(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out)
{
	for (size_t i = 0; i < n->nsaved; i++) {
		out[i] = node_saved(t, n, i);
		tape_op1(t, "mul_", out[i], grad[0], out[i]);
	}
}

static uint64_t fused_chunk(uint64_t rows, uint64_t vocab, uint64_t hidden)
{
	uint64_t want = ceil_div_u64(rows, ceil_div_u64(vocab, hidden)), chunk = 1;
	while (chunk < want)
		chunk *= 2;
	return chunk;
}

static void fused_chunks(struct build *b, tensor_id rows, tensor_id head, tensor_id gx, tensor_id gw)
{
	struct tape *t = b->t;
	size_ref n = T(t, rows)->dim[0], h = T(t, rows)->dim[1], V = T(t, head)->dim[0];
	enum dtype dt = (enum dtype)T(t, rows)->dtype;
	uint64_t chunk = fused_chunk(n->value, V->value, h->value);
	tensor_id old = NO_TENSOR;
	for (uint64_t at = 0; at < n->value; at += chunk) {
		size_ref c = size_const(b->a, at + chunk <= n->value ? chunk : n->value - at);
		tensor_id logits = aten_new(t, "mm", dt, 2, SHAPE(c, V), rows, head);
		tape_hold(t, old);
		tensor_id dx = aten_new(t, "mm", dt, 2, SHAPE(c, h), logits, head);
		tape_op1(t, "copy_", dx, gx, gx);
		if (gw >= 0)
			tape_op1(t, "addmm", logits, rows, gw);
		old = logits;
	}
	tape_hold(t, old);
}

tensor_id loss_liger(struct build *b, tensor_id hidden, tensor_id head, tensor_id head_bias)
{
	struct tape *t = b->t;
	tensor_id rows = aten_flatten(t, hidden), padded, target = shifted_labels(b, &padded);
	tensor_id in[2] = { rows, head };
	enum tape_mode mode = t->mode;
	(void)head_bias;
	label(b, "fused lm_head and loss");
	struct anode *n = node_begin(t, "LigerFusedLinearCrossEntropyBackward", back_fused_linear, in, 2);
	t->mode = TAPE_NOGRAD;
	tensor_id gx = tape_like(t, rows, (enum dtype)T(t, rows)->dtype), gw = NO_TENSOR;
	tape_op1(t, "zeros_like", NO_TENSOR, NO_TENSOR, gx);
	if (T(t, head)->needs_grad) {
		gw = tape_like(t, head, (enum dtype)T(t, head)->dtype);
		tape_op1(t, "zeros_like", NO_TENSOR, NO_TENSOR, gw);
	}
	tensor_id losses = aten_new(t, "zeros", DT_FP32, 1, &T(t, rows)->dim[0], NO_TENSOR, NO_TENSOR);
	fused_chunks(b, rows, head, gx, gw);
	tensor_id loss = tape_scalar(t, DT_FP32);
	tape_op1(t, "sum", losses, target, loss);
	t->mode = mode;
	node_save(t, n, gx);
	node_save(t, n, gw);
	node_end(t, n, &loss, 1);
	tape_holdv(t, (tensor_id[]){ padded, hidden }, 2);
	return loss;
}

tensor_id emit_head_loss(struct build *b, tensor_id hidden)
{
	const struct arch *arch = arch_of(b->m);
	if (arch->loss)
		return arch->loss(b, hidden);
	tensor_id head = outer_param(b, arch->head), bias = outer_param(b, "lm_head.bias");
	if (head < 0)
		head = outer_param(b, arch->embedding);
	const struct kernel_row *row = kernel_row(b->spec, K_LOSS);
	bool chunks = b->recipe.loss_chunks || b->recipe.loss_chunk_rows;
	const char *rule = set_rule(b, row->source);
	tensor_id loss = chunks ? loss_in_chunks(b, hidden, head, bias)
				: ((loss_fn *)row->emit)(b, hidden, head, bias);
	set_rule(b, rule);
	return loss;
}
