/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * --set PATH=VALUE: an edit of the plan's tree before it is read, so that it
 * is checked and located like any other key.  The tree is shared and const:
 * an edit copies the mappings on its way. */
#include "plan/schema.h"

#include <string.h>

struct segment { const char *name; struct loc loc; };
struct edit {
	struct arena *a;
	struct segment seg[DEPTH_MAX];
	size_t n;
	struct node *value;
};

/* A copy of the mapping with room for one more pair; what is no mapping counts as empty. */
static struct node *map_copy(struct arena *a, const struct node *old, struct loc loc)
{
	bool is_map = old && old->shape == SHAPE_MAP;
	struct node *map = NEW(a, struct node);

	*map = (struct node){ .shape = SHAPE_MAP, .loc = is_map ? old->loc : loc, .total = 1 };
	map->n = is_map ? old->n : 0;
	map->pairs = NEWN(a, struct pair, map->n + 1);
	if (map->n > 0)
		memcpy(map->pairs, old->pairs, map->n * sizeof *map->pairs);
	return map;
}

static struct pair *pair_find(struct node *map, const char *key)
{
	for (size_t i = 0; i < map->n; i++)
		if (!strcmp(map->pairs[i].key, key))
			return &map->pairs[i];
	return &map->pairs[map->n++];
}

/* `model: NAME` with a key below it means `model: {base: NAME, …}`. */
static void keep_name(const struct edit *e, struct node *map, struct node *old)
{
	if (old && old->shape == SHAPE_SCALAR && old->scalar == SCALAR_STRING && !strcmp(e->seg[0].name, "model"))
		map->pairs[map->n++] = (struct pair){ "base", old->loc, old };
}

static struct node *apply(const struct edit *e, struct node *old, size_t depth)
{
	struct node *map;
	struct pair *pair;

	if (depth == e->n)
		return e->value;
	map = map_copy(e->a, old, e->seg[depth].loc);
	if (depth == 1) {
		map->pairs = memcpy(NEWN(e->a, struct pair, map->n + 2), map->pairs, map->n * sizeof *map->pairs);
		keep_name(e, map, old);
	}
	pair = pair_find(map, e->seg[depth].name);
	*pair = (struct pair){ e->seg[depth].name, e->seg[depth].loc, apply(e, pair->value, depth + 1) };
	return map;
}

/* Cuts "a.b.c" before the equals sign into segments. */
static bool split(struct edit *e, const struct source *src, size_t len)
{
	size_t from = 0, word;

	for (; from < len && e->n < COUNT(e->seg); from += word + 1) {
		word = strcspn(src->text + from, ".=");
		if (word == 0)
			return false;
		e->seg[e->n++] = (struct segment){ arena_strndup(e->a, src->text + from, word),
						   { src, 1, (int)from + 1, (int)word } };
	}
	return e->n > 0 && from == len + 1;
}

const struct node *plan_set(struct arena *a, struct diag *d, const struct node *root, const char *text, size_t number)
{
	struct source *src = NEW(a, struct source);
	struct edit *e = NEW(a, struct edit);
	size_t len = strcspn(text, "=");
	const struct node *value;

	*src = (struct source){ arena_printf(a, "--set #%zu", number), text, strlen(text), true };
	e->a = a;
	if (!text[len] || strchr(text, '\n') || !split(e, src, len)) {
		diag_error(d, (struct loc){ src, 1, 1, 1 }, "wanted PATH=VALUE, such as train.micro_batch=2");
		return NULL;
	}
	if (root->shape != SHAPE_MAP)
		return root;
	value = text[len + 1] ? node_parse(a, d, src, len + 1) : NULL;
	if (!value && text[len + 1])
		return NULL;
	e->value = NEW(a, struct node);
	*e->value = value ? *value : (struct node){ .shape = SHAPE_SCALAR, .text = "", .total = 1,
						    .loc = { src, 1, (int)len + 1, 1 } };
	return apply(e, map_copy(a, root, root->loc), 0);
}

const struct node *node_merge(struct arena *a, const struct node *base, const struct node *over)
{
	struct node *map = map_copy(a, base, over->loc);

	map->pairs = memcpy(NEWN(a, struct pair, map->n + over->n + 1), map->pairs, map->n * sizeof *map->pairs);
	for (size_t i = 0; i < over->n; i++) {
		struct pair *pair = pair_find(map, over->pairs[i].key);
		const struct node *old = pair->value, *now = over->pairs[i].value;

		*pair = over->pairs[i];
		if (old && old->shape == SHAPE_MAP && now->shape == SHAPE_MAP) {
			pair->value = NEW(a, struct node);
			*pair->value = *node_merge(a, old, now);
		}
	}
	return map;
}
