/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of optimizers, their states, the optimizer step and zero_grad
 * (torch 2.14.1 torch/optim, bitsandbytes 0.4x optim/optimizer.py). */
#include "kernel/optimizer.h"

/* bitsandbytes: 8-bit states from this many elements on; one fp32 absmax per block */
enum { MIN_8BIT = 4096, BLOCK_8BIT = 256 };

static bool is_amsgrad(const struct optimizing *s, size_t i)
{
	(void)i;
	return s->o->amsgrad;
}

bool grad_is_matrix(const struct optimizing *s, size_t i)
{
	return T(s->t, s->grad[i])->ndim > 1;
}

static bool is_vector(const struct optimizing *s, size_t i)
{
	return !grad_is_matrix(s, i);
}

static bool is_large(const struct optimizing *s, size_t i)
{
	return tensor_numel(s->t, s->param[i])->value >= MIN_8BIT;
}

static bool is_small(const struct optimizing *s, size_t i)
{
	return !is_large(s, i);
}

/* The step count is a tensor on the GPU in the fused implementation only (Adam._init_group). */
static const struct state adam_fused_states[] = {
	{ "optimizer step count", "zeros", STATE_ONE, TYPE_FP32, NULL },
	{ "exp_avg", "zeros_like", STATE_LIKE, TYPE_STATE, NULL },
	{ "exp_avg_sq", "zeros_like", STATE_LIKE, TYPE_STATE, NULL },
	{ "max_exp_avg_sq", "zeros_like", STATE_LIKE, TYPE_STATE, is_amsgrad },
};
static const struct state adafactor_states[] = {
	{ "row_var", "new_zeros", STATE_ROWS, TYPE_STATE, grad_is_matrix },
	{ "col_var", "new_zeros", STATE_COLUMNS, TYPE_STATE, grad_is_matrix },
	{ "variance", "zeros_like", STATE_LIKE, TYPE_STATE, is_vector },
};
static const struct state lion_states[] = {
	{ "exp_avg", "zeros_like", STATE_LIKE, TYPE_STATE, NULL },
};
static const struct state adam8bit_states[] = {
	{ "exp_avg in fp32", "zeros_like", STATE_LIKE, TYPE_FP32, is_small },
	{ "exp_avg_sq in fp32", "zeros_like", STATE_LIKE, TYPE_FP32, is_small },
	{ "exp_avg in 8 bits", "zeros_like", STATE_LIKE, TYPE_BYTE, is_large },
	{ "exp_avg_sq in 8 bits", "zeros_like", STATE_LIKE, TYPE_BYTE, is_large },
	{ "absmax of exp_avg", "zeros", STATE_BLOCKS, TYPE_FP32, is_large },
	{ "absmax of exp_avg_sq", "zeros", STATE_BLOCKS, TYPE_FP32, is_large },
};

#define ADAM_FUSED adam_fused_states, COUNT(adam_fused_states)
#define ADAM_STATES adam_fused_states + 1, COUNT(adam_fused_states) - 1
#define STATES(list) list, COUNT(list)
#define ADAM_PY "torch 2.14.1 optim/adam.py"
#define SGD_PY "torch 2.14.1 optim/sgd.py"
#define ADAFACTOR_PY "torch 2.14.1 optim/_adafactor.py"
const struct optimizer_row optimizers[] = {
	{ OPT_ADAMW, IMPL_FUSED, ADAM_FUSED, step_adam_fused, "nothing", ADAM_PY },
	{ OPT_ADAMW, IMPL_FOREACH, ADAM_STATES, step_adam_foreach, "a list as large as exp_avg_sq", ADAM_PY },
	{ OPT_ADAMW, IMPL_FORLOOP, ADAM_STATES, step_adam_forloop, "three tensors of one parameter", ADAM_PY },
	{ OPT_ADAM, IMPL_FUSED, ADAM_FUSED, step_adam_fused, "nothing", ADAM_PY },
	{ OPT_ADAM, IMPL_FOREACH, ADAM_STATES, step_adam_foreach, "a list as large as the gradients", ADAM_PY },
	{ OPT_ADAM, IMPL_FORLOOP, ADAM_STATES, step_adam_forloop, "four tensors of one parameter", ADAM_PY },
	{ OPT_SGD, IMPL_FUSED, NULL, 0, step_sgd_fused, "nothing", SGD_PY },
	{ OPT_SGD, IMPL_FOREACH, NULL, 0, step_sgd_foreach, "a list as large as the gradients with decay", SGD_PY },
	{ OPT_SGD, IMPL_FORLOOP, NULL, 0, step_sgd_forloop, "one tensor of one parameter with decay", SGD_PY },
	{ OPT_ADAFACTOR, IMPL_FORLOOP, STATES(adafactor_states), step_adafactor_forloop,
	  "variance estimates of two parameters", ADAFACTOR_PY },
	{ OPT_ADAFACTOR, IMPL_FOREACH, STATES(adafactor_states), step_adafactor_foreach,
	  "variance estimates of all parameters", ADAFACTOR_PY },
	{ OPT_LION, IMPL_FORLOOP, STATES(lion_states), step_lion_forloop, "two tensors of one parameter",
	  "lion-pytorch lion_pytorch.py" },
	{ OPT_ADAM8BIT, IMPL_FUSED, STATES(adam8bit_states), step_adam8bit, "nothing",
	  "bitsandbytes optim/optimizer.py, blockwise, block 256" },
};
const size_t noptimizer = COUNT(optimizers);

const struct optimizer_row *optimizer_row(enum optimizer_name name, enum optimizer_impl impl)
{
	for (size_t i = 0; i < noptimizer; i++)
		if (optimizers[i].name == name && optimizers[i].impl == impl)
			return &optimizers[i];
	return NULL;
}

/* ---- parameters and their tensors */

static tensor_id local_grad(const struct pslot *p)
{
	return p->local_grad >= 0 ? p->local_grad : p->grad;
}

struct optimizing optimizing(struct build *b, bool first)
{
	size_t n = b->t->params.n;
	struct optimizing s = { .b = b, .t = b->t, .o = &b->spec->optim, .first = first,
		.slot = NEWN(b->a, const struct pslot *, n + 1),
		.param = NEWN(b->a, tensor_id, n + 1), .grad = NEWN(b->a, tensor_id, n + 1) };
	for (size_t i = 0; i < n; i++) {
		const struct pslot *p = &b->t->params.v[i];
		if (local_grad(p) < 0)
			continue;
		s.slot[s.n] = p;
		s.param[s.n] = p->master >= 0 ? p->master : p->local;
		s.grad[s.n++] = local_grad(p);
	}
	return s;
}

/* zeros_like() of a pinned tensor is not pinned. */
static enum place place_like(struct build *b, tensor_id like)
{
	enum place place = (enum place)b->g->storages.v[T(b->t, like)->storage].place;
	return place == PLACE_PINNED ? PLACE_HOST : place;
}

tensor_id slot_tensor(struct build *b, const struct pslot *p, tensor_id like, enum tensor_class cls, const char *name,
		      enum dtype dt, unsigned ndim, const size_ref *dims)
{
	size_ref n = size_const(b->a, dtypes[dt].bytes);
	for (unsigned i = 0; i < ndim; i++)
		n = size_mul(b->a, n, dims[i]);
	int32_t id = graph_storage(b->g, name, cls, place_like(b, like), dt, n);
	struct storage *s = &b->g->storages.v[id];
	s->layer = p->layer;
	s->rule = b->t->rule;
	s->ncopies = p->copies;
	s->copies = p->copies > 1 ? size_const(b->a, p->copies) : NULL;
	return graph_tensor(b->g, id, dt, ndim, dims);
}

static tensor_id slot_like(struct optimizing *s, size_t i, tensor_id x, enum tensor_class cls, const char *name,
			   enum dtype dt)
{
	const struct tensor v = *T(s->t, x);
	return slot_tensor(s->b, s->slot[i], x, cls, name, dt, v.ndim, v.dim);
}

/* ---- states */

static unsigned state_dims(struct optimizing *s, size_t i, enum state_shape shape, size_ref *dim)
{
	const struct tensor *v = T(s->t, s->param[i]);
	unsigned n = v->ndim;
	for (unsigned k = 0; k < n; k++)
		dim[k] = v->dim[k];
	if (shape == STATE_ROWS)
		dim[n - 1] = size_const(s->b->a, 1);
	if (shape == STATE_COLUMNS)
		dim[n - 2] = size_const(s->b->a, 1);
	if (shape == STATE_BLOCKS)
		dim[0] = size_ceil_div(s->b->a, tensor_numel(s->t, s->param[i]), size_const(s->b->a, BLOCK_8BIT));
	return shape == STATE_ONE ? 0 : shape == STATE_BLOCKS ? 1 : n;
}

void state_make(struct optimizing *s, size_t i, const struct state *st)
{
	const enum dtype type[] = { [TYPE_STATE] = s->b->spec->prec.optimizer, [TYPE_FP32] = DT_FP32,
		[TYPE_BYTE] = DT_UINT8 };
	size_ref dim[MAX_DIMS];
	unsigned n = state_dims(s, i, st->shape, dim);
	tensor_id x = slot_tensor(s->b, s->slot[i], s->param[i], CLASS_OPTIMIZER, st->name, type[st->type], n, dim);
	tape_op1(s->t, st->op, NO_TENSOR, NO_TENSOR, x);
}

static void make_states(struct optimizing *s, const struct optimizer_row *row)
{
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < row->nstate; k++)
			if (!row->states[k].when || row->states[k].when(s, i))
				state_make(s, i, &row->states[k]);
}

/* ---- temporaries */

tensor_id *list_like(struct optimizing *s, const char *op, const tensor_id *x)
{
	tensor_id *list = NEWN(s->b->a, tensor_id, s->n + 1);
	for (size_t i = 0; i < s->n; i++)
		list[i] = slot_like(s, i, x[i], CLASS_TEMPORARY, s->t->label, (enum dtype)T(s->t, x[i])->dtype);
	tape_op(s->t, op, NULL, 0, list, s->n);
	return list;
}

void list_drop(struct optimizing *s, const tensor_id *list)
{
	if (list)
		tape_holdv(s->t, list, s->n);
}

tensor_id temp_like(struct optimizing *s, const char *op, tensor_id x)
{
	static const struct pslot one = { .copies = 1, .layer = -1 };
	const struct tensor v = *T(s->t, x);
	tensor_id y = slot_tensor(s->b, &one, x, CLASS_TEMPORARY, s->t->label, (enum dtype)v.dtype, v.ndim, v.dim);
	tape_op1(s->t, op, NO_TENSOR, NO_TENSOR, y);
	return y;
}

/* ---- the step */

/* Master copies outside a fused kernel want gradients of their own type (apex fp16_utils
 * model_grads_to_master_grads); the fused one reads the model's (apex FusedAdam master_weights). */
static tensor_id *master_grads(struct optimizing *s)
{
	enum dtype dt = s->b->spec->prec.master;
	if (s->o->impl == IMPL_FUSED || !s->n || T(s->t, s->grad[0])->dtype == dt || s->slot[0]->master < 0)
		return NULL;
	tensor_id *list = NEWN(s->b->a, tensor_id, s->n + 1);
	for (size_t i = 0; i < s->n; i++) {
		list[i] = slot_like(s, i, s->grad[i], CLASS_TEMPORARY, "gradient of the master copy", dt);
		tape_op1(s->t, "_to_copy", NO_TENSOR, NO_TENSOR, list[i]);
	}
	s->grad = list;
	return list;
}

void trace_optimizer(struct build *b, bool first)
{
	struct optimizing s = optimizing(b, first);
	const struct optimizer_row *row = optimizer_row(b->spec->optim.name, b->spec->optim.impl);
	if (b->spec->train.clip_grad_norm <= 0)
		unscale_gradients(&s);
	const char *rule = set_rule(b, row->source);
	tensor_id *copies = master_grads(&s);
	if (first)
		make_states(&s, row);
	row->step(&s);
	list_drop(&s, copies);
	set_rule(b, rule);
}

void trace_zero_grad(struct build *b)
{
	for (size_t i = 0; i < b->t->params.n; i++)
		tape_hold(b->t, local_grad(&b->t->params.v[i]));
}
