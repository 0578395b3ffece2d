/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Lifetimes, derived: born at the first op that writes, dead after the last
 * op that touches.  One pass over the ops, which stand in program order. */
#include "graph/graph.h"

static void touch(struct graph *g, uint32_t off, uint32_t n, int32_t op, bool write)
{
	for (uint32_t k = 0; k < n; k++) {
		struct storage *s = &g->storages.v[g->tensors.v[g->pool.v[off + k]].storage];
		if (write && s->birth < 0)
			s->birth = op;
		s->death = op;
	}
}

/* Counting sort of storages by birth or death op; within one op in storage order, which is creation order. */
static const int32_t *bucket(struct graph *g, bool births, const uint32_t **offsets)
{
	uint32_t *off = NEWN(g->a, uint32_t, g->ops.n + 2);
	int32_t *list = NEWN(g->a, int32_t, g->storages.n + 1);
	for (size_t i = 0; i < g->storages.n; i++) {
		const struct storage *s = &g->storages.v[i];
		if (s->birth >= 0)
			off[(births ? s->birth : s->death) + 2]++;
	}
	for (size_t i = 2; i < g->ops.n + 2; i++)
		off[i] += off[i - 1];
	for (size_t i = 0; i < g->storages.n; i++) {
		const struct storage *s = &g->storages.v[i];
		if (s->birth >= 0)
			list[off[(births ? s->birth : s->death) + 1]++] = (int32_t)i;
	}
	*offsets = off;
	return list;
}

void graph_lives(struct graph *g)
{
	for (size_t i = 0; i < g->storages.n; i++)
		g->storages.v[i].birth = g->storages.v[i].death = -1;
	for (size_t i = 0; i < g->ops.n; i++) {
		const struct op *o = &g->ops.v[i];
		touch(g, o->reads, o->nreads, (int32_t)i, false);
		touch(g, o->writes, o->nwrites, (int32_t)i, true);
	}
	g->events.born = bucket(g, true, &g->events.born_off);
	g->events.died = bucket(g, false, &g->events.died_off);
}

static bool is_carried(const struct group *gr, int32_t s)
{
	for (size_t i = 0; i < gr->carries.n; i++)
		if (gr->carries.v[i].inner == s)
			return true;
	return false;
}

uint64_t graph_death_copies(const struct graph *g, int32_t id, uint32_t block)
{
	const struct storage *s = &g->storages.v[id];
	int32_t home = g->blocks.v[g->ops.v[s->birth].block].group;
	if (home < 0 || home == g->blocks.v[block].group || is_carried(&g->groups.v[home], id))
		return s->ncopies;
	return mul_u64(s->ncopies, g->groups.v[home].times);
}

int32_t graph_resolve(const struct graph *g, int32_t id, uint32_t block, uint64_t iteration)
{
	const struct block *b = &g->blocks.v[block];
	if (b->group < 0 || g->blocks.v[g->ops.v[g->storages.v[id].birth].block].group == b->group)
		return id;
	const struct group *gr = &g->groups.v[b->group];
	for (size_t i = 0; i < gr->carries.n; i++) {
		const struct carry *c = &gr->carries.v[i];
		uint64_t first = c->window == b->window ? 0 : gr->times - 1;
		if (c->outer == id)
			return iteration == first ? id : c->inner;
	}
	return id;
}
