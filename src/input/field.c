/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The field engine: reads a mapping into a struct by the rows of a field
 * table, and remembers where each value came from. */
#include "input/field.h"

#include "input/node.h"
#include "input/yaml.h"

#include <float.h>
#include <string.h>

enum { LISTED_NAMES = 12 };

static void *at(void *base, size_t offset)
{
	return (char *)base + offset;
}

static const void *at_const(const void *base, size_t offset)
{
	return (const char *)base + offset;
}

static const char *path_join(struct arena *a, const char *path, const char *name)
{
	return *path ? arena_printf(a, "%s.%s", path, name) : name;
}

/* ---- names */

static const char *names_list(struct arena *a, const char *const *names, size_t n)
{
	struct sb b = { .a = a };

	for (size_t i = 0; i < n; i++)
		sb_printf(&b, "%s%s", i ? ", " : "", names[i]);
	return sb_str(&b);
}

void names_hint(struct diag *d, const char *found, const char *const *names, size_t n)
{
	const char *near = nearest(found, names, n);

	if (near)
		diag_hint(d, "did you mean '%s'?", near);
	else if (n > 0 && n <= LISTED_NAMES)
		diag_hint(d, "known: %s", names_list(diag_arena(d), names, n));
}

static const char **field_names(struct arena *a, const struct field *f, size_t n)
{
	const char **names = NEWN(a, const char *, n + 1);

	for (size_t i = 0; i < n; i++)
		names[i] = f[i].name;
	return names;
}

static const char **choice_names(struct arena *a, const struct field *f)
{
	const char **names = NEWN(a, const char *, f->nchoice + 1);

	for (size_t i = 0; i < f->nchoice; i++)
		names[i] = f->choices[i].name;
	return names;
}

/* ---- one value */

static void wrong(struct field_reader *r, const struct node *v, const char *path, const char *wanted)
{
	diag_error(r->d, v->loc, "'%s' wants %s, found %s", path, wanted, node_describe(r->a, v));
}

static bool is_word(const struct node *v, const char *word)
{
	return v->shape == SHAPE_SCALAR && !strcmp(v->text, word);
}

static bool find_choice(struct field_reader *r, const struct node *v, const char *path,
			const struct field *f, int *out)
{
	for (size_t i = 0; v->shape == SHAPE_SCALAR && i < f->nchoice; i++)
		if (!strcmp(v->text, f->choices[i].name)) {
			*out = (int)i;
			return true;
		}
	wrong(r, v, path, arena_printf(r->a, "one of %s", names_list(r->a, choice_names(r->a, f), f->nchoice)));
	if (v->shape == SHAPE_SCALAR) {
		const char *near = nearest(v->text, choice_names(r->a, f), f->nchoice);

		if (near)
			diag_hint(r->d, "did you mean '%s'?", near);
	}
	return false;
}

static void read_bool(struct field_reader *r, const struct node *v, const char *path,
		      const struct field *f, bool *out)
{
	int i;

	if (f->nchoice == 0)
		value_bool(r->d, v, path, out);
	else if (find_choice(r, v, path, f, &i))
		*out = i == 1;
}

static void read_uint(struct field_reader *r, const struct node *v, const char *path,
		      const struct field *f, uint64_t *out)
{
	if (f->off && (is_word(v, "off") || is_word(v, "0")))
		*out = 0;
	else
		value_uint(r->d, v, path, (uint64_t)f->min, f->max > 0 ? (uint64_t)f->max : UINT64_MAX, out);
}

static void read_real(struct field_reader *r, const struct node *v, const char *path,
		      const struct field *f, double *out)
{
	if (f->off && is_word(v, "off"))
		*out = 0;
	else
		value_real(r->d, v, path, f->min, f->max > 0 ? f->max : DBL_MAX, out);
}

static void read_percent(struct field_reader *r, const struct node *v, const char *path,
			 const struct field *f, double *out)
{
	size_t len = v->shape == SHAPE_SCALAR ? strlen(v->text) : 0;
	const struct node *number = v;
	bool share = len > 1 && v->text[len - 1] == '%';
	double x;

	if (share)
		number = node_scalar(r->a, arena_strndup(r->a, v->text, len - 1), v->loc);
	if (!share || !scalar_real(number, &x) || x < f->min || x > f->max)
		wrong(r, v, path, arena_printf(r->a, "a share with its %%, from %g%% to %g%%", f->min, f->max));
	else
		*out = x;
}

static void read_bytes(struct field_reader *r, const struct node *v, const char *path,
		       const struct field *f, uint64_t *out)
{
	uint64_t bytes;
	bool unit = v->shape == SHAPE_SCALAR && strpbrk(v->text, "Bb");

	if (f->off && is_word(v, "off"))
		*out = 0;
	else if (!unit || !parse_bytes(v->text, &bytes) || (double)bytes < f->min)
		wrong(r, v, path, "a size with its unit, such as 80GiB");
	else
		*out = bytes;
}

static void read_strings(struct field_reader *r, const struct node *v, const char *path, struct strings *out)
{
	if (v->shape != SHAPE_SEQ) {
		wrong(r, v, path, "a list such as [a, b]");
		return;
	}
	out->v = NEWN(r->a, const char *, v->n + 1);   /* NULL-ended */
	for (size_t i = 0; i < v->n; i++)
		if (value_string(r->d, v->items[i], path, &out->v[out->n]))
			out->n++;
}

static void read_uints(struct field_reader *r, const struct node *v, const char *path, const struct field *f,
		       struct uints *out)
{
	if (v->shape != SHAPE_SEQ) {
		wrong(r, v, path, "a list such as [8, 8]");
		return;
	}
	out->v = NEWN(r->a, uint64_t, v->n);
	for (; out->n < v->n; out->n++)
		read_uint(r, v->items[out->n], path, f, &out->v[out->n]);
}

void field_read_value(struct field_reader *r, const struct node *v, const char *path,
		      const struct field *f, void *out)
{
	void *p = at(out, f->offset);

	switch (f->type) {
	case FIELD_UINT: read_uint(r, v, path, f, p); break;
	case FIELD_REAL: read_real(r, v, path, f, p); break;
	case FIELD_BOOL: read_bool(r, v, path, f, p); break;
	case FIELD_PERCENT: read_percent(r, v, path, f, p); break;
	case FIELD_BYTES: read_bytes(r, v, path, f, p); break;
	case FIELD_CHOICE: find_choice(r, v, path, f, p); break;
	case FIELD_STRING: value_string(r->d, v, path, p); break;
	case FIELD_STRINGS: read_strings(r, v, path, p); break;
	case FIELD_UINTS: read_uints(r, v, path, f, p); break;
	case FIELD_MAP: fields_read(r, v, v->loc, path, f->fields, f->nfield, p); break;
	case FIELD_ANY: break;
	}
}

/* ---- a mapping */

static void unknown_key(struct field_reader *r, const struct pair *p, const char *path,
			const struct field *f, size_t n)
{
	if (*path)
		diag_error(r->d, p->loc, "unknown key '%s' in '%s'", p->key, path);
	else
		diag_error(r->d, p->loc, "unknown key '%s'", p->key);
	names_hint(r->d, p->key, field_names(r->a, f, n), n);
}

void fields_check_keys(struct field_reader *r, const struct node *map, const char *path,
		       const struct field *f, size_t n)
{
	for (size_t i = 0; map && i < map->n; i++) {
		size_t k = 0;

		while (k < n && strcmp(f[k].name, map->pairs[i].key) != 0)
			k++;
		if (k == n)
			unknown_key(r, &map->pairs[i], path, f, n);
	}
}

static const char *preset_find(const struct field_reader *r, const char *path)
{
	for (size_t i = 0; i < r->npreset; i++)
		if (!strcmp(r->presets[i].path, path))
			return r->presets[i].value;
	return NULL;
}

static void read_omitted(struct field_reader *r, struct loc where, const char *path,
			 const struct field *f, void *out, struct effective *e)
{
	const char *preset = preset_find(r, path), *text = preset ? preset : f->deflt;

	e->origin = preset ? ORIGIN_PROFILE : f->computed && !text ? ORIGIN_COMPUTED : ORIGIN_DEFAULT;
	if (text)
		field_read_value(r, node_scalar(r->a, text, where), path, f, out);
	else if (!f->computed)
		diag_error(r->d, where, "missing key '%s'", path);
}

static void read_field(struct field_reader *r, const struct node *map, struct loc where, const char *path,
		       const struct field *f, void *out)
{
	const struct pair *pair = node_pair(map, f->name);
	const struct node *v = node_get(map, f->name);
	struct effective e = { path, f, out, ORIGIN_FILE, v ? f->type == FIELD_MAP ? pair->loc : v->loc : where };
	size_t errors = diag_count(r->d, SEV_ERROR);

	if (f->type == FIELD_ANY)
		return;
	where = e.loc;
	if (f->loc_offset)
		*(struct loc *)at(out, f->loc_offset) = where;
	if (f->given_offset)
		*(bool *)at(out, f->given_offset) = v != NULL;
	if (f->type == FIELD_MAP) {
		if (v || !f->given_offset)
			fields_read(r, v, where, path, f->fields, f->nfield, at(out, f->offset));
		return;
	}
	if (v)
		field_read_value(r, v, path, f, out);
	else
		read_omitted(r, where, path, f, out, &e);
	r->damaged = r->damaged || diag_count(r->d, SEV_ERROR) > errors;
	*VEC_PUSH(r->a, &r->values) = e;
}

void fields_read(struct field_reader *r, const struct node *map, struct loc where, const char *path,
		 const struct field *f, size_t n, void *out)
{
	if (node_is_null(map))
		map = NULL;
	if (map && map->shape != SHAPE_MAP) {
		if (*path)
			wrong(r, map, path, "a mapping");
		else
			diag_error(r->d, map->loc, "wanted a mapping, found %s", node_describe(r->a, map));
		r->damaged = true;
		return;
	}
	fields_check_keys(r, map, path, f, n);
	for (size_t i = 0; i < n; i++)
		read_field(r, map, where, path_join(r->a, path, f[i].name), &f[i], out);
}

struct effective *effective_find(struct field_reader *r, const char *path)
{
	for (size_t i = 0; i < r->values.n; i++)
		if (!strcmp(r->values.v[i].path, path))
			return &r->values.v[i];
	return NULL;
}

/* ---- printing */

static const char *print_bytes(struct arena *a, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	size_t i = 0;

	while (bytes > 0 && bytes % 1024 == 0 && i + 1 < COUNT(units)) {
		bytes /= 1024;
		i++;
	}
	return arena_printf(a, "%llu%s", (unsigned long long)bytes, units[i]);
}

static const char *print_uints(struct arena *a, const struct uints *u)
{
	struct sb b = { .a = a };

	for (size_t i = 0; i < u->n; i++)
		sb_printf(&b, "%s%llu", i ? ", " : "", (unsigned long long)u->v[i]);
	return arena_printf(a, "[%s]", sb_str(&b));
}

static const char *print_choice(const struct field *f, int i)
{
	return i >= 0 && (size_t)i < f->nchoice ? f->choices[i].name : "?";
}

const char *field_print(struct arena *a, const struct field *f, const void *base)
{
	const void *p = at_const(base, f->offset);
	uint64_t u;
	bool b;

	switch (f->type) {
	case FIELD_UINT:
		u = *(const uint64_t *)p;
		return u == 0 && f->off ? "off" : arena_printf(a, "%llu", (unsigned long long)u);
	case FIELD_REAL:
		return *(const double *)p == 0.0 && f->off ? "off" : arena_printf(a, "%g", *(const double *)p);
	case FIELD_BOOL:
		b = *(const bool *)p;
		return f->nchoice ? print_choice(f, b) : b ? "true" : "false";
	case FIELD_PERCENT: return arena_printf(a, "%g%%", *(const double *)p);
	case FIELD_BYTES:
		u = *(const uint64_t *)p;
		return u == 0 && f->off ? "off" : print_bytes(a, u);
	case FIELD_CHOICE: return print_choice(f, *(const int *)p);
	case FIELD_STRING: return *(const char *const *)p ? *(const char *const *)p : "";
	case FIELD_STRINGS: {
		const struct strings *s = p;

		return arena_printf(a, "[%s]", names_list(a, s->v, s->n));
	}
	case FIELD_UINTS: return print_uints(a, p);
	case FIELD_MAP: case FIELD_ANY: break;
	}
	return "";
}
