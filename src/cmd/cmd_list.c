/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * memplan list: the names that a plan can use, from the tables and folders
 * that define them. */
#include "cmd/cmd.h"
#include "input/data.h"
#include "input/gpu.h"
#include "input/model.h"
#include "kernel/kernel.h"
#include "kernel/params.h"
#include "opt/opt.h"
#include "report/report.h"

#include <string.h>

enum { O_MDOC };
static const struct cmd_option options[] = {
	[O_MDOC] = { "mdoc", NULL, NULL, "print in the language of manual pages" },
};

struct listing { struct arena *a; struct table t; struct diag *d; };

static void add_text(struct listing *l, const char *s)
{
	*VEC_PUSH(l->a, &l->t.cells) = (struct cell){ .text = s };
}

static void add_number(struct listing *l, uint64_t n)
{
	*VEC_PUSH(l->a, &l->t.cells) = (struct cell){ .number = n };
}

/* ---- one function per list */

static const struct column model_columns[] = {
	{ "name", CELL_TEXT }, { "type", CELL_TEXT }, { "parameters", CELL_COUNT }, { "active", CELL_COUNT },
};

static void list_models(struct listing *l)
{
	size_t n;
	const char *const *names = data_names(l->a, l->d, DATA_MODEL, &n);

	for (size_t i = 0; i < n; i++) {
		const struct node *config = node_read(l->a, l->d, data_path(l->a, DATA_MODEL, names[i]));
		struct model m = { 0 };

		if (!config || !model_from_node(l->a, l->d, config, names[i], &m))
			continue;
		add_text(l, names[i]);
		add_text(l, m.model_type);
		add_number(l, model_parameters(l->a, &m));
		add_number(l, model_active_parameters(l->a, &m));
	}
}

static const struct column gpu_columns[] = {
	{ "name", CELL_TEXT }, { "product", CELL_TEXT }, { "capacity", CELL_BYTES }, { "provenance", CELL_TEXT },
};

static void list_gpus(struct listing *l)
{
	size_t n;
	const char *const *names = data_names(l->a, l->d, DATA_GPU, &n);

	for (size_t i = 0; i < n; i++) {
		const struct node *file = node_read(l->a, l->d, data_path(l->a, DATA_GPU, names[i]));
		struct gpu g = { .name = names[i] };

		if (!file || !gpu_from_node(l->a, l->d, file, &g))
			continue;
		add_text(l, names[i]);
		add_text(l, g.product);
		add_number(l, g.c[CONST_CAPACITY].value);
		add_text(l, provenance_names[g.c[CONST_CAPACITY].prov]);
	}
}

static const struct column kernel_columns[] = {
	{ "operation", CELL_TEXT }, { "name", CELL_TEXT }, { "summary", CELL_TEXT }, { "source", CELL_TEXT },
};

static void list_kernels(struct listing *l)
{
	for (size_t op = 0; op < K_N; op++)
		for (size_t i = 0; i < kernels[op].nrow; i++) {
			const struct kernel_row *row = &kernels[op].rows[i];

			add_text(l, kernels[op].name);
			add_text(l, row->name);
			add_text(l, row->summary);
			add_text(l, row->source);
		}
}

static const struct column opt_columns[] = {
	{ "name", CELL_TEXT }, { "group", CELL_TEXT }, { "summary", CELL_TEXT },
};

static void list_optimizations(struct listing *l)
{
	for (size_t i = 0; i < nopt; i++) {
		add_text(l, opts[i]->name);
		add_text(l, opt_group_names[opts[i]->group]);
		add_text(l, opts[i]->summary);
	}
}

enum { LIST_N = 4 };
static const char *const list_names[LIST_N + 1] = { "models", "gpus", "kernels", "optimizations", NULL };
static const struct list_row {
	const struct column *columns; size_t ncolumn;
	size_t key;                    /* columns that name a row, for the manual */
	void (*fill)(struct listing *l);
} lists[LIST_N] = {
	{ model_columns, COUNT(model_columns), 1, list_models },
	{ gpu_columns, COUNT(gpu_columns), 1, list_gpus },
	{ kernel_columns, COUNT(kernel_columns), 2, list_kernels },
	{ opt_columns, COUNT(opt_columns), 1, list_optimizations },
};

/* ---- printing */

static void print_mdoc(FILE *f, const struct table *t, size_t key, struct arena *a)
{
	size_t n = t->ncolumn;
	const struct style st = { .a = a };

	fputs(".Bl -tag -width Ds -compact\n", f);
	for (size_t i = 0; i < t->cells.n; i += n) {
		fputs(".It", f);
		for (size_t c = 0; c < key; c++)
			fprintf(f, " Cm %s", t->cells.v[i + c].text);
		putc('\n', f);
		for (size_t c = key; c < n; c++) {
			const struct cell *cell = &t->cells.v[i + c];

			fprintf(f, "%s%s", c > key ? ", " : "", t->columns[c].kind == CELL_TEXT ? cell->text :
				t->columns[c].kind == CELL_COUNT ? fmt_count(a, cell->number) :
				fmt_bytes(a, cell->number, st.unit));
		}
		putc('\n', f);
	}
	fputs(".El\n", f);
}

static int run(const struct args *args)
{
	size_t i = 0;
	struct listing l = { .a = args->a, .d = diag_new(args->a) };
	const struct style st = { .a = args->a, .unit = args->unit, .color = args->color, .utf8 = style_wants_utf8() };

	while (i + 1 < LIST_N && strcmp(list_names[i], args->operand[0]) != 0)
		i++;
	l.t = (struct table){ .schema = "memplan.list/1", .name = list_names[i], .columns = lists[i].columns,
			      .ncolumn = lists[i].ncolumn };
	lists[i].fill(&l);
	diag_print(l.d, stderr);
	if (args->value[O_MDOC])
		print_mdoc(args->out, &l.t, lists[i].key, args->a);
	else
		format_find(args->format ? args->format : "text")->table(args->out, &l.t, &st);
	return diag_status(l.d);
}

const struct cmd cmd_list = {
	.name = "list", .operands = "WHAT", .summary = "the names that a plan can use",
	.doc = "Lists the models and GPUs of the data folder, the kernels of each operation, or the optimizations.",
	.takes = TAKES_FORMAT | TAKES_OUTPUT | TAKES_UNITS | TAKES_COLOR, .options = options, .noption = COUNT(options),
	.min_operand = 1, .max_operand = 1, .operand_names = list_names, .run = run,
};
