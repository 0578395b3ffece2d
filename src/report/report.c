/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of formats, and the answers that are plain tables. */
#include "report/report.h"

#include <string.h>

const struct format formats[] = {
	{ "text", "for people", table_text, predict_text },
	{ "json", "one document with schema, integer bytes and stable key order", table_json, predict_json },
	{ "csv", "tensors at the peak, comma-separated", table_csv, NULL },
	{ "tsv", "tensors at the peak, tab-separated", table_tsv, NULL },
	{ "md", "tensors at the peak, a Markdown table", table_md, NULL },
};
const size_t nformat = COUNT(formats);

const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < nformat; i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

static const struct column tensor_columns[] = {
	{ "name", CELL_TEXT }, { "class", CELL_TEXT }, { "count", CELL_COUNT }, { "bytes", CELL_BYTES },
	{ "formula", CELL_TEXT }, { "by", CELL_TEXT }, { "born", CELL_TEXT }, { "freed", CELL_TEXT },
};

/* Machine formats do not depend on the locale. */
static struct style machine_style(const struct format *fmt, const struct style *st)
{
	struct style m = *st;
	if (fmt->table != table_text)
		m.utf8 = false;
	return m;
}

static struct table tensors_table(const struct result *r, const struct style *st)
{
	struct table t = { .schema = "memplan.explain/1", .name = "alive",
			   .columns = tensor_columns, .ncolumn = COUNT(tensor_columns) };
	size_t n = st->top && st->top < r->ntensor ? st->top : r->ntensor;
	for (size_t i = 0; i < n; i++) {
		const struct tensor_bytes *x = &r->by_tensor[i];
		const struct cell row[] = {
			{ .text = x->name }, { .text = class_names[x->cls] }, { .number = x->count }, { .number = x->bytes },
			{ .text = words_formula(st, x->formula) }, { .text = x->by }, { .text = x->born }, { .text = x->freed },
		};
		for (size_t c = 0; c < COUNT(row); c++)
			*VEC_PUSH(st->a, &t.cells) = row[c];
	}
	return t;
}

void report_predict(FILE *f, const struct format *fmt, const struct result *r, const struct style *st)
{
	if (fmt->predict) {
		fmt->predict(f, r, st);
		return;
	}
	struct style m = machine_style(fmt, st);
	struct table t = tensors_table(r, &m);
	fmt->table(f, &t, &m);
}

void report_alive(FILE *f, const struct format *fmt, const struct result *r, const struct style *st)
{
	struct style m = machine_style(fmt, st);
	struct table t = tensors_table(r, &m);
	if (fmt->table == table_text)
		explain_head(f, r, st);
	fmt->table(f, &t, &m);
}
