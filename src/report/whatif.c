/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Changes side by side: one line for the base and one for each change. */
#include <inttypes.h>
#include <string.h>

#include "report/report.h"

static const struct column columns[] = {
	{ "change", CELL_TEXT }, { "verdict", CELL_TEXT }, { "process", CELL_BYTES }, { "saved", CELL_TEXT },
	{ "allocated", CELL_BYTES }, { "peak", CELL_TEXT }, { "step", CELL_TEXT }, { "host pinned", CELL_BYTES },
	{ "interaction", CELL_TEXT }, { "front", CELL_TEXT }, { "gone", CELL_TEXT }, { "came", CELL_TEXT },
};

/* "12.34 GiB", "-1.20 GiB"; machine formats carry the integer */
static const char *signed_bytes(const struct style *st, int64_t n, bool machine)
{
	uint64_t m = n < 0 ? (uint64_t)-n : (uint64_t)n;
	if (machine)
		return arena_printf(st->a, "%" PRId64, n);
	return arena_printf(st->a, "%s%s", n < 0 ? "-" : "", fmt_bytes(st->a, m, st->unit));
}

static const char *step_time(const struct style *st, const struct trial *t, const struct trial *base, bool machine)
{
	double s = t->time.step_s;
	if (s <= 0)
		return NULL;
	if (machine || t == base || base->time.step_s <= 0)
		return arena_printf(st->a, machine ? "%.6f" : "%.3f s", s);
	return arena_printf(st->a, "%.3f s (%+.1f %%)", s, 100 * (s / base->time.step_s - 1));
}

static const char *moved(const struct style *st, const char *name, uint64_t bytes, bool machine)
{
	if (!name)
		return NULL;
	return machine ? arena_printf(st->a, "%s: %" PRIu64, name, bytes)
		       : arena_printf(st->a, "%s %s", name, fmt_bytes(st->a, bytes, st->unit));
}

static void put_trial(struct table *t, const struct trial *x, const struct trial *base, const struct style *st,
		      bool machine)
{
	const char *peak = x->op ? arena_printf(st->a, "%s, %s", window_names[x->window], x->op) : NULL;
	const char *verdict = !x->answered ? "no answer" : x->fits ? "fits" : "does not fit";
	const struct cell row[] = {
		{ .text = x->tokens_change ? arena_printf(st->a, "%s (other batch)", x->label) : x->label },
		{ .text = verdict }, { .number = x->process },
		{ .text = x->answered && x != base ? signed_bytes(st, x->saved, machine) : NULL },
		{ .number = x->allocated }, { .text = peak }, { .text = step_time(st, x, base, machine) },
		{ .number = x->host_pinned },
		{ .text = x->combined ? signed_bytes(st, x->interaction, machine) : NULL },
		{ .text = x->pareto ? "yes" : NULL },
		{ .text = moved(st, x->gone, x->gone_bytes, machine) }, { .text = moved(st, x->came, x->came_bytes, machine) },
	};
	for (size_t c = 0; c < COUNT(row); c++)
		*VEC_PUSH(st->a, &t->cells) = row[c];
}

static void put_reasons(FILE *f, const struct whatif *w)
{
	for (size_t i = 0; i < w->ntrial; i++)
		for (size_t k = 0; k < w->trial[i].nwhy; k++)
			fprintf(f, "%s: %s\n", w->trial[i].label, w->trial[i].why[k]);
}

static void put_notes(FILE *f, const struct whatif *w)
{
	fputs("\nsaved: of process memory; interaction: what a combination saves beyond the sum of its parts; front: no other\n"
	      "line has both less memory and a shorter step", f);
	fputs(w->base.time.known ? "; step: at least, from calibrated rates\n" : "\n", f);
}

void report_whatif(FILE *f, const struct format *fmt, const struct whatif *w, const struct style *st)
{
	struct style m = *st;
	bool machine = fmt->table != table_text;
	struct table t = { .schema = "memplan.whatif/1", .name = "trials", .columns = columns, .ncolumn = COUNT(columns) };
	m.utf8 = st->utf8 && !machine;
	put_trial(&t, &w->base, &w->base, &m, machine);
	for (size_t i = 0; i < w->ntrial; i++)
		put_trial(&t, &w->trial[i], &w->base, &m, machine);
	fmt->table(f, &t, &m);
	if (machine)
		return;
	put_reasons(f, w);
	put_notes(f, w);
}

static const char *group_reason(const struct whatif *w, size_t i, const struct style *st)
{
	const struct trial *t = &w->trial[i], *last = i ? &w->trial[i - 1] : &w->base;
	const char *name = strrchr(t->label, '+');
	return arena_printf(st->a, "%s: %s to %s, takes away %s; the peak is now in %s (%s)", name ? name + 2 : t->label,
			    fmt_bytes(st->a, last->process, st->unit), fmt_bytes(st->a, t->process, st->unit),
			    t->gone ? t->gone : "nothing", window_names[t->window], t->op);
}

void report_advice(FILE *f, const struct whatif *w, const struct style *st)
{
	const struct trial *last = w->nadvice ? &w->trial[w->nadvice - 1] : &w->base;
	if (w->base.fits) {
		fprintf(f, "the plan fits as it is: %s\n", fmt_bytes(st->a, w->base.process, st->unit));
		return;
	}
	for (size_t i = 0; i < w->nadvice; i++)
		fprintf(f, "%zu. %s\n", i + 1, group_reason(w, i, st));
	if (last->fits)
		fprintf(f, "fits with %s\n", last->label);
	else
		fprintf(f, "does not fit even so: %s; %s\n", fmt_bytes(st->a, last->process, st->unit),
			"more GPUs to shard over, a smaller model or shorter sequences are needed");
}
