/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * memplan whatif: a plan against changed ones. */
#include <stdlib.h>
#include <string.h>

#include "cmd/cmd.h"
#include "input/node.h"
#include "plan/whatif.h"
#include "report/report.h"

enum { O_TRY, O_ALL, O_COMBINE, O_ADVISE };
static const struct cmd_option options[] = {
	[O_TRY] = { "try", "CHANGES", NULL,
		"changes to try, separated by commas; each an optimization or PATH=VALUE, joined by + to combine" },
	[O_ALL] = { "all", NULL, NULL, "try every optimization that the plan does not have" },
	[O_COMBINE] = { "combine", "N", NULL, "with all combinations of up to N of them" },
	[O_ADVISE] = { "advise", NULL, NULL, "find a small combination that fits, and say why" },
};

/* Splits at commas outside brackets: values may be lists. */
static const char **split_changes(struct arena *a, const char *s, size_t *n)
{
	const char **out = NEWN(a, const char *, strlen(s) + 1);
	int depth = 0;
	*n = 0;
	for (const char *start = s, *p = s;; p++) {
		depth += *p == '[' || *p == '{' ? 1 : *p == ']' || *p == '}' ? -1 : 0;
		if (*p && (*p != ',' || depth > 0))
			continue;
		if (p > start)
			out[(*n)++] = arena_strndup(a, start, (size_t)(p - start));
		if (!*p)
			return out;
		start = p + 1;
	}
}

/* The changes of --try; NULL and errors when one is neither an optimization nor PATH=VALUE. */
static const char **known_changes(const struct args *args, struct diag *d, size_t *n)
{
	size_t part;
	bool good = true;
	const char **change = split_changes(args->a, args->value[O_TRY], n);
	for (size_t i = 0; i < *n; i++)
		good = whatif_sets(args->a, d, change[i], &part) && good;
	return good ? change : NULL;
}

static int print_trials(const struct args *args, const struct format *fmt, const struct whatif *w, const struct style *st)
{
	if (!args->quiet)
		report_whatif(args->out, fmt, w, st);
	bool any = w->base.fits;
	for (size_t i = 0; i < w->ntrial; i++)
		any = any || (w->trial[i].answered && w->trial[i].fits);
	return any ? EXIT_FITS : EXIT_NO;
}

static int advise_plan(const struct args *args, struct diag *d, const struct node *root, const struct style *st)
{
	const struct whatif *w = whatif_advise(args->a, d, root, args->set, args->nset);
	diag_print(d, stderr);
	if (!w)
		return diag_status(d);
	if (!args->quiet)
		report_advice(args->out, w, st);
	return w->base.fits || (w->nadvice && w->trial[w->nadvice - 1].fits) ? EXIT_FITS : EXIT_NO;
}

static int run(const struct args *args)
{
	struct style st = { .a = args->a, .unit = args->unit, .color = args->color, .utf8 = style_wants_utf8() };
	const struct format *fmt = format_find(args->format ? args->format : "text");
	struct diag *d = diag_new(args->a);
	const char *most = args->value[O_COMBINE] ? args->value[O_COMBINE] : "1", **change = NULL;
	size_t n = 0;
	if (!fmt)
		return usage_error("whatif", "unknown format '%s'", args->format);
	if (strlen(most) != 1 || *most < '1' || *most > '9')
		return usage_error("whatif", "--combine %s: wanted a number from 1 to 9", most);
	if (!args->value[O_TRY] && !args->value[O_ALL] && !args->value[O_COMBINE] && !args->value[O_ADVISE])
		return usage_error("whatif", "nothing to try: --try CHANGES, --all, --combine N or --advise");
	const struct node *root = node_read(args->a, d, args->operand[0]);
	if (root && args->value[O_ADVISE])
		return advise_plan(args, d, root, &st);
	if (root && args->value[O_TRY])
		change = known_changes(args, d, &n);
	else if (root)
		change = whatif_all(args->a, d, root, args->set, args->nset, (size_t)(*most - '0'), &n);
	const struct whatif *w = change ? whatif_try(args->a, d, root, args->set, args->nset, change, n) : NULL;
	diag_print(d, stderr);
	return w ? print_trials(args, fmt, w, &st) : diag_status(d);
}

const struct cmd cmd_whatif = {
	.name = "whatif", .operands = "PLAN", .summary = "what changes would do to the peak, alone and together",
	.doc = "Plans the base and each change on it, and shows peaks, what went and what came, the shortest step that the "
	       "hardware allows, and for combinations what they save beyond the sum of their parts.  Exit status 0: some line "
	       "fits, 1: none does.",
	.takes = TAKES_ALL, .options = options, .noption = COUNT(options), .min_operand = 1, .max_operand = 1, .run = run,
};
