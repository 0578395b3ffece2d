/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The experts of a mixture.  A token goes to k experts, so b·s·k rows pass
 * the experts together, however they are spread over them. */
#include "kernel/rows.h"

/* ---- rows sorted by expert (transformers 5.12.1 integrations/moe.py grouped_mm_experts_forward) */

/* Experts and rows in sorted order; rows of each expert; where each expert's end; rows that no expert takes. */
struct order { tensor_id sorted, perm, ints, counts, ends, barred; };

static struct order sort_rows(struct build *b, tensor_id index, size_ref R)
{
	struct tape *t = b->t;
	tensor_id pair[2] = { tape_tensor(t, DT_INT64, 1, &R), tape_tensor(t, DT_INT64, 1, &R) };
	tape_op(t, "sort", &index, 1, pair, 2);
	return (struct order){ .sorted = pair[0], .perm = pair[1] };
}

static void count_rows(struct build *b, struct order *o, size_ref R)
{
	struct tape *t = b->t;
	o->ints = aten_new(t, "_to_copy", DT_INT32, 1, &R, o->sorted, NO_TENSOR);
	o->counts = aten_new(t, "histc", DT_INT32, 1, &b->d.E, o->ints, NO_TENSOR);
	o->ends = aten_new(t, "cumsum", DT_INT32, 1, &b->d.E, o->counts, NO_TENSOR);
	o->barred = aten_new(t, "ge", DT_BOOL, 2, SHAPE(R, size_const(b->a, 1)), o->sorted, NO_TENSOR);
}

/* _default_apply_gate: act(gate) * up of the two halves of one product */
static tensor_id gate_and_up(struct layer *l, tensor_id x, tensor_id ends)
{
	struct build *b = l->b;
	tensor_id half[2];
	label(b, "expert gate and up");
	tensor_id both = aten_grouped_mm(b->t, x, layer_param(l, "mlp.experts.gate_up_proj"), ends);
	aten_split(b->t, both, 1, 2, SHAPE(b->d.fe, b->d.fe), half);
	label(b, "expert activation");
	tensor_id act = emit_act(b, half[0]);
	label(b, "expert product");
	tensor_id y = aten_mul(b->t, act, half[1]);
	tape_hold(b->t, both);
	return y;
}

static tensor_id to_tokens(struct build *b, tensor_id rows, tensor_id perm, tensor_id *inverse)
{
	struct tape *t = b->t;
	size_ref R = T(t, rows)->dim[0];
	*inverse = tape_tensor(t, DT_INT64, 1, &R);
	tape_op1(t, "empty_like", NO_TENSOR, NO_TENSOR, *inverse);
	tensor_id range = aten_new(t, "arange", DT_INT64, 1, &R, NO_TENSOR, NO_TENSOR);
	tape_op(t, "index_put_", (tensor_id[]){ *inverse, perm, range }, 3, inverse, 1);
	return aten_index(t, rows, *inverse);
}

tensor_id experts_grouped_mm(struct layer *l, tensor_id x, const struct routing *r)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	size_ref N = T(t, x)->dim[0], R = size_mul(b->a, N, b->d.k);
	tensor_id weights = aten_reshape(t, r->weights, 1, &R), inverse;
	label(b, "order of experts' rows");
	struct order o = sort_rows(b, r->index, R);
	tensor_id token = aten_new(t, "floor_divide", DT_INT64, 1, &R, o.perm, NO_TENSOR);
	label(b, "expert input");
	tensor_id rows = aten_index(t, x, token);
	label(b, "routing weights");
	weights = aten_index(t, weights, o.perm);
	label(b, "order of experts' rows");
	count_rows(b, &o, R);
	label(b, "expert input");
	rows = aten_masked_fill_(t, rows, o.barred);
	tensor_id product = gate_and_up(l, rows, o.ends);
	label(b, "expert down");
	tensor_id down = aten_grouped_mm(t, product, layer_param(l, "mlp.experts.down_proj"), o.ends);
	label(b, "expert output");
	tensor_id out = aten_mul(t, down, aten_reshape(t, weights, 2, SHAPE(R, size_const(b->a, 1))));
	out = aten_masked_fill_(t, out, o.barred);
	out = to_tokens(b, out, o.perm, &inverse);
	tensor_id sum = aten_sum(t, aten_reshape(t, out, 3, SHAPE(N, b->d.k, b->d.h)), 1, false);
	tensor_id y = aten_cast(t, sum, (enum dtype)T(t, x)->dtype);
	tape_holdv(t, (tensor_id[]){ o.sorted, o.perm, o.ints, o.counts, o.ends, o.barred, rows, weights, down, inverse, out,
		sum }, 12);
	return y;
}

/* ---- one expert after the other (MixtralExperts.forward and its like), rows spread evenly over the experts */

static size_ref rows_of_expert(struct build *b, size_ref all, uint64_t expert)
{
	uint64_t E = b->m->experts;
	return size_const(b->a, all->value / E + (expert < all->value % E));
}

/* one_hot(index), and the experts that have rows */
static tensor_id expert_mask(struct build *b, tensor_id index, tensor_id *hit)
{
	struct tape *t = b->t;
	struct tensor v = *T(t, index);
	uint64_t rows = tensor_numel(t, index)->value;
	size_ref one = size_const(b->a, 1), n = rows < b->m->experts ? size_const(b->a, rows) : b->d.E;
	label(b, "experts' rows");
	tensor_id mask = aten_new(t, "zeros", DT_INT64, 3, SHAPE(v.dim[0], v.dim[1], b->d.E), NO_TENSOR, NO_TENSOR);
	tape_op1(t, "scatter_", index, NO_TENSOR, mask);
	tensor_id sum = aten_new(t, "sum", DT_INT64, 1, &b->d.E, mask, NO_TENSOR);
	tensor_id some = aten_new(t, "gt", DT_BOOL, 1, &b->d.E, sum, NO_TENSOR);
	*hit = aten_new(t, "nonzero", DT_INT64, 2, SHAPE(n, one), some, NO_TENSOR);
	return mask;
}

/* The names of the loop's body: each refers to a tensor of the turn before until it is bound again. */
struct names { tensor_id position, state, gate_up, current; };

static void bind(struct tape *t, tensor_id *name, tensor_id x)
{
	tape_hold(t, *name);
	*name = x;
}

static tensor_id expert_linear(struct layer *l, const char *name, tensor_id x)
{
	return aten_linear(l->b->t, x, aten_select(l->b->t, layer_param(l, name), 0), NO_TENSOR);
}

static void expert_gate_and_up(struct layer *l, struct names *v)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	tensor_id half[2];
	label(b, "expert gate and up");
	bind(t, &v->gate_up, expert_linear(l, "mlp.experts.gate_up_proj", v->state));
	aten_split(t, v->gate_up, 1, 2, SHAPE(b->d.fe, b->d.fe), half);
	label(b, "expert activation");
	tensor_id act = emit_act(b, half[0]);
	label(b, "expert product");
	bind(t, &v->current, aten_mul(t, act, half[1]));
}

static tensor_id one_expert(struct layer *l, tensor_id x, const struct routing *r, size_ref rows, struct names *v,
			    tensor_id sum)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	label(b, "experts' rows");
	aten_new(t, "eq", DT_BOOL, 0, NULL, r->index, NO_TENSOR);
	bind(t, &v->position, aten_new(t, "nonzero", DT_INT64, 2, SHAPE(rows, size_const(b->a, 2)), r->index, NO_TENSOR));
	tensor_id token = aten_detach(t, v->position);
	T(t, token)->ndim = 1;
	label(b, "expert input");
	bind(t, &v->state, aten_index(t, x, token));
	expert_gate_and_up(l, v);
	label(b, "expert down");
	bind(t, &v->current, expert_linear(l, "mlp.experts.down_proj", v->current));
	label(b, "expert output");
	tensor_id weights = aten_index_pair(t, r->weights, v->position);
	bind(t, &v->current, aten_mul(t, v->current, weights));
	return aten_index_add_(t, sum, token, aten_cast(t, v->current, (enum dtype)T(t, sum)->dtype));
}

tensor_id experts_eager(struct layer *l, tensor_id x, const struct routing *r)
{
	struct build *b = l->b;
	struct tape *t = b->t;
	size_ref all = tensor_numel(t, r->index);
	struct names v = { NO_TENSOR, NO_TENSOR, NO_TENSOR, NO_TENSOR };
	tensor_id hit;
	label(b, "expert output");
	tensor_id y = tape_like(t, x, (enum dtype)T(t, x)->dtype);
	tape_op1(t, "zeros_like", NO_TENSOR, NO_TENSOR, y);
	tensor_id mask = expert_mask(b, r->index, &hit);
	for (uint64_t i = 0; i < b->m->experts && i < all->value; i++)
		y = one_expert(l, x, r, rows_of_expert(b, all, i), &v, y);
	tape_holdv(t, (tensor_id[]){ mask, hit, v.position, v.state, v.gate_up, v.current }, 6);
	return y;
}
