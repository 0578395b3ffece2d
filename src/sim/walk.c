/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Walk: the program unrolled into births and deaths in order. */
#include "sim/sim.h"

#include <string.h>

enum { MICRO_BATCHES_WALKED = 16 };

struct walker {
	const struct graph *g;
	struct arena *a;
	const struct life_index *x;
	walk_fn *fn;
	void *ctx;
	struct walked *w;
	uint64_t now[PLACE_N];
	uint64_t by_class[CLASS_N];
	uint32_t call;
	int32_t step, micro;
	struct window_peak *win;               /* open window */
	VEC(struct window_peak) windows;
	VEC(uint64_t) layer_entry;
	bool mark_layers;
	/* second pass: stop at this event of the peak and remember what is alive */
	uint64_t *alive;
	uint64_t stop_bytes;
	uint64_t iteration;                    /* of the layer run at hand */
};

/* How many periods into its run the layer at hand is: backward goes from the last to the first. */
static uint64_t layer_step(const struct walker *k, const struct block *b)
{
	return b->window == WIN_BACKWARD ? k->g->groups.v[b->group].times - 1 - k->iteration : k->iteration;
}

static void note_peak(struct walker *k, uint32_t op, const struct block *b)
{
	struct walked *w = k->w;
	uint64_t now = k->now[PLACE_GPU];
	if (k->win && now > k->win->peak) {
		k->win->peak = now;
		k->win->peak_op = (int32_t)op;
	}
	uint64_t *step = k->step < 2 ? &w->peak_first : &w->peak_steady;
	if (now > *step)
		*step = now;
	if (now <= w->peak[PLACE_GPU])
		return;
	w->peak[PLACE_GPU] = now;
	w->peak_op = (int32_t)op;
	w->peak_window = b->window;
	w->peak_step = k->step;
	w->peak_micro = k->win ? k->win->micro : -1;
	w->peak_layer = b->layer;
	if (b->group >= 0)
		w->peak_layer += (int32_t)(layer_step(k, b) * k->g->groups.v[b->group].period);
}

static void event(struct walker *k, int32_t s, uint32_t op, bool birth, uint64_t copies)
{
	const struct storage *st = &k->g->storages.v[s];
	uint64_t bytes = st->bytes * copies;
	if (birth) {
		k->now[st->place] += bytes;
		if (st->place == PLACE_GPU)
			k->by_class[st->cls] += bytes;
		else if (k->now[st->place] > k->w->peak[st->place])
			k->w->peak[st->place] = k->now[st->place];
	} else {
		k->now[st->place] -= bytes;
		if (st->place == PLACE_GPU)
			k->by_class[st->cls] -= bytes;
	}
	if (k->alive)
		k->alive[s] += birth ? copies : -copies;
	if (k->fn)
		k->fn(k->ctx, &(struct event){ .storage = s, .call = k->call, .birth = birth, .op = op, .copies = copies });
}

static bool walk_op(struct walker *k, uint32_t i, uint32_t block)
{
	const struct block *b = &k->g->blocks.v[block];
	for (uint32_t n = k->x->born_off[i]; n < k->x->born_off[i + 1]; n++) {
		int32_t s = k->x->born[n];
		event(k, s, i, true, k->g->storages.v[s].ncopies);
	}
	if (k->x->born_off[i] != k->x->born_off[i + 1])
		note_peak(k, i, b);
	if (k->alive && k->now[PLACE_GPU] == k->stop_bytes)
		return false;
	for (uint32_t n = k->x->died_off[i]; n < k->x->died_off[i + 1]; n++) {
		int32_t s = k->x->died[n];
		uint64_t copies = graph_death_copies(k->g, s, block);
		event(k, graph_resolve(k->g, s, block, k->iteration), i, false, copies);
	}
	return true;
}

/* Activations only: not what communication, gathered parameters and weight casts hold (they come and go). */
static uint64_t activation_bytes(const struct walker *k)
{
	return k->now[PLACE_GPU] - k->by_class[CLASS_COMM] - k->by_class[CLASS_UNSHARDED] -
		k->by_class[CLASS_WEIGHT_CAST];
}

static bool walk_call(struct walker *k, const struct prog *p)
{
	const struct block *b = &k->g->blocks.v[p->block];
	for (uint64_t n = 0; n < p->times; n++, k->call++) {
		if (k->mark_layers && b->window == WIN_FORWARD && k->layer_entry.n + (b->layer >= 0) > 0)
			*VEC_PUSH(k->a, &k->layer_entry) = activation_bytes(k);
		for (uint32_t i = b->first; i < b->end; i++)
			if (!walk_op(k, i, p->block))
				return false;
	}
	return true;
}

static void window_open(struct walker *k, const struct prog *p)
{
	struct window_peak *w = VEC_PUSH(k->a, &k->windows);
	uint64_t now = k->now[PLACE_GPU];
	*w = (struct window_peak){ .window = p->window, .step = k->step, .micro = p->micro < 0 ? -1 : k->micro,
		.start = now, .peak = now, .peak_op = -1 };
	k->win = w;
	if (p->window == WIN_FORWARD && k->step == 2 && k->layer_entry.n == 0)
		k->mark_layers = true;
}

static void window_close(struct walker *k)
{
	struct window_peak *w = &k->windows.v[k->windows.n - 1];
	w->end = k->now[PLACE_GPU];
	if (w->window == WIN_BACKWARD)
		k->micro++;
	k->win = NULL;
	k->mark_layers = false;
}

/* A repetition of micro-batches that leaves memory as it found it goes on like that: what follows the first few is
 * neither walked nor listed, unless somebody listens to every event. */
static bool settled(const struct walker *k, const struct prog *p, uint64_t done, const uint64_t *before)
{
	return !k->fn && p->group < 0 && done >= MICRO_BATCHES_WALKED && !memcmp(before, k->now, sizeof k->now);
}

static bool walk_prog(struct walker *k, const struct prog *p)
{
	bool more = true;
	uint64_t before[PLACE_N];
	if (p->kind == NODE_CALL)
		return walk_call(k, p);
	for (uint64_t n = 0; n < p->times && more; n++) {
		uint64_t outer = k->iteration;
		if (n > 0 && settled(k, p, n, before))
			break;
		memcpy(before, k->now, sizeof before);
		if (p->group >= 0)
			k->iteration = n;
		if (p->is_window)
			window_open(k, p);
		for (const struct prog *c = p->child; c && more; c = c->next)
			more = walk_prog(k, c);
		if (p->is_window && more)
			window_close(k);
		k->iteration = outer;
	}
	return more;
}

static void walk_all(struct walker *k)
{
	const struct prog *parts[] = { k->g->load, k->g->first, k->g->steady };
	for (int i = 0; i < 3; i++) {
		k->step = i;
		k->micro = 0;
		if (i == 2)
			memcpy(k->w->at_end, k->by_class, sizeof k->by_class);
		if (!walk_prog(k, parts[i]))
			return;
	}
}

static void keep_alive_set(struct walker *k, struct walked *w)
{
	w->alive = NEWN(k->a, struct alive, k->g->storages.n);
	for (size_t i = 0; i < k->g->storages.n; i++)
		if (k->alive[i] && k->g->storages.v[i].place == PLACE_GPU)
			w->alive[w->nalive++] = (struct alive){ (int32_t)i, k->alive[i] };
}

struct walked walk(const struct graph *g, struct arena *a, walk_fn *on_event, void *ctx)
{
	struct walked w = { .peak_op = -1, .peak_layer = -1 }, again = w;
	struct walker k = { .g = g, .a = a, .x = &g->events, .fn = on_event, .ctx = ctx, .w = &w };
	walk_all(&k);
	w.windows = k.windows.v;
	w.nwindow = k.windows.n;
	w.nlayer = k.layer_entry.n ? k.layer_entry.n - 1 : 0;
	w.saved_per_layer = NEWN(a, uint64_t, w.nlayer + 1);
	for (size_t i = 0; i < w.nlayer; i++)
		w.saved_per_layer[i] = k.layer_entry.v[i + 1] - k.layer_entry.v[i];
	struct walker second = { .g = g, .a = a, .x = k.x, .w = &again,
		.alive = NEWN(a, uint64_t, g->storages.n + 1), .stop_bytes = w.peak[PLACE_GPU] };
	walk_all(&second);
	keep_alive_set(&second, &w);
	return w;
}
