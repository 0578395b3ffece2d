/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * memplan check: is this file a good plan, model or calibration, and with
 * --origin where every effective value comes from. */
#include "cmd/cmd.h"
#include "input/gpu.h"
#include "input/model.h"
#include "kernel/kernel.h"
#include "kernel/params.h"
#include "plan/schema.h"
#include "report/report.h"

#include <string.h>

enum { O_ORIGIN };
static const struct cmd_option options[] = {
	[O_ORIGIN] = { "origin", NULL, NULL, "print every effective value of a plan with the place it comes from" },
};

/* ---- --origin */

static const char *place(struct arena *a, struct loc l)
{
	return l.src->bare ? l.src->name : arena_printf(a, "%s:%d:%d", l.src->name, l.line, l.col);
}

static const char *origin_text(struct arena *a, const struct spec *s, const struct effective *e)
{
	switch (e->origin) {
	case ORIGIN_FILE: return place(a, e->loc);
	case ORIGIN_PROFILE: return arena_printf(a, "profile %s", profiles[s->framework].name);
	case ORIGIN_COMPUTED: return arena_printf(a, "computed: %s", e->field->computed);
	case ORIGIN_DEFAULT: break;
	}
	return "default";
}

static void add_row(struct arena *a, struct table *t, const char *path, const char *value, const char *origin)
{
	*VEC_PUSH(a, &t->cells) = (struct cell){ .text = path };
	*VEC_PUSH(a, &t->cells) = (struct cell){ .text = value };
	*VEC_PUSH(a, &t->cells) = (struct cell){ .text = origin };
}

/* A model's own keys; what its class fills in is told by the model's family, not here. */
static void add_model(struct arena *a, struct table *t, const char *path, const struct node *n)
{
	if (n->shape == SHAPE_SCALAR)
		add_row(a, t, path, n->text, place(a, n->loc));
	for (size_t i = 0; i < n->n && n->shape == SHAPE_MAP; i++)
		add_model(a, t, arena_printf(a, "%s.%s", path, n->pairs[i].key), n->pairs[i].value);
}

static void add_gpu(struct arena *a, struct table *t, const struct gpu *gpu)
{
	for (size_t i = 0; i < CONST_N; i++) {
		const struct constant *c = &gpu->c[i];

		if (c->set)
			add_row(a, t, arena_printf(a, "gpu.%s.%s", constant_rows[i].section, constant_rows[i].name),
				arena_printf(a, "%llu", (unsigned long long)c->value),
				arena_printf(a, "%s: %s", provenance_names[c->prov], c->source ? c->source : gpu->name));
	}
}

static void print_origins(const struct args *args, const struct plan_file *p)
{
	static const struct column columns[] = {
		{ "key", CELL_TEXT }, { "value", CELL_TEXT }, { "origin", CELL_TEXT },
	};
	const struct style st = { .a = args->a, .color = args->color };
	struct table t = { .schema = "memplan.check/1", .name = "values", .columns = columns, .ncolumn = COUNT(columns) };

	for (size_t i = 0; i < p->nvalue; i++)
		add_row(args->a, &t, p->values[i].path, field_print(args->a, p->values[i].field, p->values[i].base),
			origin_text(args->a, p->spec, &p->values[i]));
	add_model(args->a, &t, "model", p->model);
	add_gpu(args->a, &t, &p->spec->hw.gpu);
	format_find(args->format ? args->format : "text")->table(args->out, &t, &st);
}

/* ---- kinds of files */

static bool check_model(const struct args *args, struct diag *d, const char *path, const struct node *n)
{
	struct model m = { 0 };

	if (!model_from_node(args->a, d, n, path, &m))
		return false;
	if (!args->quiet)
		fprintf(args->out, "%s: a model, %s, %s parameters\n", path, m.model_type,
			fmt_count(args->a, model_parameters(args->a, &m)));
	return true;
}

static bool check_gpu(const struct args *args, struct diag *d, const char *path, const struct node *n)
{
	struct gpu g = { .name = path };

	if (!gpu_from_node(args->a, d, n, &g))
		return false;
	if (!args->quiet)
		fprintf(args->out, "%s: a calibration, %s, %s\n", path, g.product ? g.product : "no product name",
			fmt_bytes(args->a, g.c[CONST_CAPACITY].value, args->unit));
	return true;
}

static bool check_plan(const struct args *args, struct diag *d, const char *path)
{
	struct plan_file p = plan_read(args->a, d, path, args->set, args->nset);

	if (!p.spec)
		return false;
	if (args->value[O_ORIGIN])
		print_origins(args, &p);
	else if (!args->quiet)
		fprintf(args->out, "%s: a plan, %s on %llu x %s\n", path, p.spec->model.name,
			(unsigned long long)p.spec->hw.gpus, p.spec->hw.gpu_name);
	return true;
}

/* A mapping with model_type is a model, one whose schema is that of calibrations is one, all else is a plan. */
static int check_file(const struct args *args, const char *path)
{
	struct diag *d = diag_new(args->a), *probe = diag_new(args->a);
	const struct node *n = strcmp(path, "-") ? node_read(args->a, probe, path) : NULL;
	const struct node *schema = node_get(n, "schema");
	bool ok;

	if (node_get(n, "model_type"))
		ok = check_model(args, d, path, n);
	else if (schema && schema->shape == SHAPE_SCALAR && !strncmp(schema->text, "memplan.calibration/", 20))
		ok = check_gpu(args, d, path, n);
	else
		ok = check_plan(args, d, path);
	diag_print(d, stderr);
	return ok ? 0 : diag_status(d);
}

static int run(const struct args *args)
{
	int status = 0, one;

	for (size_t i = 0; i < args->noperand; i++) {
		one = check_file(args, args->operand[i]);
		status = status ? status : one;
	}
	return status;
}

const struct cmd cmd_check = {
	.name = "check", .operands = "FILE...", .summary = "whether plans, models and calibrations are well formed",
	.doc = "Reads each file as a plan, a model or a calibration, whichever it is, and reports all that is wrong with it.  "
	       "Exit status 0: nothing is.",
	.takes = TAKES_ALL, .options = options, .noption = COUNT(options),
	.min_operand = 1, .max_operand = ANY_NUMBER, .run = run,
};
