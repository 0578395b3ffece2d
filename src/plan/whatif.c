/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What if: the pure function called once for each change, its answers held
 * against the base. */
#include "plan/whatif.h"

#include <string.h>

#include "opt/opt.h"
#include "plan/schema.h"

enum { MAX_CHANGES = 4096 };

/* ---- changes */

static const char *trimmed(struct arena *a, const char *s, size_t n)
{
	while (n && *s == ' ') {
		s++;
		n--;
	}
	while (n && s[n - 1] == ' ')
		n--;
	return arena_strndup(a, s, n);
}

const char **whatif_sets(struct arena *a, struct diag *d, const char *change, size_t *n)
{
	const char **sets = NEWN(a, const char *, strlen(change) + 1);
	*n = 0;
	for (const char *p = change; *p;) {
		size_t len = strcspn(p, "+");
		const char *part = trimmed(a, p, len);
		const char **names = NEWN(a, const char *, nopt);
		for (size_t i = 0; i < nopt; i++)
			names[i] = opts[i]->name;
		if (strchr(part, '=')) {
			sets[(*n)++] = part;
		} else if (opt_find(part)) {
			sets[(*n)++] = arena_printf(a, "memory.%s=true", part);
		} else {
			const char *near = nearest(part, names, nopt);
			diag_error(d, (struct loc){ 0 }, "'%s' is neither an optimization nor PATH=VALUE%s%s%s", part,
				   near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
			return NULL;
		}
		p += len + (p[len] == '+');
	}
	return sets;
}

/* ---- one plan */

struct session {
	struct arena *a, *scratch;
	struct diag *d;
	const struct node *root;
	const char *const *set; size_t nset;
	const struct result *base;             /* in a */
};

static void keep_errors(struct trial *t, struct arena *a, const struct diag *d)
{
	t->nwhy = diag_count(d, SEV_ERROR);
	t->why = NEWN(a, const char *, t->nwhy + 1);
	for (size_t i = 0; i < t->nwhy; i++)
		t->why[i] = arena_strdup(a, diag_text(d, SEV_ERROR, i));
}

static uint64_t bytes_of(const struct result *r, const struct tensor_bytes *like)
{
	for (size_t i = 0; i < r->ntensor; i++)
		if (r->by_tensor[i].cls == like->cls && !strcmp(r->by_tensor[i].name, like->name))
			return r->by_tensor[i].bytes;
	return 0;
}

/* The tensor of `from` that takes most more there than in `to`. */
static const char *largest_loss(const struct result *from, const struct result *to, uint64_t *bytes)
{
	const char *name = NULL;
	*bytes = 0;
	for (size_t i = 0; i < from->ntensor; i++) {
		uint64_t now = from->by_tensor[i].bytes, then = bytes_of(to, &from->by_tensor[i]);
		if (now > then && now - then > *bytes) {
			*bytes = now - then;
			name = from->by_tensor[i].name;
		}
	}
	return name;
}

static void fill(struct trial *t, struct arena *a, const struct result *r, const struct result *base, struct arena *scratch)
{
	t->answered = true;
	t->fits = r->fits;
	t->allocated = r->allocated;
	t->process = r->process;
	t->allocated_first = r->allocated_first;
	t->allocated_steady = r->allocated_steady;
	t->host_pinned = r->host_pinned;
	t->window = r->peak_window;
	t->op = r->peak_op;
	t->time = clock_step(r->graph, &r->spec->hw.gpu, scratch);
	if (!base)
		return;
	const struct train *x = &r->spec->train, *y = &base->spec->train;
	const char *gone = largest_loss(base, r, &t->gone_bytes), *came = largest_loss(r, base, &t->came_bytes);
	t->gone = gone ? arena_strdup(a, gone) : NULL;
	t->came = came ? arena_strdup(a, came) : NULL;
	t->saved = (int64_t)base->process - (int64_t)r->process;
	t->tokens_change = x->micro_batch != y->micro_batch || x->seq_len != y->seq_len || x->grad_accum != y->grad_accum;
}

/* Plans the base with further --set texts in the scratch arena. */
static const struct result *run(struct session *s, struct diag *d, const char *const *more, size_t nmore)
{
	const char **all = NEWN(s->scratch, const char *, s->nset + nmore + 1);
	if (s->nset)
		memcpy(all, s->set, sizeof *all * s->nset);
	if (nmore)
		memcpy(all + s->nset, more, sizeof *all * nmore);
	const struct spec *spec = plan_from(s->scratch, d, s->root, all, s->nset + nmore).spec;
	return spec ? plan(spec, s->scratch, d) : NULL;
}

static struct trial try_change(struct session *s, const char *change)
{
	struct trial t = { .label = change };
	arena_reset(s->scratch);
	struct diag *d = diag_new(s->scratch);
	t.part = whatif_sets(s->a, d, change, &t.npart);
	const struct result *r = t.part ? run(s, d, t.part, t.npart) : NULL;
	if (r)
		fill(&t, s->a, r, s->base, s->scratch);
	else
		keep_errors(&t, s->a, d);
	return t;
}

/* ---- comparing trials */

static const struct trial *find_part(const struct whatif *w, const char *part)
{
	for (size_t i = 0; i < w->ntrial; i++)
		if (w->trial[i].npart == 1 && w->trial[i].answered && !strcmp(w->trial[i].part[0], part))
			return &w->trial[i];
	return NULL;
}

static void set_interaction(const struct whatif *w, struct trial *t)
{
	int64_t sum = 0;
	for (size_t i = 0; i < t->npart; i++) {
		const struct trial *one = find_part(w, t->part[i]);
		if (!one)
			return;
		sum += one->saved;
	}
	t->combined = t->answered && t->npart > 1;
	t->interaction = t->saved - sum;
}

static bool beaten(const struct trial *t, const struct trial *by)
{
	return by->answered && by->process <= t->process && by->time.step_s <= t->time.step_s &&
		(by->process < t->process || by->time.step_s < t->time.step_s);
}

static void set_pareto(struct whatif *w, struct trial *t)
{
	t->pareto = t->answered && !beaten(t, &w->base);
	for (size_t i = 0; i < w->ntrial && t->pareto; i++)
		t->pareto = !beaten(t, &w->trial[i]);
}

static bool open_session(struct session *s, struct whatif *w)
{
	struct arena *scratch = s->scratch;
	s->scratch = s->a;                     /* the base is looked at to the end */
	s->base = run(s, s->d, NULL, 0);
	s->scratch = scratch;
	w->base.label = "base";
	if (s->base)
		fill(&w->base, s->a, s->base, NULL, scratch);
	return s->base;
}

const struct whatif *whatif_try(struct arena *a, struct diag *d, const struct node *root, const char *const *set,
				size_t nset, const char *const *change, size_t nchange)
{
	struct session s = { .a = a, .scratch = arena_new(), .d = d, .root = root, .set = set, .nset = nset };
	struct whatif *w = NEW(a, struct whatif);
	bool ok = open_session(&s, w);
	w->trial = NEWN(a, struct trial, nchange + 1);
	for (size_t i = 0; ok && i < nchange; i++)
		w->trial[w->ntrial++] = try_change(&s, change[i]);
	for (size_t i = 0; i < w->ntrial; i++)
		set_interaction(w, &w->trial[i]);
	for (size_t i = 0; i < w->ntrial; i++)
		set_pareto(w, &w->trial[i]);
	set_pareto(w, &w->base);
	arena_free(s.scratch);
	return ok ? w : NULL;
}

/* ---- candidates */

static bool has_opt(const struct spec *s, const struct opt *o)
{
	for (size_t i = 0; i < s->memory.n; i++)
		if (s->memory.v[i].opt == o)
			return true;
	return false;
}

static bool listed(const char *const *names, const char *name)
{
	for (; names && *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

static bool conflict(const struct opt *x, const struct opt *y)
{
	return listed(x->conflicts, y->name) || listed(y->conflicts, x->name);
}

struct candidates { struct arena *a; const struct opt *opt[64]; size_t n; const char **out; size_t nout; };

/* All combinations of `left` further candidates from `from` on that go with those chosen. */
static void combine(struct candidates *c, size_t from, size_t left, const struct opt **chosen, size_t nchosen)
{
	for (size_t i = from; i < c->n && c->nout < MAX_CHANGES; i++) {
		bool bad = false;
		struct sb b = { .a = c->a };
		for (size_t k = 0; k < nchosen; k++) {
			bad = bad || conflict(chosen[k], c->opt[i]);
			sb_printf(&b, "%s + ", chosen[k]->name);
		}
		if (bad)
			continue;
		sb_puts(&b, c->opt[i]->name);
		chosen[nchosen] = c->opt[i];
		if (left == 1)
			c->out[c->nout++] = sb_str(&b);
		else
			combine(c, i + 1, left - 1, chosen, nchosen + 1);
	}
}

static struct candidates applicable(struct arena *a, const struct spec *s)
{
	struct candidates c = { .a = a, .out = NEWN(a, const char *, MAX_CHANGES) };
	for (size_t i = 0; i < nopt && c.n < COUNT(c.opt); i++)
		if (!has_opt(s, opts[i]))
			c.opt[c.n++] = opts[i];
	return c;
}

const char **whatif_all(struct arena *a, struct diag *d, const struct node *root, const char *const *set, size_t nset,
			size_t most, size_t *n)
{
	const struct opt *chosen[64];
	const struct spec *s = plan_from(a, d, root, set, nset).spec;
	*n = 0;
	if (!s)
		return NULL;
	struct candidates c = applicable(a, s);
	for (size_t k = 1; k <= most && k <= c.n; k++)
		combine(&c, 0, k, chosen, 0);
	*n = c.nout;
	return c.out;
}

/* ---- advice */

/* Groups of optimizations in the order in which they are tried. */
static const enum opt_group order[] = { GROUP_REDUCE, GROUP_BOUND, GROUP_SHIFT, GROUP_SHORTEN, GROUP_ALLOCATOR,
	GROUP_SHARD, GROUP_PRECISION };

static void advise_group(struct session *s, struct whatif *w, const struct candidates *c, enum opt_group group)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct trial *last = w->nadvice ? &w->trial[w->nadvice - 1] : &w->base;
		if (c->opt[i]->group != group || last->fits)
			continue;
		const char *label = w->nadvice ? arena_printf(s->a, "%s + %s", last->label, c->opt[i]->name)
					       : c->opt[i]->name;
		struct trial t = try_change(s, label);
		if (t.answered && t.process < last->process)
			w->trial[w->nadvice++] = t;
	}
}

const struct whatif *whatif_advise(struct arena *a, struct diag *d, const struct node *root, const char *const *set,
				   size_t nset)
{
	struct session s = { .a = a, .scratch = arena_new(), .d = d, .root = root, .set = set, .nset = nset };
	struct whatif *w = NEW(a, struct whatif);
	bool ok = open_session(&s, w);
	if (ok) {
		struct candidates c = applicable(a, s.base->spec);
		w->trial = NEWN(a, struct trial, c.n + 1);
		for (size_t i = 0; i < COUNT(order); i++)
			advise_group(&s, w, &c, order[i]);
		w->ntrial = w->nadvice;
	}
	arena_free(s.scratch);
	return ok ? w : NULL;
}
