/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * memplan predict: will it fit, by how much, and what makes the peak. */
#include "cmd/cmd.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { O_RANK, O_TOP, O_STRICT, O_EXIT_ZERO, O_DUMP };
static const char *const dumps[] = { "graph", NULL };
static const struct cmd_option options[] = {
	[O_RANK] = { "rank", "N|last|all", NULL, "also print the peak of rank N, of the last rank or of every kind of rank" },
	[O_TOP] = { "top", "N", NULL, "number of tensors to list; 0 is all (text: 8, other formats: all)" },
	[O_STRICT] = { "strict", NULL, NULL,
		"exit with 3 when the plan fits only if what is not modelled takes nothing" },
	[O_EXIT_ZERO] = { "exit-zero", NULL, NULL, "exit with 0 also when the plan does not fit" },
	[O_DUMP] = { "dump", "graph", dumps, "print the graph in place of the prediction, for developers" },
};

static bool parse_number(const char *s, uint64_t *n)
{
	char *end;
	errno = 0;
	*n = strtoull(s, &end, 10);
	return *s >= '0' && *s <= '9' && !*end && !errno;
}

static int bad_rank(const struct args *args, const struct spec *spec)
{
	return usage_error("predict", "--rank %s: wanted a number below %llu, last or all", args->value[O_RANK],
			   (unsigned long long)spec->hw.gpus);
}

static int read_rank(const struct args *args, const struct spec *spec, struct style *st)
{
	const char *s = args->value[O_RANK];
	uint64_t n;
	st->rank = RANK_FULLEST;
	if (!s)
		return 0;
	if (!strcmp(s, "all"))
		st->rank = RANK_ALL;
	else if (!strcmp(s, "last"))
		st->rank = (int64_t)spec->hw.gpus - 1;
	else if (parse_number(s, &n) && n < spec->hw.gpus)
		st->rank = (int64_t)n;
	else
		return bad_rank(args, spec);
	return 0;
}

static int verdict_status(const struct args *args, const struct result *r)
{
	bool certain = r->reserved_known && r->nnot_modelled == 0;
	if (!r->fits)
		return args->value[O_EXIT_ZERO] ? EXIT_FITS : EXIT_NO;
	return args->value[O_STRICT] && !certain ? EXIT_NO_ANSWER : EXIT_FITS;
}

static int print_result(const struct args *args, const struct format *fmt, const struct result *r, struct style *st)
{
	int status = read_rank(args, r->spec, st);
	if (status)
		return status;
	if (args->value[O_DUMP])
		graph_dump(r->graph, args->out);
	else if (!args->quiet)
		report_predict(args->out, fmt, r, st);
	return verdict_status(args, r);
}

static int run(const struct args *args)
{
	struct style st = { .a = args->a, .unit = args->unit, .color = args->color, .utf8 = style_wants_utf8() };
	const struct format *fmt = format_find(args->format ? args->format : "text");
	struct diag *d = diag_new(args->a);
	uint64_t top = fmt && fmt->predict == predict_text ? TOP_OF_TEXT : 0;
	if (!fmt)
		return usage_error("predict", "unknown format '%s'", args->format);
	if (args->value[O_TOP] && !parse_number(args->value[O_TOP], &top))
		return usage_error("predict", "--top %s: wanted a number", args->value[O_TOP]);
	st.top = (size_t)top;
	const struct spec *spec = spec_read(args->a, d, args->operand[0], args->set, args->nset);
	const struct result *r = spec ? plan(spec, args->a, d) : NULL;
	diag_print(d, stderr);
	return r ? print_result(args, fmt, r, &st) : diag_status(d);
}

const struct cmd cmd_predict = {
	.name = "predict", .operands = "PLAN", .summary = "the peak of a training step, the verdict and the breakdown",
	.doc = "Reads a plan and says whether its training step fits on its GPUs, by how much, where in the step the peak is "
	       "and which tensors make it.  Exit status 0: fits, 1: does not fit.",
	.takes = TAKES_ALL, .options = options, .noption = COUNT(options), .min_operand = 1, .max_operand = 1, .run = run,
};
