/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Nodes: reading files into them and asking them for typed values. */
#include "input/node.h"

#include "input/json.h"
#include "input/yaml.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

/* ---- files */

static bool slurp(struct arena *a, FILE *f, struct source *src)
{
	size_t cap = 1 << 16, got;
	char *text = arena_alloc(a, cap + 1);

	while ((got = fread(text + src->len, 1, cap - src->len, f)) > 0) {
		src->len += got;
		if (src->len == cap && cap < (size_t)FILE_MAX * 2) {
			char *bigger = arena_alloc(a, cap * 2 + 1);

			memcpy(bigger, text, src->len);
			text = bigger;
			cap *= 2;
		}
	}
	text[src->len] = 0;
	src->text = text;
	return !ferror(f);
}

static const struct source *source_read(struct arena *a, struct diag *d, const char *path, const char *name)
{
	struct source *src = NEW(a, struct source);
	bool std = !strcmp(path, "-");
	FILE *f = std ? stdin : fopen(path, "rb");
	struct loc nowhere = { .src = src };

	*src = (struct source){ .name = std ? "<stdin>" : arena_strdup(a, name) };
	if (!f || !slurp(a, f, src)) {
		diag_environment(d, nowhere, "cannot be read: %s", strerror(errno));
		src = NULL;
	} else if (src->len > FILE_MAX) {
		diag_error(d, nowhere, "larger than %d MiB", FILE_MAX / 1024 / 1024);
		src = NULL;
	}
	if (f && !std)
		fclose(f);
	return src;
}

static bool looks_like_json(const struct source *src)
{
	size_t n = strlen(src->name);
	const char *p = src->text;

	if (n > 5 && !strcmp(src->name + n - 5, ".json"))
		return true;
	p += strspn(p, " \t\r\n");
	if (*p != '{')
		return false;
	p += 1 + strspn(p + 1, " \t\r\n");
	return *p == '"';
}

const struct node *node_parse(struct arena *a, struct diag *d, const struct source *src, size_t offset)
{
	return offset == 0 && looks_like_json(src) ? json_parse(a, d, src) : yaml_parse(a, d, src, offset);
}

const struct node *node_read_as(struct arena *a, struct diag *d, const char *path, const char *name)
{
	const struct source *src = source_read(a, d, path, name);

	return src ? node_parse(a, d, src, 0) : NULL;
}

const struct node *node_read(struct arena *a, struct diag *d, const char *path)
{
	return node_read_as(a, d, path, path);
}

/* ---- looking */

const struct pair *node_pair(const struct node *map, const char *key)
{
	for (size_t i = 0; map && i < map->n && map->shape == SHAPE_MAP; i++)
		if (!strcmp(map->pairs[i].key, key))
			return &map->pairs[i];
	return NULL;
}

bool node_is_null(const struct node *n)
{
	return !n || (n->shape == SHAPE_SCALAR && n->scalar == SCALAR_NULL);
}

const struct node *node_get(const struct node *map, const char *key)
{
	const struct pair *p = node_pair(map, key);

	return p && !node_is_null(p->value) ? p->value : NULL;
}

const char *node_describe(struct arena *a, const struct node *n)
{
	bool quoted = n->scalar == SCALAR_STRING;

	if (n->shape != SHAPE_SCALAR)
		return n->shape == SHAPE_MAP ? "a mapping" : "a list";
	if (n->scalar == SCALAR_NULL)
		return "nothing";
	if (strlen(n->text) > 40)
		return quoted ? "a long text" : "a long number";
	return quoted ? arena_printf(a, "'%s'", n->text) : n->text;
}

/* ---- typed values.  A wrong one is reported as: 'key' wants WANTED, found FOUND */

static bool wrong(struct diag *d, const struct node *n, const char *what, const char *wanted)
{
	diag_error(d, n->loc, "'%s' wants %s, found %s", what, wanted, node_describe(diag_arena(d), n));
	return false;
}

static const char *uint_wanted(struct arena *a, uint64_t min, uint64_t max)
{
	if (max < UINT64_MAX)
		return arena_printf(a, "an integer from %llu to %llu", (unsigned long long)min, (unsigned long long)max);
	return arena_printf(a, "an integer >= %llu", (unsigned long long)min);
}

bool scalar_uint(const struct node *n, uint64_t *out)
{
	const char *s = n->text;
	int base = 10;
	double real;

	if (n->shape != SHAPE_SCALAR || (n->scalar != SCALAR_INT && n->scalar != SCALAR_REAL) || *s == '-')
		return false;
	if (n->scalar == SCALAR_REAL) {
		real = strtod(s, NULL);
		if (!(real >= 0 && real <= 9007199254740992.0) || real != (double)(uint64_t)real)
			return false;
		*out = (uint64_t)real;
		return true;
	}
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'o')) {
		base = s[1] == 'x' ? 16 : 8;
		s += 2;
	}
	errno = 0;
	*out = strtoull(s, NULL, base);
	return errno == 0;
}

bool scalar_real(const struct node *n, double *out)
{
	uint64_t u;

	if (n->shape != SHAPE_SCALAR || (n->scalar != SCALAR_INT && n->scalar != SCALAR_REAL))
		return false;
	if (n->text[0] == '0' && (n->text[1] == 'x' || n->text[1] == 'o')) {
		if (!scalar_uint(n, &u))
			return false;
		*out = (double)u;
		return true;
	}
	*out = strtod(n->text, NULL);      /* ".inf" and ".nan" read as 0 characters: not numbers here */
	return n->text[strspn(n->text, "+-.")] >= '0' && n->text[strspn(n->text, "+-.")] <= '9' && *out <= DBL_MAX &&
	       *out >= -DBL_MAX;
}

bool value_uint(struct diag *d, const struct node *n, const char *what, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t v;

	if (!scalar_uint(n, &v) || v < min || v > max)
		return wrong(d, n, what, uint_wanted(diag_arena(d), min, max));
	*out = v;
	return true;
}

bool value_real(struct diag *d, const struct node *n, const char *what, double min, double max, double *out)
{
	double v;

	if (!scalar_real(n, &v) || v < min || v > max)
		return wrong(d, n, what, max < DBL_MAX ?
			     arena_printf(diag_arena(d), "a number from %g to %g", min, max) :
			     min > -DBL_MAX ? arena_printf(diag_arena(d), "a number >= %g", min) : "a number");
	*out = v;
	return true;
}

bool value_bool(struct diag *d, const struct node *n, const char *what, bool *out)
{
	if (n->shape != SHAPE_SCALAR || n->scalar != SCALAR_BOOL)
		return wrong(d, n, what, "true or false");
	*out = n->text[0] == 't' || n->text[0] == 'T';
	return true;
}

bool value_string(struct diag *d, const struct node *n, const char *what, const char **out)
{
	if (n->shape != SHAPE_SCALAR)
		return wrong(d, n, what, "a text");
	*out = n->text;
	return true;
}

bool node_uint(struct diag *d, const struct node *map, const char *key, uint64_t min, uint64_t max, uint64_t *out)
{
	const struct node *n = node_get(map, key);

	return n && value_uint(d, n, key, min, max, out);
}

bool node_real(struct diag *d, const struct node *map, const char *key, double min, double max, double *out)
{
	const struct node *n = node_get(map, key);

	return n && value_real(d, n, key, min, max, out);
}

bool node_bool(struct diag *d, const struct node *map, const char *key, bool *out)
{
	const struct node *n = node_get(map, key);

	return n && value_bool(d, n, key, out);
}

bool node_string(struct diag *d, const struct node *map, const char *key, const char **out)
{
	const struct node *n = node_get(map, key);

	return n && value_string(d, n, key, out);
}

static bool shaped(struct diag *d, const struct node *map, const char *key, enum shape shape, const char *wanted,
		   const struct node **out)
{
	const struct node *n = node_get(map, key);

	if (!n)
		return false;
	if (n->shape != shape)
		return wrong(d, n, key, wanted);
	*out = n;
	return true;
}

bool node_map(struct diag *d, const struct node *map, const char *key, const struct node **out)
{
	return shaped(d, map, key, SHAPE_MAP, "a mapping", out);
}

bool node_seq(struct diag *d, const struct node *map, const char *key, const struct node **out)
{
	return shaped(d, map, key, SHAPE_SEQ, "a list", out);
}
