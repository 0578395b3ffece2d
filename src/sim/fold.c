/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Fold: every block and subtree as (change, highest point) per place.
 * Sequence (d1 + d2, max(p1, d1 + p2)); repetition (n·d, p + max(0, (n-1)·d)). */
#include "sim/sim.h"

static const struct summary nothing;

static void then(struct summary *s, const struct summary *next)
{
	for (int p = 0; p < PLACE_N; p++) {
		int64_t top = s->delta[p] + next->peak[p];
		if (top > s->peak[p])
			s->peak[p] = top;
		s->delta[p] += next->delta[p];
	}
}

static struct summary repeat(struct summary s, uint64_t n)
{
	for (int p = 0; p < PLACE_N; p++) {
		int64_t more = (int64_t)(n - 1) * s.delta[p];
		s.peak[p] += more > 0 ? more : 0;
		s.delta[p] *= (int64_t)n;
	}
	return s;
}

static struct summary fold_block(const struct graph *g, uint32_t id)
{
	const struct block *b = &g->blocks.v[id];
	const struct life_index *x = &g->events;
	struct summary s = nothing;
	for (uint32_t i = b->first; i < b->end; i++) {
		for (uint32_t k = x->born_off[i]; k < x->born_off[i + 1]; k++) {
			const struct storage *st = &g->storages.v[x->born[k]];
			s.delta[st->place] += (int64_t)(st->bytes * st->ncopies);
			if (s.delta[st->place] > s.peak[st->place])
				s.peak[st->place] = s.delta[st->place];
		}
		for (uint32_t k = x->died_off[i]; k < x->died_off[i + 1]; k++) {
			const struct storage *st = &g->storages.v[x->died[k]];
			s.delta[st->place] -= (int64_t)(st->bytes * graph_death_copies(g, x->died[k], id));
		}
	}
	return s;
}

static struct summary fold_prog(const struct prog *p, const struct summary *blocks)
{
	struct summary s = nothing;
	if (p->kind == NODE_CALL)
		return repeat(blocks[p->block], p->times);
	for (const struct prog *c = p->child; c; c = c->next) {
		struct summary part = fold_prog(c, blocks);
		then(&s, &part);
	}
	return repeat(s, p->times);
}

struct folded fold(const struct graph *g, struct arena *scratch)
{
	struct folded f = { 0 };
	struct summary *blocks = NEWN(scratch, struct summary, g->blocks.n + 1);
	for (size_t i = 0; i < g->blocks.n; i++)
		blocks[i] = fold_block(g, (uint32_t)i);
	f.load = fold_prog(g->load, blocks);
	f.first = fold_prog(g->first, blocks);
	f.steady = fold_prog(g->steady, blocks);
	struct summary all = f.load, steady;
	then(&all, &f.first);
	steady = all;
	f.peak_first = (uint64_t)all.peak[PLACE_GPU];
	f.peak_steady = (uint64_t)(steady.delta[PLACE_GPU] + f.steady.peak[PLACE_GPU]);
	then(&all, &f.steady);
	for (int p = 0; p < PLACE_N; p++)
		f.peak[p] = (uint64_t)all.peak[p];
	return f;
}
