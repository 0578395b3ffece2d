/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * JSON documents as nodes; the only user of jansson.  jansson checks the text
 * and reads the values but keeps no places, so a scanner goes through the text
 * beside jansson's tree, which has its keys in the order of the text. */
#include "input/json.h"

#include <jansson.h>
#include <string.h>

struct scanner {
	struct arena *a;
	struct diag *d;
	const struct source *src;
	const char *p;                 /* the text is valid JSON and ends with NUL */
	int line, col;
	size_t nodes;
};

static void step(struct scanner *s)
{
	if (*s->p == '\n') {
		s->line++;
		s->col = 1;
	} else if (((unsigned char)s->p[1] & 0xc0) != 0x80) {
		s->col++;
	}
	s->p++;
}

/* To the next token; commas and colons say nothing that the tree does not. */
static struct loc token(struct scanner *s)
{
	while (*s->p && strchr(" \t\r\n,:", *s->p))
		step(s);
	return (struct loc){ s->src, s->line, s->col, 1 };
}

/* Over one string, number or word; returns its text. */
static const char *skip_scalar(struct scanner *s, struct loc *loc)
{
	const char *start = s->p;
	int col = s->col;

	if (*s->p == '"') {
		for (step(s); *s->p != '"'; step(s))
			if (*s->p == '\\')
				step(s);
		step(s);
	} else {
		while (*s->p && !strchr(" \t\r\n,]}", *s->p))
			step(s);
	}
	loc->len = s->col - col;
	return arena_strndup(s->a, start, (size_t)(s->p - start));
}

static enum scalar scalar_of(const json_t *j)
{
	switch (json_typeof(j)) {
	case JSON_STRING: return SCALAR_STRING;
	case JSON_INTEGER: return SCALAR_INT;
	case JSON_REAL: return SCALAR_REAL;
	case JSON_TRUE: case JSON_FALSE: return SCALAR_BOOL;
	case JSON_NULL: case JSON_OBJECT: case JSON_ARRAY: break;
	}
	return SCALAR_NULL;
}

static struct node *build(struct scanner *s, json_t *j, unsigned depth);

static bool build_object(struct scanner *s, json_t *j, struct node *n, unsigned depth)
{
	const char *key;
	json_t *value;

	n->pairs = NEWN(s->a, struct pair, json_object_size(j));
	step(s);
	json_object_foreach(j, key, value) {
		struct pair *pair = &n->pairs[n->n];

		pair->key = arena_strdup(s->a, key);
		pair->loc = token(s);
		skip_scalar(s, &pair->loc);
		pair->value = build(s, value, depth + 1);
		if (!pair->value)
			return false;
		n->total += pair->value->total;
		n->n++;
	}
	token(s);
	step(s);
	return true;
}

static bool build_array(struct scanner *s, json_t *j, struct node *n, unsigned depth)
{
	n->items = NEWN(s->a, struct node *, json_array_size(j));
	step(s);
	for (; n->n < json_array_size(j); n->n++) {
		struct node *item = build(s, json_array_get(j, n->n), depth + 1);

		if (!item)
			return false;
		n->total += item->total;
		n->items[n->n] = item;
	}
	token(s);
	step(s);
	return true;
}

static struct node *build(struct scanner *s, json_t *j, unsigned depth)
{
	struct node *n = NEW(s->a, struct node);
	const char *raw;

	*n = (struct node){ .loc = token(s), .total = 1 };
	if (depth >= DEPTH_MAX) {
		diag_error(s->d, n->loc, "nested deeper than %d levels", DEPTH_MAX);
		return NULL;
	}
	if (++s->nodes > NODES_MAX) {
		diag_error(s->d, n->loc, "more than %d values", NODES_MAX);
		return NULL;
	}
	if (json_is_object(j)) {
		n->shape = SHAPE_MAP;
		return build_object(s, j, n, depth) ? n : NULL;
	}
	if (json_is_array(j)) {
		n->shape = SHAPE_SEQ;
		return build_array(s, j, n, depth) ? n : NULL;
	}
	raw = skip_scalar(s, &n->loc);
	n->shape = SHAPE_SCALAR;
	n->scalar = scalar_of(j);
	n->text = json_is_string(j) ? arena_strdup(s->a, json_string_value(j)) : raw;
	return n;
}

/* jansson says "duplicate object key near '"a"'" and where that token ends. */
static void syntax_error(struct diag *d, struct arena *a, const struct source *src, const json_error_t *e)
{
	struct loc loc = { src, e->line > 0 ? e->line : 1, e->column > 0 ? e->column : 1, 1 };
	const char *near = strstr(e->text, " near '");
	char *text = near ? arena_strndup(a, e->text, (size_t)(near - e->text)) : arena_strdup(a, e->text);

	if (near) {
		loc.len = 0;
		for (near += strlen(" near '"); near[0] && near[1]; near++)
			loc.len += ((unsigned char)*near & 0xc0) != 0x80;
		loc.col = loc.col > loc.len ? loc.col - loc.len + 1 : 1;
	}
	diag_error(d, loc, "%s", text);
}

const struct node *json_parse(struct arena *a, struct diag *d, const struct source *src)
{
	struct scanner s = { .a = a, .d = d, .src = src, .p = src->text, .line = 1, .col = 1 };
	const struct node *n;
	json_error_t error;
	json_t *j = json_loadb(src->text, src->len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);

	if (!j) {
		syntax_error(d, a, src, &error);
		return NULL;
	}
	n = build(&s, j, 0);
	json_decref(j);
	return n;
}
