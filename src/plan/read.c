/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Reading a plan: the tree with its --set edits, the fields, then what plans
 * name: the model, the GPU and the optimizations. */
#include "plan/schema.h"

#include "input/data.h"
#include "input/gpu.h"
#include "input/model.h"
#include "kernel/kernel.h"
#include "opt/opt.h"
#include "plan/plan.h"

#include <string.h>
#include <unistd.h>

struct loc plan_loc(struct plan_reader *p, const char *path)
{
	const struct effective *e = effective_find(&p->r, path);

	return e ? e->loc : p->root->loc;
}

bool plan_given(struct plan_reader *p, const char *path)
{
	const struct effective *e = effective_find(&p->r, path);

	return e && e->origin == ORIGIN_FILE;
}

/* ---- files that a plan names */

/* A path in a plan is relative to the plan, one on the command line to the working folder. */
static const char *path_from(struct arena *a, const char *word, struct loc loc)
{
	const char *slash = loc.src && !loc.src->bare ? strrchr(loc.src->name, '/') : NULL;

	if (*word == '/' || !slash)
		return word;
	return arena_printf(a, "%.*s/%s", (int)(slash - loc.src->name), loc.src->name, word);
}

static const char *stem(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

	return dot && dot > name ? arena_strndup(a, name, (size_t)(dot - name)) : name;
}

/* The data file that a word means: a path, or a name in the data folder.  NULL after an error. */
static const struct node *data_read(struct plan_reader *p, enum data_kind kind, const char *word, struct loc loc)
{
	struct arena *a = p->r.a;
	bool is_path = data_is_path(word);
	const char *path = is_path ? path_from(a, word, loc) : data_path(a, kind, word);
	const char *const *names;
	size_t n;

	if (is_path && access(path, F_OK)) {
		diag_error(p->r.d, loc, "no file '%s'", path);
		return NULL;
	}
	if (!path) {
		names = data_names(a, p->r.d, kind, &n);
		if (n == 0)
			return NULL;
		diag_error(p->r.d, loc, "unknown %s '%s'", data_defs[kind].what, word);
		if (nearest(word, names, n))
			diag_hint(p->r.d, "did you mean '%s'?", nearest(word, names, n));
		else
			diag_hint(p->r.d, "'memplan list %s' prints all", data_defs[kind].list);
		return NULL;
	}
	return node_read_as(a, p->r.d, path, is_path ? path : arena_printf(a, "%s/%s", data_defs[kind].folder,
									  strrchr(path, '/') + 1));
}

static struct loc value_loc(const struct node *map, const char *key, struct loc fallback)
{
	const struct node *v = node_get(map, key);

	return v ? v->loc : fallback;
}

/* ---- model */

/* The pairs of an inline model without the key that names its base. */
static const struct node *without(struct arena *a, const struct node *map, const char *key)
{
	struct node *rest = NEW(a, struct node);

	*rest = *map;
	rest->pairs = NEWN(a, struct pair, map->n + 1);
	rest->n = 0;
	for (size_t i = 0; i < map->n; i++)
		if (strcmp(map->pairs[i].key, key) != 0)
			rest->pairs[rest->n++] = map->pairs[i];
	return rest;
}

/* {base: NAME, …} and {name: NAME, …} change a model of the data folder; {…} and {name: any word, …} are whole. */
static const struct node *inline_model(struct plan_reader *p, const struct node *v, const char **name)
{
	struct arena *a = p->r.a;
	const char *key = node_get(v, "base") ? "base" : node_get(v, "name") ? "name" : NULL, *word = NULL;
	const struct node *base;
	struct loc loc = value_loc(v, key ? key : "", v->loc);
	bool whole = node_get(v, "model_type") != NULL;

	*name = "inline";
	if (!key)
		return v;
	if (!node_string(p->r.d, v, key, &word))
		return NULL;
	*name = stem(a, word);
	v = without(a, v, key);
	if (!strcmp(key, "name") && whole)
		return v;
	base = data_read(p, DATA_MODEL, word, loc);
	return base && base->shape == SHAPE_MAP ? node_merge(a, base, v) : base;
}

static void read_model(struct plan_reader *p)
{
	const struct node *v = node_get(p->root, "model"), *config;
	const char *name = NULL;

	if (!v) {
		diag_error(p->r.d, p->root->loc, "missing key 'model'");
		diag_hint(p->r.d, "a name of 'memplan list models', a path or a mapping");
		return;
	}
	if (v->shape == SHAPE_MAP) {
		config = inline_model(p, v, &name);
	} else {
		if (!value_string(p->r.d, v, "model", &name))
			return;
		config = data_read(p, DATA_MODEL, name, v->loc);
		name = data_is_path(name) ? stem(p->r.a, name) : name;
	}
	if (config && model_from_node(p->r.a, p->r.d, config, name, &p->s->model)) {
		p->file.model = config;
		p->s->model.loc = v->loc;
	}
}

/* ---- GPU */

static void read_gpu(struct plan_reader *p)
{
	const char *name = p->s->hw.gpu_name;
	const struct node *n = name ? data_read(p, DATA_GPU, name, plan_loc(p, "hardware.gpu")) : NULL;

	if (n && !gpu_from_node(p->r.a, p->r.d, n, &p->s->hw.gpu))
		p->r.damaged = true;
	if (name && data_is_path(name))
		p->s->hw.gpu_name = stem(p->r.a, name);
	p->s->hw.gpu.name = p->s->hw.gpu_name;
}

/* ---- memory: optimizations in the order of opts[] */

static bool is_switch(const struct node *v, const char *word, const char *boolean)
{
	return v->shape == SHAPE_SCALAR && (!strcmp(v->text, word) || !strcmp(v->text, boolean));
}

static void read_choice(struct plan_reader *p, const struct node *memory, const struct opt *opt)
{
	const struct pair *pair = node_pair(memory, opt->name);
	const struct node *v = node_get(memory, opt->name);
	const char *path = arena_printf(p->r.a, "memory.%s", opt->name);
	bool on = v && is_switch(v, "on", "true");
	void *knobs;

	if (!v || is_switch(v, "off", "false"))
		return;
	if (!on && v->shape != SHAPE_MAP) {
		diag_error(p->r.d, v->loc, "'%s' wants true, off or a mapping, found %s", path, node_describe(p->r.a, v));
		return;
	}
	knobs = arena_alloc(p->r.a, opt->knob_size + 1);
	*VEC_PUSH(p->r.a, &p->s->memory) = (struct choice){ opt, knobs, pair->loc };
	fields_read(&p->r, on ? NULL : v, pair->loc, path, opt->fields, opt->nfield, knobs);
}

static void read_memory(struct plan_reader *p, const struct field *row)
{
	const struct node *memory = NULL;

	if (!node_map(p->r.d, p->root, row->name, &memory))
		return;
	fields_check_keys(&p->r, memory, row->name, row->fields, row->nfield);
	for (size_t i = 0; i < nopt; i++)
		read_choice(p, memory, opts[i]);
}

static const struct choice *chosen(const struct spec *s, const char *name)
{
	for (size_t i = 0; i < s->memory.n; i++)
		if (!strcmp(s->memory.v[i].opt->name, name))
			return &s->memory.v[i];
	return NULL;
}

static void check_choice(struct plan_reader *p, const struct choice *c)
{
	for (const char *const *n = c->opt->needs; n && *n; n++)
		if (!chosen(p->s, *n))
			diag_error(p->r.d, c->loc, "memory.%s needs memory.%s", c->opt->name, *n);
	for (const char *const *n = c->opt->conflicts; n && *n; n++)
		if (chosen(p->s, *n))
			diag_error(p->r.d, c->loc, "memory.%s and memory.%s exclude each other", c->opt->name, *n);
	if (c->opt->check)
		c->opt->check(p->s, c->knobs, c->loc, p->r.d);
}

/* ---- the whole */

/* The framework's defaults: its kernels and its presets. */
static void use_profile(struct plan_reader *p)
{
	const struct node *v = node_get(p->root, "framework");
	const struct profile *pr = &profiles[0];
	VEC(struct preset) all = { 0 };

	for (size_t i = 0; v && v->shape == SHAPE_SCALAR && i < nprofile; i++)
		if (!strcmp(profiles[i].name, v->text))
			pr = &profiles[i];
	for (size_t i = 0; i < pr->npreset; i++)
		*VEC_PUSH(p->r.a, &all) = pr->presets[i];
	for (size_t op = 0; op < K_N; op++)
		*VEC_PUSH(p->r.a, &all) = (struct preset){ arena_printf(p->r.a, "kernels.%s", kernels[op].name),
							   kernels[op].rows[0].name };
	p->r.presets = all.v;
	p->r.npreset = all.n;
}

static const struct field *row_named(const struct field *rows, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

static void read_tree(struct plan_reader *p)
{
	size_t n;
	const struct field *rows = plan_fields(p->r.a, &n);

	use_profile(p);
	fields_read(&p->r, p->root, p->root->loc, "", rows, n, p->s);
	if (p->root->shape != SHAPE_MAP)
		return;
	read_model(p);
	read_gpu(p);
	read_memory(p, row_named(rows, n, "memory"));
	if (p->r.damaged)
		return;
	plan_complete(p);
	plan_check(p);
	for (size_t i = 0; p->file.model && i < p->s->memory.n; i++)
		check_choice(p, &p->s->memory.v[i]);
}

struct plan_file plan_read(struct arena *a, struct diag *d, const char *path, const char *const *set, size_t nset)
{
	return plan_from(a, d, node_read(a, d, path), set, nset);
}

struct plan_file plan_from(struct arena *a, struct diag *d, const struct node *root, const char *const *set, size_t nset)
{
	struct plan_reader p = { .r = { .a = a, .d = d }, .s = NEW(a, struct spec), .root = root };
	const struct node *edited;

	if (!p.root)
		return p.file;
	for (size_t i = 0; i < nset; i++) {
		edited = plan_set(a, d, p.root, set[i], i + 1);
		if (edited)
			p.root = edited;
	}
	read_tree(&p);
	if (diag_status(d) == 0)
		p.file.spec = p.s;
	p.file.values = p.r.values.v;
	p.file.nvalue = p.r.values.n;
	return p.file;
}

const struct spec *spec_read(struct arena *a, struct diag *d, const char *path, const char *const *set, size_t nset)
{
	return plan_read(a, d, path, set, nset).spec;
}
