/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The prediction for people: what is asked first comes first (does it fit,
 * by how much), then the four levels of memory, where the peak is and what
 * makes it, then what the answer rests on.  About 40 lines of 100 columns. */
#include "report/report.h"

#include <inttypes.h>
#include <string.h>

enum { WIDTH = 100, INDENT = 14, BAR = 30, NAME_MIN = 20, NAME_MAX = 42, SMALL_SHARE = 200 };

static const char *shown(const struct style *st, uint64_t bytes)
{
	return fmt_bytes(st->a, bytes, st->unit);
}

static const char *label(const struct style *st, const char *s)
{
	return words_paint(st, PAINT_BOLD, arena_printf(st->a, "%-*s", INDENT, s));
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

/* What was asked: model, GPUs, parallelism, batch, precision, and that it is the whole step. */
static void put_scope(FILE *f, const struct result *r, const struct style *st)
{
	const struct spec *s = r->spec;
	const struct train *t = &s->train;
	struct sb b = { .a = st->a };
	sb_printf(&b, "%s, %s parameters", s->model.name ? s->model.name : "model", words_count(r->parameters, st->a));
	if (r->trainable != r->parameters)
		sb_printf(&b, " (%s trained)", words_count(r->trainable, st->a));
	sb_printf(&b, ", on %s; micro-batch %" PRIu64 " of %" PRIu64 " tokens", words_scope(s, st->a),
		  t->micro_batch, t->seq_len);
	if (t->grad_accum > 1)
		sb_printf(&b, ", %" PRIu64 " accumulated", t->grad_accum);
	sb_printf(&b, "; %s", dtypes[s->prec.compute].name);
	if (s->prec.autocast)
		sb_puts(&b, " autocast");
	if (s->prec.params != s->prec.compute)
		sb_printf(&b, " over %s parameters", dtypes[s->prec.params].name);
	sb_puts(&b, "; whole training step on the fullest GPU");
	words_wrap(f, sb_str(&b), 0, WIDTH, st);
}

static void put_verdict(FILE *f, const struct result *r, const struct style *st)
{
	uint64_t gap = r->fits ? r->limit - r->process : r->process - r->limit;
	fputs(r->fits ? words_paint(st, PAINT_GOOD, "FITS") : words_paint(st, PAINT_BAD, "DOES NOT FIT"), f);
	fprintf(f, ": needs %s of %s usable, %s %s (%.1f %%)\n\n", shown(st, r->process), shown(st, r->limit),
		shown(st, gap), r->fits ? "to spare" : "too much", percent(gap, r->limit));
}

static void put_level(FILE *f, const struct style *st, const char *name, const char *value, const char *what)
{
	fprintf(f, "%s%12s   %s\n", label(st, name), value, what);
}

/* A row of ranks[] stands for the ranks from its own to the next row's. */
static void put_ranks(FILE *f, const struct result *r, const struct style *st)
{
	uint64_t gpus = r->spec->hw.gpus;
	for (size_t i = 0; i < r->nrank && st->rank != RANK_FULLEST; i++) {
		uint64_t from = r->ranks[i].rank, to = i + 1 < r->nrank ? r->ranks[i + 1].rank : gpus;
		if (st->rank >= 0 && ((uint64_t)st->rank < from || (uint64_t)st->rank >= to))
			continue;
		fprintf(f, "%s%12s   ", label(st, i && st->rank == RANK_ALL ? "" : "ranks"), shown(st, r->ranks[i].peak_allocated));
		if (st->rank >= 0 || to == from + 1)
			fprintf(f, "rank %" PRIu64, st->rank >= 0 ? (uint64_t)st->rank : from);
		else
			fprintf(f, "ranks %" PRIu64 " to %" PRIu64, from, to - 1);
		fprintf(f, ", stage %" PRIu64 "\n", r->ranks[i].stage);
	}
}

static void put_levels(FILE *f, const struct result *r, const struct style *st)
{
	put_level(f, st, "allocated", shown(st, r->allocated),
		  arena_printf(st->a, "live tensors at the peak (first step %s, steady step %s)",
			       shown(st, r->allocated_first), shown(st, r->allocated_steady)));
	put_level(f, st, "reserved", r->reserved_known ? shown(st, r->reserved) : "not known",
		  r->reserved_known ? "held by the caching allocator" : "no allocator model yet: fragmentation comes on top");
	put_level(f, st, "process", shown(st, r->process),
		  arena_printf(st->a, "%s + context, libraries, communicators: what the verdict compares",
			       r->reserved_known ? "reserved" : "allocated"));
	put_level(f, st, "device", shown(st, r->capacity), r->limit == r->capacity ? "as the driver reports it; no headroom asked for"
		  : arena_printf(st->a, "as the driver reports it; less %g %% headroom: %s usable", r->spec->hw.headroom, shown(st, r->limit)));
	fprintf(f, "%s", label(st, "peak"));
	words_wrap(f, words_peak(r, st->a), INDENT, WIDTH, st);
	put_ranks(f, r, st);
}

static const char *bar(const struct style *st, uint64_t part, uint64_t whole)
{
	struct sb b = { .a = st->a };
	uint64_t n = part >= whole ? BAR : (uint64_t)((double)part / (double)whole * BAR + 0.5);
	for (uint64_t i = 0; i < n; i++)
		sb_puts(&b, st->utf8 ? "█" : "#");
	return sb_str(&b);
}

static void put_class(FILE *f, const struct style *st, const char *name, uint64_t bytes, uint64_t whole)
{
	const char *b = bar(st, bytes, whole);
	fprintf(f, "  %-20s %12s %5.1f %%%s%s\n", name, shown(st, bytes), percent(bytes, whole), *b ? "  " : "", b);
}

/* Classes below half a percent share one line. */
static void put_classes(FILE *f, const struct result *r, const struct style *st)
{
	uint64_t rest = 0;
	size_t nrest = 0, last = 0;
	fprintf(f, "\n%s\n", words_paint(st, PAINT_BOLD, "by class, at the peak"));
	for (size_t i = 0; i < r->nclass; i++) {
		if (r->by_class[i].bytes >= r->allocated / SMALL_SHARE) {
			put_class(f, st, class_names[r->by_class[i].cls], r->by_class[i].bytes, r->allocated);
			continue;
		}
		rest = add_u64(rest, r->by_class[i].bytes);
		nrest++;
		last = i;
	}
	if (nrest)
		put_class(f, st, nrest == 1 ? class_names[r->by_class[last].cls]
			  : arena_printf(st->a, "%zu small classes", nrest), rest, r->allocated);
}

static void put_tensor(FILE *f, const struct tensor_bytes *t, size_t width, const struct style *st)
{
	const char *name = utf8_cut(st->a, t->name, width, st->utf8);
	const char *formula = utf8_cut(st->a, words_formula(st, t->formula), WIDTH - width - 44, st->utf8);
	fprintf(f, "  %s%*s %12s %6" PRIu64 "  %-19s  %s\n", name, (int)(width - utf8_width(name)), "",
		shown(st, t->bytes), t->count, class_names[t->cls], words_paint(st, PAINT_DIM, formula));
}

static void put_tensors(FILE *f, const struct result *r, const struct style *st)
{
	size_t n = st->top && st->top < r->ntensor ? st->top : r->ntensor, width = NAME_MIN;
	for (size_t i = 0; i < n; i++) {
		size_t w = utf8_width(r->by_tensor[i].name);
		width = w > NAME_MAX ? NAME_MAX : w > width ? w : width;
	}
	const char *count = arena_printf(st->a, "%zu of %zu tensors", n, r->ntensor);
	fprintf(f, "\n%s\n", words_paint(st, PAINT_BOLD, arena_printf(st->a, "%-*s %12s %6s  %-19s  formula",
		(int)width + 2, count, "bytes", "count", "class")));
	for (size_t i = 0; i < n; i++)
		put_tensor(f, &r->by_tensor[i], width, st);
}

/* All micro-batches of a window in one line: start of the first, highest peak, end of the last. */
static bool window_sum(const struct result *r, enum window w, bool steady, struct window_peak *out)
{
	bool any = false;
	for (size_t i = 0; i < r->nwindow; i++) {
		const struct window_peak *x = &r->windows[i];
		if (x->window != w || (x->step > 1) != steady)
			continue;
		if (!any)
			*out = *x;
		if (x->peak > out->peak)
			out->peak = x->peak;
		out->end = x->end;
		any = true;
	}
	return any;
}

static void put_window(FILE *f, const struct result *r, const struct style *st, bool any, const struct window_peak *w)
{
	if (!any) {
		fprintf(f, " %12s %12s %12s", "-", "-", "-");
		return;
	}
	const char *peak = arena_printf(st->a, "%12s", shown(st, w->peak));
	fprintf(f, " %12s %s %12s", shown(st, w->start),
		w->peak == r->allocated ? words_paint(st, PAINT_BOLD, peak) : peak, shown(st, w->end));
}

static void put_windows(FILE *f, const struct result *r, const struct style *st)
{
	const char *head = arena_printf(st->a, "%-10s %12s %12s %12s  %12s %12s %12s", "allocated",
					"first start", "peak", "end", "steady start", "peak", "end");
	fprintf(f, "\n%s\n", words_paint(st, PAINT_BOLD, head));
	for (unsigned w = 0; w < WIN_N; w++) {
		struct window_peak first = { 0 }, steady = { 0 };
		bool has_first = window_sum(r, w, false, &first), has_steady = window_sum(r, w, true, &steady);
		if (!has_first && !has_steady)
			continue;
		fprintf(f, "  %-8s", window_names[w]);
		put_window(f, r, st, has_first, &first);
		fputc(' ', f);
		put_window(f, r, st, has_steady, &steady);
		fputc('\n', f);
	}
}

/* Constants of the calibration are bytes unless their name says otherwise. */
static const char *constant_shown(const struct style *st, const struct used_constant *c)
{
	static const struct { const char *end, *unit; } rates[] = {
		{ "bandwidth", "GB/s" }, { "rate", "GFLOP/s" },
	};
	size_t n = strlen(c->name);
	for (size_t i = 0; i < COUNT(rates); i++) {
		size_t m = strlen(rates[i].end);
		if (n >= m && !strcmp(c->name + n - m, rates[i].end))
			return arena_printf(st->a, "%.0f %s", (double)c->value / 1e9, rates[i].unit);
	}
	return n >= 5 && !strcmp(c->name + n - 5, "count") ? fmt_count(st->a, c->value) : shown(st, c->value);
}

static void put_rests_on(FILE *f, const struct result *r, const struct style *st)
{
	struct sb b = { .a = st->a };
	fprintf(f, "\n%s%s pinned, %s pageable, per process\n", label(st, "host"),
		shown(st, r->host_pinned), shown(st, r->host_pageable));
	for (size_t i = 0; i < r->nconstant; i++)
		sb_printf(&b, "%s%s %s (%s)", i ? ", " : "", r->constants[i].name, constant_shown(st, &r->constants[i]),
			  provenance_names[r->constants[i].prov]);
	if (r->nconstant) {
		fputs(label(st, "constants"), f);
		words_wrap(f, sb_str(&b), INDENT, WIDTH, st);
	}
	b = (struct sb){ .a = st->a };
	for (size_t i = 0; i < r->nnot_modelled; i++)
		sb_printf(&b, "%s%s", i ? ", " : "", r->not_modelled[i]);
	if (r->nnot_modelled) {
		fputs(label(st, "not modelled"), f);
		words_wrap(f, sb_str(&b), INDENT, WIDTH, st);
	}
	if (r->advice) {
		fputs(label(st, "advice"), f);
		words_wrap(f, r->advice, INDENT, WIDTH, st);
	}
}

void predict_text(FILE *f, const struct result *r, const struct style *st)
{
	put_scope(f, r, st);
	put_verdict(f, r, st);
	put_levels(f, r, st);
	put_classes(f, r, st);
	put_tensors(f, r, st);
	put_windows(f, r, st);
	put_rests_on(f, r, st);
}
