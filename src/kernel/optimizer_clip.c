/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Gradient scaling (torch.amp.GradScaler) and clipping by the total norm
 * (torch.nn.utils.clip_grad_norm_, foreach), torch 2.14.1. */
#include "kernel/optimizer.h"

/* ---- scaler */

tensor_id scale_loss(struct build *b, tensor_id loss)
{
	if (b->loss_scale < 0)
		return loss;
	label(b, "scaled loss");
	return aten_mul(b->t, loss, b->loss_scale);
}

/* GradScaler.unscale_(): 1/scale in fp64 and back; gradients are scaled in place. */
void unscale_gradients(struct optimizing *s)
{
	struct tape *t = s->t;
	if (s->b->loss_scale < 0)
		return;
	const char *rule = set_rule(s->b, "torch 2.14.1 amp/grad_scaler.py unscale_");
	label(s->b, "gradient scaler");
	tensor_id wide = aten_new(t, "_to_copy", DT_FP32, 0, NULL, s->b->loss_scale, NO_TENSOR);
	tensor_id inverse = aten_new(t, "reciprocal", DT_FP32, 0, NULL, wide, NO_TENSOR);
	tensor_id inv_scale = aten_new(t, "_to_copy", DT_FP32, 0, NULL, inverse, NO_TENSOR);
	tensor_id found_inf = aten_new(t, "full", DT_FP32, 0, NULL, NO_TENSOR, NO_TENSOR);
	tape_op1(t, "_amp_foreach_non_finite_check_and_unscale_", inv_scale, found_inf, found_inf);
	set_rule(s->b, rule);
}

/* ---- clipping */

/* aten ForeachReduceOp.cu: one partial result per chunk of 65536 elements of the longest tensor, for every tensor */
enum { NORM_CHUNK = 65536, PARTIAL_BYTES = 4 };

struct norms { tensor_id *each; uint64_t count; };

static tensor_id partial_norms(struct optimizing *s, uint64_t count)
{
	size_ref longest = size_const(s->b->a, 0);
	for (size_t i = 0; i < s->n; i++) {
		size_ref n = tensor_numel(s->t, s->grad[i]);
		longest = n->value > longest->value ? n : longest;
	}
	size_ref chunks = size_ceil_div(s->b->a, longest, size_const(s->b->a, NORM_CHUNK));
	int32_t id = graph_storage(s->b->g, "partial norms", CLASS_WORKSPACE, PLACE_GPU, DT_FP32,
				   size_mulc(s->b->a, chunks, count * PARTIAL_BYTES));
	s->b->g->storages.v[id].rule = "torch 2.14.1 aten/native/cuda/ForeachReduceOp.cu";
	return graph_tensor(s->b->g, id, DT_FP32, 1, &chunks);
}

static struct norms gradient_norms(struct optimizing *s, bool on_gpu)
{
	struct norms x = { .each = NEWN(s->b->a, tensor_id, s->n + 1) };
	for (size_t i = 0; i < s->n; i++) {
		x.each[i] = slot_tensor(s->b, s->slot[i], s->grad[i], CLASS_TEMPORARY, "norms of gradients",
					(enum dtype)T(s->t, s->grad[i])->dtype, 0, NULL);
		x.count += s->slot[i]->copies;
	}
	tape_op(s->t, "_foreach_norm", NULL, 0, x.each, s->n);
	if (on_gpu) {
		tensor_id partial = partial_norms(s, x.count);
		tape_op1(s->t, "_foreach_norm", NO_TENSOR, NO_TENSOR, partial);
	}
	return x;
}

/* A norm over shards: each rank's powers are summed over all (torch/distributed/tensor/_ops/_math_ops.py). */
static void reduce_norms(struct optimizing *s, tensor_id stack)
{
	tensor_id power = temp_like(s, "pow", stack), sum = temp_like(s, "all_reduce", stack);
	tensor_id wait = temp_like(s, "wait_tensor", stack);
	tape_hold(s->t, sum);
	tensor_id root = temp_like(s, "pow", stack);
	tape_holdv(s->t, (tensor_id[]){ power, wait, root }, 3);
}

void trace_clip(struct build *b)
{
	struct optimizing s = optimizing(b, false);
	if (!s.n)
		return;
	bool on_gpu = b->g->storages.v[T(b->t, s.grad[0])->storage].place == PLACE_GPU;
	unscale_gradients(&s);
	const char *rule = set_rule(b, "torch 2.14.1 nn/utils/clip_grad.py, foreach");
	struct norms norms = gradient_norms(&s, on_gpu);
	label(b, "total norm of gradients");
	size_ref n = size_const(b->a, norms.count);
	const struct pslot one = { .copies = 1, .layer = -1 };
	tensor_id stack = slot_tensor(b, &one, s.grad[0], CLASS_TEMPORARY, b->t->label,
				      (enum dtype)T(b->t, s.grad[0])->dtype, 1, &n);
	tape_op(b->t, "stack", NULL, 0, &stack, 1);
	if (s.slot[0]->unit >= 0)
		reduce_norms(&s, stack);
	tensor_id total = temp_like(&s, "linalg_vector_norm", norms.each[0]);
	tape_hold(b->t, stack);
	tape_holdv(b->t, norms.each, s.n);
	tensor_id sum = temp_like(&s, "add", total), inverse = temp_like(&s, "reciprocal", total);
	tensor_id coef = temp_like(&s, "mul", total);
	tape_holdv(b->t, (tensor_id[]){ inverse, sum }, 2);
	tensor_id clamped = temp_like(&s, "clamp", total);
	tape_holdv(b->t, (tensor_id[]){ coef, clamped, total }, 3);
	set_rule(b, rule);
}
