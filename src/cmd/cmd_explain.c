/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * memplan explain: what the peak of a plan is made of, why one tensor is
 * there, or what an optimization does. */
#include "cmd/cmd.h"
#include "opt/opt.h"
#include "plan/plan.h"
#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { O_FORMULA, O_WHY, O_TOP, WIDTH = 100, INDENT = 12 };
static const struct cmd_option options[] = {
	[O_FORMULA] = { "formula", NULL, NULL, "print the peak as a closed form in the plan's dimensions, with their values" },
	[O_WHY] = { "why", "TENSOR", NULL, "print the rule, the formula, the ops that make and keep this tensor" },
	[O_TOP] = { "top", "N", NULL, "number of tensors to list; default: all" },
};

/* ---- an optimization */

static void put_names(FILE *f, const char *what, const char *const *names)
{
	if (!names || !*names)
		return;
	fprintf(f, "%-*s", INDENT, what);
	for (size_t i = 0; names[i]; i++)
		fprintf(f, "%s%s", i ? ", " : "", names[i]);
	fputc('\n', f);
}

static void put_knob(FILE *f, const struct field *k, const struct style *st)
{
	struct sb b = { .a = st->a };
	sb_printf(&b, "%s", k->doc ? k->doc : "");
	if (k->unit)
		sb_printf(&b, " (%s)", k->unit);
	for (size_t i = 0; i < k->nchoice; i++)
		sb_printf(&b, "%s%s", i ? " | " : "; one of ", k->choices[i].name);
	if (k->deflt)
		sb_printf(&b, "; default %s", k->deflt);
	fprintf(f, "  %-18s ", k->name);
	words_wrap(f, sb_str(&b), 21, WIDTH, st);
}

static void explain_opt(FILE *f, const struct opt *o, const struct style *st)
{
	fprintf(f, "%s: %s (%s)\n\n", words_paint(st, PAINT_BOLD, o->name), o->summary, opt_group_names[o->group]);
	if (o->doc) {
		words_wrap(f, o->doc, 0, WIDTH, st);
		fputc('\n', f);
	}
	fprintf(f, o->nfield ? "memory.%s: true, or a mapping of\n" : "memory.%s: true\n", o->name);
	for (size_t i = 0; i < o->nfield; i++)
		put_knob(f, &o->fields[i], st);
	put_names(f, "needs", o->needs);
	put_names(f, "conflicts", o->conflicts);
}

/* ---- a plan */

static int explain_plan(const struct args *args, const struct format *fmt, const struct result *r, const struct style *st)
{
	const char *why = args->value[O_WHY], *near;
	if (why) {
		if (explain_why(args->out, r, why, &near, st))
			return EXIT_FITS;
		return near ? usage_error("explain", "no tensor '%s' in this plan; did you mean '%s'?", why, near)
			    : usage_error("explain", "no tensor '%s' in this plan; 'memplan explain PLAN' lists them", why);
	}
	if (args->value[O_FORMULA])
		explain_formula(args->out, r, st);
	else
		report_alive(args->out, fmt, r, st);
	return EXIT_FITS;
}

static int unknown_operand(const struct args *args)
{
	const char **names = NEWN(args->a, const char *, nopt + 1);
	for (size_t i = 0; i < nopt; i++)
		names[i] = opts[i]->name;
	const char *near = nearest(args->operand[0], names, nopt);
	return near ? usage_error("explain", "no plan and no optimization '%s'; did you mean '%s'?", args->operand[0], near)
		    : usage_error("explain", "no plan and no optimization '%s'", args->operand[0]);
}

/* Options that would be read and then say nothing. */
static int check_options(const struct args *args, const struct format *fmt, const struct opt *o)
{
	bool formula = args->value[O_FORMULA], why = args->value[O_WHY];
	if (formula && why)
		return usage_error("explain", "--formula and --why are two questions: ask one");
	if ((formula || why) && o)
		return usage_error("explain", "%s wants a plan, '%s' is an optimization", formula ? "--formula" : "--why", o->name);
	if ((formula || why || o) && fmt != format_find("text"))
		return usage_error("explain", "%s is text only", formula ? "--formula" : why ? "--why" : o->name);
	return EXIT_FITS;
}

static int run(const struct args *args)
{
	struct style st = { .a = args->a, .unit = args->unit, .color = args->color, .utf8 = style_wants_utf8() };
	const char *name = args->operand[0], *top = args->value[O_TOP];
	const struct format *fmt = format_find(args->format ? args->format : "text");
	const struct opt *o = opt_find(name);
	if (!fmt)
		return usage_error("explain", "unknown format '%s'", args->format);
	if (top && (strspn(top, "0123456789") != strlen(top) || !*top || strlen(top) > 9))
		return usage_error("explain", "--top %s: wanted a number", top);
	if (check_options(args, fmt, o) != EXIT_FITS)
		return EXIT_INPUT;
	st.top = top ? (size_t)atol(top) : 0;
	if (o) {
		explain_opt(args->out, o, &st);
		return EXIT_FITS;
	}
	if (strcmp(name, "-") && !strpbrk(name, "/.") && access(name, F_OK))
		return unknown_operand(args);
	struct diag *d = diag_new(args->a);
	const struct spec *spec = spec_read(args->a, d, name, args->set, args->nset);
	const struct result *r = spec ? plan(spec, args->a, d) : NULL;
	diag_print(d, stderr);
	return r ? explain_plan(args, fmt, r, &st) : diag_status(d);
}

const struct cmd cmd_explain = {
	.name = "explain", .operands = "PLAN|OPTIMIZATION", .summary = "what is alive at the peak and why; what an optimization does",
	.doc = "With a plan: every tensor that is alive at the peak, the peak as a formula (--formula), or why one tensor is "
	       "there (--why).  With the name of an optimization: what it does and how it is set.",
	.takes = TAKES_SET | TAKES_FORMAT | TAKES_OUTPUT | TAKES_UNITS | TAKES_COLOR,
	.options = options, .noption = COUNT(options), .min_operand = 1, .max_operand = 1, .run = run,
};
