/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Layer instances: a repeating pattern of layer kinds is traced at most three
 * times, so the graph does not grow with the number of layers. */
#include "kernel/data_parallel.h"
#include "kernel/step.h"
#include "kernel/trained.h"

enum { MAX_PERIOD = 8 };

bool recipe_checkpoints(const struct recipe *r, uint64_t layer)
{
	bool counted = r->checkpoint_layers == 0 || layer < r->checkpoint_layers;
	return r->checkpoint != CKPT_NONE && counted && (r->checkpoint_every < 2 || layer % r->checkpoint_every == 0);
}

/* Layers of one kind trace the same ops. */
static uint64_t layer_kind(const struct build *b, uint64_t i)
{
	uint64_t kind = b->m->sliding && b->m->sliding[i];
	kind |= (b->m->moe && b->m->moe[i] ? 2u : 0u);
	kind |= recipe_checkpoints(&b->recipe, i) ? 4u : 0u;
	kind |= b->m->vision.deep && b->m->vision.deep[i] ? 8u : 0u;
	return kind | (b->frozen ? b->frozen[i] << 4 : 0);
}

/* How many times the pattern of `period` kinds that starts at layer i occurs in a row. */
static uint64_t repeats(const struct build *b, uint64_t i, uint64_t period)
{
	uint64_t j = i + period;
	while (j < b->m->layers && layer_kind(b, j) == layer_kind(b, j - period))
		j++;
	return (j - i) / period;
}

/* Repetitions of a pattern at each end that are in the graph by themselves. */
static uint64_t edge(const struct build *b, uint64_t period)
{
	return ceil_div_u64(data_parallel_edge(b->spec), period);
}

/* The pattern at layer i that covers most layers by being repeated more often than its edges; 0: none. */
static uint64_t best_period(const struct build *b, uint64_t i, uint64_t *times)
{
	uint64_t best = 0, cover = 0;
	for (uint64_t p = 1; p <= MAX_PERIOD && i + p <= b->m->layers; p++) {
		uint64_t n = repeats(b, i, p);
		if (n > 2 * edge(b, p) && n * p > cover) {
			cover = n * p;
			best = p;
			*times = n;
		}
	}
	return best;
}

static void add_layers(struct build *b, uint64_t first, uint64_t period, uint64_t times)
{
	int32_t group = -1;
	if (times > 1) {
		*VEC_PUSH(b->a, &b->g->groups) = (struct group){ .times = times,
			.first_layer = (int32_t)first, .period = (uint32_t)period };
		group = (int32_t)b->g->groups.n - 1;
	}
	for (uint64_t i = 0; i < period; i++)
		b->layers[b->nlayer++] = (struct layer){ .b = b, .index = first + i, .times = times,
			.period = (uint32_t)period, .group = group,
			.sliding = b->m->sliding && b->m->sliding[first + i] };
}

size_t layer_instance(const struct build *b, uint64_t index)
{
	size_t i = 0;
	for (; i + 1 < b->nlayer; i++) {
		const struct layer *l = &b->layers[i];
		uint64_t past = index - l->index;
		if (index >= l->index && past % l->period == 0 && past / l->period < l->times)
			break;
	}
	return i;
}

void layout_layers(struct build *b)
{
	b->layers = NEWN(b->a, struct layer, b->m->layers);
	if (b->spec->train.freeze.n) {
		b->frozen = NEWN(b->a, uint64_t, b->m->layers);
		for (uint64_t i = 0; i < b->m->layers; i++)
			b->frozen[i] = trained_mask(b->a, b->spec, &b->d, i);
	}
	for (uint64_t i = 0; i < b->m->layers;) {
		uint64_t times = 0, period = b->unroll ? 0 : best_period(b, i, &times);
		if (!period) {
			add_layers(b, i++, 1, 1);
			continue;
		}
		uint64_t n = edge(b, period), after = i + period * times;
		for (uint64_t k = 0; k < n; k++, i += period)
			add_layers(b, i, period, 1);
		add_layers(b, i, period, times - 2 * n);
		for (i = after - n * period; i < after; i += period)
			add_layers(b, i, period, 1);
	}
}
