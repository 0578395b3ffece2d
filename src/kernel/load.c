/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What is there before the first step: parameters, buffers, one batch. */
#include <string.h>

#include "kernel/step.h"

static int32_t persistent(struct build *b, const char *name, enum tensor_class cls, enum dtype dt, size_ref n)
{
	int32_t s = graph_storage(b->g, name, cls, PLACE_GPU, dt, size_mulc(b->a, n, dtypes[dt].bytes));
	return s;
}

static tensor_id persistent_tensor(struct build *b, const char *name, enum tensor_class cls, enum dtype dt,
				   unsigned ndim, const size_ref *dims)
{
	size_ref n = size_const(b->a, 1);
	for (unsigned i = 0; i < ndim; i++)
		n = size_mul(b->a, n, dims[i]);
	tensor_id t = graph_tensor(b->g, persistent(b, name, cls, dt, n), dt, ndim, dims);
	graph_op(b->g, "load", NULL, 0, &t, 1);
	return t;
}

static void add_param(struct build *b, const struct param *p, const struct layer *l)
{
	enum dtype dt = b->spec->prec.params;
	tensor_id x = persistent_tensor(b, p->name, CLASS_PARAMETER, dt, p->ndim, p->dim);
	struct storage *s = &b->g->storages.v[T(b->t, x)->storage];
	struct pslot slot = { .name = p->name, .label = p->name, .tensor = x, .local = x, .grad = NO_TENSOR,
		.local_grad = NO_TENSOR, .cast = NO_TENSOR, .sum = NO_TENSOR, .unit = -1, .trainable = !p->buffer,
		.copies = 1, .layer = l ? (int32_t)l->index : -1 };
	if (l && l->times > 1) {
		slot.copies = s->ncopies = l->times;
		s->copies = size_const(b->a, l->times);
	}
	s->layer = slot.layer;
	T(b->t, x)->param = (int32_t)b->t->params.n;
	T(b->t, x)->needs_grad = slot.trainable;
	*VEC_PUSH(b->a, &b->t->params) = slot;
}

/* Parameters outside the layers, those that stand before them or those after. */
static struct param_range load_outer(struct build *b, const struct param_list *list, bool before)
{
	size_t first = b->t->params.n;
	for (size_t i = 0; i < list->n; i++) {
		const struct param *p = &list->v[i];
		if (!p->tied && before == (p->site == SITE_EMBEDDING || p->site == SITE_VISION))
			add_param(b, p, NULL);
	}
	return (struct param_range){ first, b->t->params.n - first };
}

static void load_layers(struct build *b)
{
	for (size_t i = 0; i < b->nlayer; i++) {
		struct layer *l = &b->layers[i];
		struct param_list list = params_layer(b->a, b->m, &b->d, l->index);
		l->first_param = b->t->params.n;
		for (size_t k = 0; k < list.n; k++)
			add_param(b, &list.v[k], l);
		l->nparam = b->t->params.n - l->first_param;
	}
}

void add_buffer(struct build *b, const char *name, enum dtype dt, unsigned ndim, const size_ref *dims, uint64_t copies)
{
	tensor_id x = persistent_tensor(b, name, CLASS_BUFFER, dt, ndim, dims);
	struct storage *s = &b->g->storages.v[T(b->t, x)->storage];
	s->ncopies = copies;
	s->copies = copies > 1 ? size_const(b->a, copies) : NULL;
}

static void load_batch(struct build *b)
{
	size_ref dims[2] = { b->B, b->S };
	b->ids = persistent_tensor(b, "input_ids", CLASS_INPUT, DT_INT64, 2, dims);
	b->labels = b->spec->train.separate_labels ?
		persistent_tensor(b, "labels", CLASS_INPUT, DT_INT64, 2, dims) : b->ids;
	size_ref pdims[2] = { size_const(b->a, 1), b->S };
	b->batch_positions = b->spec->train.position_ids ?
		persistent_tensor(b, "position_ids", CLASS_INPUT, DT_INT64, 2, pdims) : NO_TENSOR;
}

void trace_load(struct build *b)
{
	struct param_list outer = params_outer(b->a, b->m, &b->d);
	b->outer[0] = load_outer(b, &outer, true);
	load_layers(b);
	b->outer[1] = load_outer(b, &outer, false);
	arch_of(b->m)->buffers(b);
	load_batch(b);
}
