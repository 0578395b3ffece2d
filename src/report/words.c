/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Phrases and small typography that several reports share. */
#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* POSIX: LC_ALL, else LC_CTYPE, else LANG names the locale. */
bool style_wants_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < COUNT(names); i++) {
		const char *v = getenv(names[i]), *dot = v ? strchr(v, '.') : NULL;
		if (v && *v)
			return dot && (!strncasecmp(dot + 1, "utf-8", 5) || !strncasecmp(dot + 1, "utf8", 4));
	}
	return false;
}

const char *words_paint(const struct style *st, const char *code, const char *text)
{
	return st->color ? arena_printf(st->a, "\033[%sm%s\033[0m", code, text) : text;
}

const char *words_formula(const struct style *st, size_ref x)
{
	return x ? size_print(st->a, x, !st->utf8) : "-";
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t utf8_width(const char *s)
{
	size_t n = 0;
	for (; *s; s++)
		n += !continues(*s);
	return n;
}

const char *utf8_cut(struct arena *a, const char *s, size_t width, bool utf8)
{
	const char *mark = utf8 ? "…" : "...", *end = s;
	size_t keep = width - utf8_width(mark);
	if (utf8_width(s) <= width)
		return s;
	for (size_t n = 0; *end && (n < keep || continues(*end)); end++)
		n += !continues(end[1]);
	return arena_printf(a, "%.*s%s", (int)(end - s), s, mark);
}

/* Breaks at white space; the first line starts where the cursor is, at column `indent`.  A blank line stays. */
void words_wrap(FILE *f, const char *text, size_t indent, size_t width, const struct style *st)
{
	size_t col = indent;
	while (*text) {
		size_t n = strcspn(text, " \n"), gap = strspn(text + n, " \n");
		size_t w = utf8_width(arena_strndup(st->a, text, n));
		if (col > indent && col + 1 + w > width) {
			fprintf(f, "\n%*s", (int)indent, "");
			col = indent;
		} else if (col > indent) {
			fputc(' ', f);
			col++;
		}
		fwrite(text, 1, n, f);
		col += w;
		if (gap > 1 && text[n] == '\n' && text[n + 1] == '\n') {
			fprintf(f, "\n\n%*s", (int)indent, "");
			col = indent;
		}
		text += n + gap;
	}
	fputc('\n', f);
}

const char *words_count(uint64_t n, struct arena *a)
{
	static const struct { uint64_t scale; const char *suffix; } units[] = {
		{ 1000000000000, " T" }, { 1000000000, " B" }, { 1000000, " M" }, { 1000, " K" },
	};
	for (size_t i = 0; i < COUNT(units); i++)
		if (n >= units[i].scale)
			return arena_printf(a, "%.2f%s", (double)n / (double)units[i].scale, units[i].suffix);
	return arena_printf(a, "%" PRIu64, n);
}

static void add_degree(struct sb *b, const char *name, uint64_t n)
{
	if (n > 1)
		sb_printf(b, ", %s %" PRIu64, name, n);
}

static void add_data(struct sb *b, const struct parallel *p)
{
	static const char *const names[] = { "DDP", "ZeRO-1", "ZeRO-2", "FSDP" };
	if (p->shard > 1 && p->replicate > 1)
		sb_printf(b, ", %s %" PRIu64 " x %" PRIu64 " replicas", p->zero == 3 ? "HSDP" : names[p->zero & 3],
			  p->shard, p->replicate);
	else
		add_degree(b, p->shard > 1 ? names[p->zero & 3] : "DDP", p->shard > 1 ? p->shard : p->replicate);
}

const char *words_scope(const struct spec *s, struct arena *a)
{
	struct sb b = { .a = a };
	const struct parallel *p = &s->par;
	sb_printf(&b, "%" PRIu64 " x %s", s->hw.gpus, s->hw.gpu_name ? s->hw.gpu_name : "GPU");
	add_data(&b, p);
	add_degree(&b, "TP", p->tensor);
	add_degree(&b, "PP", p->pipeline);
	add_degree(&b, "CP", p->context);
	add_degree(&b, "Ulysses", p->ulysses);
	add_degree(&b, "EP", p->expert);
	return sb_str(&b);
}

const char *words_peak(const struct result *r, struct arena *a)
{
	struct sb b = { .a = a };
	sb_printf(&b, "%s step, %s", r->peak_step > 1 ? "steady" : "first", window_names[r->peak_window]);
	if (r->peak_micro >= 0)
		sb_printf(&b, " of micro-batch %d of %" PRIu64, r->peak_micro + 1, r->spec->train.grad_accum);
	if (r->peak_layer >= 0)
		sb_printf(&b, ", layer %d", r->peak_layer);
	sb_printf(&b, ", op %s", r->peak_op ? r->peak_op : "(start)");
	return sb_str(&b);
}
