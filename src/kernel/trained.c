/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Frozen parameters and adapters.  Names match as peft 0.21.2 does it: a
 * target is a module's name or its end after a dot; where no target is given,
 * every linear module of the decoder layers is one ("all-linear"). */
#include "kernel/trained.h"

#include <string.h>

#include "input/field.h"

/* Parts of a model that have a name of their own, whatever the class calls its modules. */
static const struct { const char *name; enum param_site site; } parts[] = {
	{ "embedding", SITE_EMBEDDING }, { "decoder", SITE_LAYER }, { "head", SITE_HEAD }, { "vision", SITE_VISION },
};

/* ---- names */

static bool ends_with(const char *s, const char *end, const char *rest)
{
	size_t n = strlen(s), k = strlen(end) + strlen(rest);
	return n >= k && (n == k || s[n - k - 1] == '.') && !strncmp(s + n - k, end, strlen(end)) &&
		!strcmp(s + n - strlen(rest), rest);
}

/* "q" stands for "q_proj" */
static bool is_target(const char *module, const char *target)
{
	return ends_with(module, target, "") || ends_with(module, target, "_proj");
}

/* Whether the words of `part` stand next to each other among those of a dotted name. */
static bool has_words(const char *name, const char *part)
{
	size_t n = strlen(part);
	for (const char *at = name; n > 0 && (at = strstr(at, part)); at++)
		if ((at == name || at[-1] == '.') && (at[n] == '.' || at[n] == '\0'))
			return true;
	return false;
}

static bool is_part(const struct param *p, const char *full, const char *part)
{
	for (size_t i = 0; i < COUNT(parts); i++)
		if (!strcmp(parts[i].name, part))
			return parts[i].site == p->site;
	return has_words(full, part);
}

static const char *module_name(struct arena *a, const struct param *p)
{
	const char *dot = strrchr(p->name, '.');
	return dot ? arena_strndup(a, p->name, (size_t)(dot - p->name)) : p->name;
}

static bool gets_adapter(struct arena *a, const struct lora *l, const struct param *p)
{
	if (!p->linear || p->frozen)
		return false;
	for (size_t i = 0; i < l->targets.n; i++)
		if (is_target(module_name(a, p), l->targets.v[i]))
			return true;
	return l->targets.n == 0;
}

/* ---- lists */

static void freeze(const struct train *t, struct param *p, const char *full)
{
	for (size_t i = 0; i < t->freeze.n; i++)
		p->frozen = p->frozen || is_part(p, full, t->freeze.v[i]);
}

static void push_adapter(struct arena *a, struct param_list *l, const struct param *p, const char *suffix,
			 size_ref rows, size_ref columns)
{
	*VEC_PUSH(a, l) = (struct param){ .name = arena_printf(a, "%s.%s", module_name(a, p), suffix), .site = p->site,
		.ndim = 2, .dim = { rows, columns }, .copies = p->copies, .adapter = true };
}

static void push_base(struct arena *a, struct param_list *l, struct param p)
{
	p.frozen = true;
	*VEC_PUSH(a, l) = p;
}

/* peft tuners/lora/layer.py: base_layer, lora_A, lora_B; only the latter two are trained, and frozen modules have none */
static struct param_list with_adapters(struct arena *a, const struct spec *s, struct param_list in)
{
	struct param_list out = { 0 };
	size_ref r = size_dim(a, "r", s->train.lora.rank, "rank of the adapters");
	for (size_t i = 0; s->train.lora.present && i < in.n; i++) {
		const struct param *p = &in.v[i];
		push_base(a, &out, *p);
		if (!gets_adapter(a, &s->train.lora, p))
			continue;
		const char *bias = arena_printf(a, "%s.bias", module_name(a, p));
		if (i + 1 < in.n && !strcmp(in.v[i + 1].name, bias))
			push_base(a, &out, in.v[++i]);
		push_adapter(a, &out, p, "lora_A.weight", r, p->dim[p->transposed ? 0 : 1]);
		push_adapter(a, &out, p, "lora_B.weight", p->dim[p->transposed ? 1 : 0], r);
	}
	return s->train.lora.present ? out : in;
}

/* A tied head is one parameter with the embedding, which stands first. */
static void freeze_tied(struct param_list *l)
{
	struct param *embedding = NULL;
	for (size_t i = 0; i < l->n; i++) {
		if (!embedding && l->v[i].site == SITE_EMBEDDING)
			embedding = &l->v[i];
		if (embedding && l->v[i].tied)
			embedding->frozen = embedding->frozen || l->v[i].frozen;
	}
}

struct param_list trained_outer(struct arena *a, const struct spec *s, const struct model_dims *d)
{
	struct param_list l = params_outer(a, &s->model, d);
	for (size_t i = 0; i < l.n; i++)
		freeze(&s->train, &l.v[i], l.v[i].name);
	freeze_tied(&l);
	for (size_t i = 0; s->train.lora.present && i < l.n; i++)
		l.v[i].frozen = true;
	return l;
}

static struct param_list frozen_layer(struct arena *a, const struct spec *s, const struct model_dims *d, uint64_t layer)
{
	struct param_list l = params_layer(a, &s->model, d, layer);
	const char *prefix = arena_printf(a, "%s%llu", params_layer_prefix(a, &s->model), (unsigned long long)layer);
	for (size_t i = 0; i < l.n; i++)
		freeze(&s->train, &l.v[i], s->train.freeze.n ? arena_printf(a, "%s.%s", prefix, l.v[i].name) : "");
	return l;
}

struct param_list trained_layer(struct arena *a, const struct spec *s, const struct model_dims *d, uint64_t layer)
{
	return with_adapters(a, s, frozen_layer(a, s, d, layer));
}

uint64_t trained_mask(struct arena *a, const struct spec *s, const struct model_dims *d, uint64_t layer)
{
	uint64_t mask = 0;
	if (s->train.freeze.n == 0)
		return 0;
	struct param_list l = frozen_layer(a, s, d, layer);
	for (size_t i = 0; i < l.n; i++)
		mask |= (uint64_t)l.v[i].frozen << i % 48;
	return mask;
}

/* ---- counts */

static void count(struct parameter_count *c, struct param_list l)
{
	for (size_t i = 0; i < l.n; i++) {
		c->all = add_u64(c->all, param_count(&l.v[i]));
		if (!l.v[i].frozen)
			c->trained = add_u64(c->trained, param_count(&l.v[i]));
	}
}

/* Neighbours are mostly alike. */
struct parameter_count trained_count(struct arena *a, const struct spec *s)
{
	const struct model *m = &s->model;
	struct model_dims d = model_dims(a, m);
	struct parameter_count sum = { 0 }, one = { 0 };
	count(&sum, trained_outer(a, s, &d));
	for (uint64_t i = 0; i < m->layers; i++) {
		bool like = i > 0 && (!m->moe || m->moe[i] == m->moe[i - 1]) && s->train.freeze.n == 0;
		if (!like) {
			one = (struct parameter_count){ 0 };
			count(&one, trained_layer(a, s, &d, i));
		}
		sum.all = add_u64(sum.all, one.all);
		sum.trained = add_u64(sum.trained, one.trained);
	}
	return sum;
}

/* ---- checks */

/* Dense and expert layers have different modules: dense ones stand first. */
static void unknown_target(const struct spec *s, const struct model_dims *dims, const char *target, struct diag *d)
{
	struct arena *a = diag_arena(d);
	VEC(const char *) names = { 0 };
	for (uint64_t k = 0; k < s->model.layers; k += s->model.layers > 1 ? s->model.layers - 1 : 1) {
		struct param_list l = params_layer(a, &s->model, dims, k);
		for (size_t i = 0; i < l.n; i++) {
			const char *module = module_name(a, &l.v[i]), *dot = strrchr(module, '.');
			if (l.v[i].linear && is_target(module, target))
				return;
			if (l.v[i].linear && k == 0)
				*VEC_PUSH(a, &names) = dot ? dot + 1 : module;
		}
	}
	diag_error(d, s->train.lora.loc_targets, "no linear module of %s is called '%s'", s->model.name, target);
	names_hint(d, target, names.v, names.n);
}

static bool known_part(struct arena *a, const struct spec *s, const struct model_dims *d, const char *part)
{
	struct param_list l = params_outer(a, &s->model, d);
	for (size_t i = 0; i < COUNT(parts); i++)
		if (!strcmp(parts[i].name, part))
			return true;
	for (size_t i = 0; i < l.n; i++)
		if (is_part(&l.v[i], l.v[i].name, part))
			return true;
	for (uint64_t k = 0; k < s->model.layers; k++) {
		const char *prefix = arena_printf(a, "%s%llu", params_layer_prefix(a, &s->model), (unsigned long long)k);
		l = params_layer(a, &s->model, d, k);
		for (size_t i = 0; i < l.n; i++)
			if (is_part(&l.v[i], arena_printf(a, "%s.%s", prefix, l.v[i].name), part))
				return true;
	}
	return false;
}

static void unknown_part(const struct spec *s, const struct model_dims *dims, const char *part, struct diag *d)
{
	const char *names[COUNT(parts)];
	if (known_part(diag_arena(d), s, dims, part))
		return;
	for (size_t i = 0; i < COUNT(parts); i++)
		names[i] = parts[i].name;
	diag_error(d, s->train.loc_freeze, "%s has no part or module '%s'", s->model.name, part);
	names_hint(d, part, names, COUNT(parts));
}

void trained_check(const struct spec *s, struct diag *d)
{
	struct arena *a = diag_arena(d);
	struct model_dims dims = model_dims(a, &s->model);
	const struct train *t = &s->train;
	if (!t->lora.present && t->freeze.n == 0)
		return;
	for (size_t i = 0; t->lora.present && i < t->lora.targets.n; i++)
		unknown_target(s, &dims, t->lora.targets.v[i], d);
	for (size_t i = 0; i < t->freeze.n; i++)
		unknown_part(s, &dims, t->freeze.v[i], d);
	if (diag_status(d) == 0 && trained_count(a, s).trained == 0)
		diag_error(d, t->freeze.n ? t->loc_freeze : t->lora.loc, "nothing is left to train");
}
