/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What is there before the first step: parameters, buffers, one batch. */
#include <string.h>

#include "kernel/data_parallel.h"
#include "kernel/step.h"
#include "kernel/trained.h"

static tensor_id persistent_tensor(struct build *b, const char *name, enum tensor_class cls, enum place place,
				   enum dtype dt, unsigned ndim, const size_ref *dims)
{
	size_ref n = size_const(b->a, dtypes[dt].bytes);
	for (unsigned i = 0; i < ndim; i++)
		n = size_mul(b->a, n, dims[i]);
	int32_t id = graph_storage(b->g, name, cls, place, dt, n);
	tensor_id t = graph_tensor(b->g, id, dt, ndim, dims);
	b->g->storages.v[id].rule = b->t->rule;
	graph_op(b->g, "load", NULL, 0, &t, 1);
	return t;
}

static void stack(struct build *b, const struct pslot *p, tensor_id x)
{
	struct storage *s = &b->g->storages.v[T(b->t, x)->storage];
	s->layer = p->layer;
	s->ncopies = p->copies;
	s->copies = p->copies > 1 ? size_const(b->a, p->copies) : NULL;
}

/* What the rank stores of a parameter, and the wider copy that the optimizer updates. */
static void store_param(struct build *b, struct pslot *slot, const struct param *p)
{
	const struct precision *prec = &b->spec->prec;
	enum dtype dt = p->adapter ? b->spec->train.lora.dtype : prec->params;
	enum place place = PLACE_GPU;
	size_ref dim[MAX_DIMS];
	memcpy(dim, p->dim, sizeof p->dim);
	if (!p->buffer)
		b->dp->shard(b, dim, &place);
	bool whole = !memcmp(dim, p->dim, sizeof p->dim) && place == PLACE_GPU;
	slot->local = persistent_tensor(b, p->name, CLASS_PARAMETER, place, dt, p->ndim, dim);
	slot->tensor = whole ? slot->local : NO_TENSOR;
	slot->master = NO_TENSOR;
	stack(b, slot, slot->local);
	if (!slot->trainable || dtypes[prec->master].bytes <= dtypes[dt].bytes)
		return;
	slot->master = persistent_tensor(b, p->name, CLASS_MASTER, place, prec->master, p->ndim, dim);
	stack(b, slot, slot->master);
}

static void add_param(struct build *b, const struct param *p, const struct layer *l)
{
	struct pslot slot = { .name = p->name, .grad_label = arena_printf(b->a, "gradient of %s", p->name), .grad = NO_TENSOR, .local_grad = NO_TENSOR,
		.cast = NO_TENSOR, .sum = NO_TENSOR, .kept = NO_TENSOR, .unit = -1, .trainable = !p->buffer && !p->frozen,
		.copies = l ? l->times : 1, .layer = l ? (int32_t)l->index : -1, .dim = p->dim, .ndim = p->ndim };
	slot.ncopies = size_const(b->a, slot.copies);
	store_param(b, &slot, p);
	if (slot.tensor >= 0) {
		T(b->t, slot.tensor)->param = (int32_t)b->t->params.n;
		T(b->t, slot.tensor)->needs_grad = slot.trainable;
	}
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
		struct param_list list = trained_layer(b->a, b->spec, &b->d, l->index);
		l->first_param = b->t->params.n;
		for (size_t k = 0; k < list.n; k++)
			add_param(b, &list.v[k], l);
		l->nparam = b->t->params.n - l->first_param;
	}
}

tensor_id add_buffer(struct build *b, const char *name, enum dtype dt, unsigned ndim, const size_ref *dims,
		     uint64_t copies)
{
	tensor_id x = persistent_tensor(b, name, CLASS_BUFFER, PLACE_GPU, dt, ndim, dims);
	struct storage *s = &b->g->storages.v[T(b->t, x)->storage];
	s->ncopies = copies;
	s->copies = copies > 1 ? size_const(b->a, copies) : NULL;
	return x;
}

tensor_id add_input(struct build *b, const char *name, enum dtype dt, unsigned ndim, const size_ref *dims)
{
	return persistent_tensor(b, name, CLASS_INPUT, PLACE_GPU, dt, ndim, dims);
}

static void load_batch(struct build *b)
{
	b->ids = b->labels = b->batch_positions = NO_TENSOR;
	if (arch_of(b->m)->batch) {
		arch_of(b->m)->batch(b);
		return;
	}
	size_ref dims[2] = { b->B, b->S };
	b->ids = persistent_tensor(b, "input_ids", CLASS_INPUT, PLACE_GPU, DT_INT64, 2, dims);
	b->labels = b->spec->train.separate_labels ?
		persistent_tensor(b, "labels", CLASS_INPUT, PLACE_GPU, DT_INT64, 2, dims) : b->ids;
	size_ref pdims[2] = { size_const(b->a, 1), b->S };
	b->batch_positions = b->spec->train.position_ids ?
		persistent_tensor(b, "position_ids", CLASS_INPUT, PLACE_GPU, DT_INT64, 2, pdims) : NO_TENSOR;
}

/* torch.amp.GradScaler: the scale and its growth tracker */
static void load_scaler(struct build *b)
{
	b->loss_scale = NO_TENSOR;
	if (!b->spec->prec.grad_scaler)
		return;
	b->loss_scale = persistent_tensor(b, "loss scale", CLASS_OPTIMIZER, PLACE_GPU, DT_FP32, 0, NULL);
	persistent_tensor(b, "growth tracker", CLASS_OPTIMIZER, PLACE_GPU, DT_INT32, 0, NULL);
}

void trace_load(struct build *b)
{
	struct param_list outer = trained_outer(b->a, b->spec, &b->d);
	b->outer[0] = load_outer(b, &outer, true);
	load_layers(b);
	b->outer[1] = load_outer(b, &outer, false);
	arch_of(b->m)->buffers(b);
	load_batch(b);
	load_scaler(b);
	b->dp->load(b);
}
