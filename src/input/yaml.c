/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * YAML documents as nodes; the only user of libyaml.  The event interface
 * leaves marks, duplicate keys, aliases and the meaning of scalars to us.
 * Aliases share nodes, and what they would expand to is counted, so that a
 * small text cannot stand for a huge tree. */
#include "input/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { ANCHORS_MAX = 1000 };

struct anchor { const char *name; struct node *node; };

struct reader {
	struct arena *a;
	struct diag *d;
	const struct source *src;
	size_t offset;                 /* bytes of src before the document, all in its first line */
	int col0;                      /* … in columns */
	yaml_parser_t p;
	VEC(struct anchor) anchors;
	size_t nodes;                  /* aliases count as often as they are used */
};

static struct loc loc_at(const struct reader *r, yaml_mark_t m, int len)
{
	return (struct loc){ r->src, (int)m.line + 1, (int)m.column + 1 + (m.line == 0 ? r->col0 : 0), len };
}

static struct loc event_loc(const struct reader *r, const yaml_event_t *e)
{
	bool one_line = e->end_mark.line == e->start_mark.line && e->type == YAML_SCALAR_EVENT;

	return loc_at(r, e->start_mark, one_line ? (int)(e->end_mark.column - e->start_mark.column) : 1);
}

/* A reader error knows only its byte. */
static struct loc byte_loc(const struct reader *r, size_t byte)
{
	struct loc l = { r->src, 1, 1, 1 };

	for (size_t i = 0; i < byte && i < r->src->len; i++) {
		if (r->src->text[i] == '\n') {
			l.line++;
			l.col = 0;
		}
		l.col += ((unsigned char)r->src->text[i] & 0xc0) != 0x80;
	}
	return l;
}

/* Whether the mark is at a tab that only blanks precede. */
static bool tab_indented(const struct reader *r, yaml_mark_t m)
{
	const char *line = r->src->text + r->offset;

	for (size_t n = m.line; n > 0 && line; n--)
		line = (line = strchr(line, '\n')) ? line + 1 : NULL;
	return line && strspn(line, " ") == m.column && line[m.column] == '\t';
}

static void syntax_error(struct reader *r)
{
	yaml_parser_t *p = &r->p;
	const char *what = p->problem ? p->problem : "not YAML";

	if (p->error == YAML_READER_ERROR) {
		diag_error(r->d, byte_loc(r, r->offset + p->problem_offset), "%s", what);
		if (strstr(what, "UTF-8"))
			diag_hint(r->d, "wanted UTF-8 text");
	} else if (r->src->bare) {
		diag_error(r->d, (struct loc){ r->src, 1, (int)r->src->len + 1, 1 }, "%s", what);
	} else if (tab_indented(r, p->problem_mark)) {
		diag_error(r->d, loc_at(r, p->problem_mark, 1), "a tab in the indentation");
		diag_hint(r->d, "indent with blanks");
	} else {
		diag_error(r->d, loc_at(r, p->problem_mark, 1), "%s", what);
		if (p->context && p->context_mark.line != p->problem_mark.line)
			diag_hint(r->d, "%s that begins in line %d", p->context, (int)p->context_mark.line + 1);
	}
}

static bool next(struct reader *r, yaml_event_t *e)
{
	if (yaml_parser_parse(&r->p, e))
		return true;
	syntax_error(r);
	return false;
}

/* ---- scalars: YAML 1.2 core schema */

static bool among(const char *s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(s, words[i]))
			return true;
	return false;
}

static enum scalar number_kind(const char *s)
{
	size_t n, frac = 0;
	enum scalar kind = SCALAR_INT;

	if (s[0] == '0' && s[1] == 'x' && s[2])
		return s[2 + strspn(s + 2, "0123456789abcdefABCDEF")] ? SCALAR_STRING : SCALAR_INT;
	if (s[0] == '0' && s[1] == 'o' && s[2])
		return s[2 + strspn(s + 2, "01234567")] ? SCALAR_STRING : SCALAR_INT;
	s += *s == '-' || *s == '+';
	if (!strcmp(s, ".inf") || !strcmp(s, ".Inf") || !strcmp(s, ".INF"))
		return SCALAR_REAL;
	n = strspn(s, "0123456789");
	s += n;
	if (*s == '.') {
		frac = strspn(++s, "0123456789");
		s += frac;
		kind = SCALAR_REAL;
	}
	if (n + frac == 0)
		return SCALAR_STRING;
	if (*s == 'e' || *s == 'E') {
		s += 1 + (s[1] == '-' || s[1] == '+');
		n = strspn(s, "0123456789");
		if (n == 0)
			return SCALAR_STRING;
		s += n;
		kind = SCALAR_REAL;
	}
	return *s ? SCALAR_STRING : kind;
}

static enum scalar scalar_kind(const char *s)
{
	static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };
	static const char *const bools[] = { "true", "True", "TRUE", "false", "False", "FALSE" };
	static const char *const nans[] = { ".nan", ".NaN", ".NAN" };

	if (among(s, nulls, COUNT(nulls)))
		return SCALAR_NULL;
	if (among(s, bools, COUNT(bools)))
		return SCALAR_BOOL;
	if (among(s, nans, COUNT(nans)))
		return SCALAR_REAL;
	return number_kind(s);
}

struct node *node_scalar(struct arena *a, const char *text, struct loc loc)
{
	struct node *n = NEW(a, struct node);

	*n = (struct node){ .shape = SHAPE_SCALAR, .scalar = scalar_kind(text), .text = text, .loc = loc, .total = 1 };
	return n;
}

/* ---- the tree */

static struct node *read_value(struct reader *r, yaml_event_t *e, unsigned depth);

static bool count_nodes(struct reader *r, const struct loc loc, size_t n)
{
	r->nodes = r->nodes > NODES_MAX ? r->nodes : r->nodes + n;
	if (r->nodes <= NODES_MAX)
		return true;
	diag_error(r->d, loc, "more than %d values, aliases expanded", NODES_MAX);
	return false;
}

static struct node *node_new(struct reader *r, const yaml_event_t *e, enum shape shape, const yaml_char_t *tag)
{
	struct node *n = NEW(r->a, struct node);

	*n = (struct node){ .shape = shape, .loc = event_loc(r, e), .total = 1 };
	if (!count_nodes(r, n->loc, 1))
		return NULL;
	if (tag && strcmp((const char *)tag, "!") != 0) {
		diag_error(r->d, n->loc, "tags are not used here");
		return NULL;
	}
	return n;
}

static struct node *read_scalar(struct reader *r, const yaml_event_t *e)
{
	struct node *n = node_new(r, e, SHAPE_SCALAR, e->data.scalar.tag);

	if (!n)
		return NULL;
	n->text = arena_strndup(r->a, (const char *)e->data.scalar.value, e->data.scalar.length);
	if (strlen(n->text) != e->data.scalar.length) {
		diag_error(r->d, n->loc, "a NUL character in a text");
		return NULL;
	}
	n->scalar = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? scalar_kind(n->text) : SCALAR_STRING;
	return n;
}

static struct node *read_alias(struct reader *r, const yaml_event_t *e)
{
	const char *name = (const char *)e->data.alias.anchor;

	for (size_t i = r->anchors.n; i-- > 0;)
		if (!strcmp(r->anchors.v[i].name, name)) {
			struct node *n = r->anchors.v[i].node;

			return count_nodes(r, event_loc(r, e), n->total) ? n : NULL;
		}
	diag_error(r->d, event_loc(r, e), "unknown anchor '%s'", name);
	return NULL;
}

static struct node *read_sequence(struct reader *r, const yaml_event_t *start, unsigned depth)
{
	struct node *n = node_new(r, start, SHAPE_SEQ, start->data.sequence_start.tag), *item;
	VEC(struct node *) v = { 0 };
	yaml_event_t e;

	if (!n)
		return NULL;
	while (next(r, &e)) {
		if (e.type == YAML_SEQUENCE_END_EVENT) {
			yaml_event_delete(&e);
			n->items = v.v;
			n->n = v.n;
			return n;
		}
		item = read_value(r, &e, depth);
		if (!item)
			return NULL;
		n->total += item->total;
		*VEC_PUSH(r->a, &v) = item;
	}
	return NULL;
}

static bool read_key(struct reader *r, const yaml_event_t *e, struct pair *pair)
{
	struct loc loc = event_loc(r, e);

	if (e->type != YAML_SCALAR_EVENT) {
		diag_error(r->d, loc, "a key must be a word");
		return false;
	}
	pair->key = arena_strdup(r->a, (const char *)e->data.scalar.value);
	pair->loc = loc;
	if (strlen(pair->key) != e->data.scalar.length) {
		diag_error(r->d, loc, "a NUL character in a key");
		return false;
	}
	if (!strcmp(pair->key, "<<") && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
		diag_error(r->d, loc, "merge keys ('<<') are not used here");
		diag_hint(r->d, "write the keys out");
		return false;
	}
	return true;
}

static int by_key(const void *x, const void *y)
{
	const struct pair *a = *(const struct pair *const *)x, *b = *(const struct pair *const *)y;
	int c = strcmp(a->key, b->key);

	return c ? c : a < b ? -1 : a > b;
}

static void report_duplicates(struct reader *r, const struct node *map)
{
	const struct pair **v = NEWN(r->a, const struct pair *, map->n + 1);

	for (size_t i = 0; i < map->n; i++)
		v[i] = &map->pairs[i];
	qsort(v, map->n, sizeof *v, by_key);
	for (size_t i = 1; i < map->n; i++)
		if (!strcmp(v[i]->key, v[i - 1]->key)) {
			diag_error(r->d, v[i]->loc, "duplicate key '%s'", v[i]->key);
			diag_hint(r->d, "first in line %d", v[i - 1]->loc.line);
		}
}

static struct node *read_mapping(struct reader *r, const yaml_event_t *start, unsigned depth)
{
	struct node *n = node_new(r, start, SHAPE_MAP, start->data.mapping_start.tag);
	VEC(struct pair) v = { 0 };
	struct pair pair = { 0 };
	yaml_event_t e;
	bool ok;

	if (!n)
		return NULL;
	while (next(r, &e)) {
		if (e.type == YAML_MAPPING_END_EVENT) {
			yaml_event_delete(&e);
			n->pairs = v.v;
			n->n = v.n;
			report_duplicates(r, n);
			return n;
		}
		ok = read_key(r, &e, &pair);
		yaml_event_delete(&e);
		if (!ok || !next(r, &e))
			return NULL;
		pair.value = read_value(r, &e, depth);
		if (!pair.value)
			return NULL;
		n->total += pair.value->total;
		*VEC_PUSH(r->a, &v) = pair;
	}
	return NULL;
}

/* Takes the event that begins a value, and deletes it; NULL after an error. */
static struct node *read_value(struct reader *r, yaml_event_t *e, unsigned depth)
{
	const yaml_char_t *anchor = NULL;
	struct node *n = NULL;

	if (depth >= DEPTH_MAX) {
		diag_error(r->d, event_loc(r, e), "nested deeper than %d levels", DEPTH_MAX);
	} else if (e->type == YAML_ALIAS_EVENT) {
		n = read_alias(r, e);
	} else if (e->type == YAML_SCALAR_EVENT) {
		anchor = e->data.scalar.anchor;
		n = read_scalar(r, e);
	} else if (e->type == YAML_SEQUENCE_START_EVENT) {
		anchor = e->data.sequence_start.anchor;
		n = read_sequence(r, e, depth + 1);
	} else {
		anchor = e->data.mapping_start.anchor;
		n = read_mapping(r, e, depth + 1);
	}
	if (n && anchor && r->anchors.n == ANCHORS_MAX) {
		diag_error(r->d, n->loc, "more than %d anchors", ANCHORS_MAX);
		n = NULL;
	}
	if (n && anchor)
		*VEC_PUSH(r->a, &r->anchors) = (struct anchor){ arena_strdup(r->a, (const char *)anchor), n };
	yaml_event_delete(e);
	return n;
}

static const struct node *read_document(struct reader *r)
{
	const struct node *n = NULL;
	yaml_event_t e;
	bool end = false;

	while (!end && next(r, &e)) {
		end = e.type == YAML_STREAM_END_EVENT;
		if (e.type == YAML_DOCUMENT_START_EVENT && n) {
			diag_error(r->d, event_loc(r, &e), "a second document; a file holds one");
			yaml_event_delete(&e);
			return NULL;
		}
		if (e.type == YAML_STREAM_START_EVENT || e.type == YAML_DOCUMENT_START_EVENT ||
		    e.type == YAML_DOCUMENT_END_EVENT || end) {
			yaml_event_delete(&e);
			continue;
		}
		n = read_value(r, &e, 0);
		if (!n)
			return NULL;
	}
	if (end && !n)
		diag_error(r->d, (struct loc){ .src = r->src }, "the file is empty");
	return end ? n : NULL;
}

const struct node *yaml_parse(struct arena *a, struct diag *d, const struct source *src, size_t offset)
{
	struct reader r = { .a = a, .d = d, .src = src, .offset = offset };
	size_t before = diag_count(d, SEV_ERROR);
	const struct node *n;

	if (!yaml_parser_initialize(&r.p)) {
		diag_error(d, (struct loc){ .src = src }, "out of memory");
		return NULL;
	}
	for (size_t i = 0; i < offset; i++)
		r.col0 += ((unsigned char)src->text[i] & 0xc0) != 0x80;
	yaml_parser_set_encoding(&r.p, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.p, (const unsigned char *)src->text + offset, src->len - offset);
	n = read_document(&r);
	yaml_parser_delete(&r.p);
	return diag_count(d, SEV_ERROR) == before ? n : NULL;
}
