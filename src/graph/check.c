/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What must be true of every graph, and its text dump. */
#include "graph/graph.h"

#include <inttypes.h>

static const char *check_op(const struct graph *g, struct arena *a, size_t i)
{
	const struct op *o = &g->ops.v[i];
	for (uint32_t k = 0; k < o->nreads; k++) {
		int32_t id = g->tensors.v[g->pool.v[o->reads + k]].storage;
		const struct storage *s = &g->storages.v[id];
		if (s->birth < 0 || s->birth > (int32_t)i)
			return arena_printf(a, "op %zu '%s' reads '%s' (%d) before it is born", i, o->name,
					    s->name, id);
	}
	return NULL;
}

static bool is_outer(const struct group *gr, int32_t s)
{
	for (size_t i = 0; i < gr->carries.n; i++)
		if (gr->carries.v[i].outer == s || gr->carries.v[i].inner == s)
			return true;
	return false;
}

/* A storage from outside a layer run may die inside it only when every call leaves one in its place. */
static const char *check_death(const struct graph *g, struct arena *a, int32_t id)
{
	const struct storage *s = &g->storages.v[id];
	if (s->birth < 0)
		return NULL;
	int32_t home = g->blocks.v[g->ops.v[s->birth].block].group;
	int32_t grave = g->blocks.v[g->ops.v[s->death].block].group;
	if (grave >= 0 && grave != home && !is_outer(&g->groups.v[grave], id))
		return arena_printf(a, "'%s' (%d) dies in a layer run that it was not handed to (%s)", s->name, id,
				    g->blocks.v[g->ops.v[s->death].block].name);
	return NULL;
}

const char *graph_check(struct graph *g, struct arena *a)
{
	const char *bad = NULL;
	uint32_t at = 0;
	for (size_t i = 0; i < g->blocks.n; i++) {
		if (g->blocks.v[i].first != at)
			return arena_printf(a, "block %zu '%s' does not follow its predecessor", i, g->blocks.v[i].name);
		at = g->blocks.v[i].end;
	}
	if (at != g->ops.n)
		return "ops outside every block";
	for (size_t i = 0; i < g->ops.n && !bad; i++)
		bad = check_op(g, a, i);
	for (size_t i = 0; i < g->storages.n && !bad; i++)
		bad = check_death(g, a, (int32_t)i);
	return bad;
}

static void dump_list(const struct graph *g, FILE *f, uint32_t off, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		tensor_id t = g->pool.v[off + k];
		fprintf(f, " %%%d:%d", (int)t, (int)g->tensors.v[t].storage);
	}
}

static void dump_op(const struct graph *g, FILE *f, size_t i, struct arena *a)
{
	const struct op *o = &g->ops.v[i];
	fprintf(f, "  %zu %s", i, o->name);
	dump_list(g, f, o->reads, o->nreads);
	fprintf(f, " ->");
	dump_list(g, f, o->writes, o->nwrites);
	fputc('\n', f);
	for (uint32_t k = 0; k < o->nwrites; k++) {
		const struct storage *s = &g->storages.v[g->tensors.v[g->pool.v[o->writes + k]].storage];
		if (s->birth == (int32_t)i)
			fprintf(f, "    + %" PRIu64 " %s %s %s = %s\n", mul_u64(s->bytes, s->ncopies),
				class_names[s->cls], dtypes[s->dtype].name, s->name, size_print(a, s->size, true));
	}
}

static void dump_prog(const struct graph *g, FILE *f, const struct prog *p, int depth)
{
	for (; p; p = p->next) {
		fprintf(f, "%*s", depth * 2, "");
		if (p->times != 1)
			fprintf(f, "repeat %" PRIu64 " ", p->times);
		if (p->kind == NODE_CALL) {
			fprintf(f, "call %s\n", g->blocks.v[p->block].name);
			continue;
		}
		fprintf(f, "%s\n", p->is_window ? window_names[p->window] : "seq");
		dump_prog(g, f, p->child, depth + 1);
	}
}

void graph_dump(const struct graph *g, FILE *f)
{
	for (size_t b = 0; b < g->blocks.n; b++) {
		const struct block *bl = &g->blocks.v[b];
		fprintf(f, "block %zu %s (%s)", b, bl->name, window_names[bl->window]);
		if (bl->group >= 0)
			fprintf(f, " x %" PRIu64, g->groups.v[bl->group].times);
		fputc('\n', f);
		for (uint32_t i = bl->first; i < bl->end; i++)
			dump_op(g, f, i, g->a);
	}
	fprintf(f, "program\n");
	dump_prog(g, f, g->load, 1);
	fprintf(f, "  first step\n");
	dump_prog(g, f, g->first, 2);
	fprintf(f, "  steady step\n");
	dump_prog(g, f, g->steady, 2);
}
