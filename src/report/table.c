/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One table, five ways to write it.  Text shows bytes in the unit asked for;
 * machine formats always carry integers. */
#include "report/report.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static size_t table_rows(const struct table *t)
{
	assert(t->ncolumn > 0);
	return t->cells.n / t->ncolumn;
}

static const struct cell *cell_at(const struct table *t, size_t row, size_t col)
{
	return &t->cells.v[row * t->ncolumn + col];
}

/* What a person reads in a cell. */
static const char *cell_shown(const struct cell *c, enum cell_kind kind, const struct style *st)
{
	switch (kind) {
	case CELL_TEXT: return c->text ? c->text : "-";
	case CELL_COUNT: return fmt_count(st->a, c->number);
	case CELL_BYTES: return fmt_bytes(st->a, c->number, st->unit);
	}
	return "";
}

/* Widths of the columns; 0 for one without a value in any row. */
static size_t *column_widths(const struct table *t, const char **shown, const struct style *st)
{
	size_t *width = NEWN(st->a, size_t, t->ncolumn);
	for (size_t i = 0; i < t->cells.n; i++) {
		size_t c = i % t->ncolumn, w = utf8_width(shown[i]), head = strlen(t->columns[c].name);
		if (t->columns[c].kind != CELL_TEXT || t->cells.v[i].text)
			width[c] = w > width[c] ? w : width[c] > head ? width[c] : head;
	}
	return width;
}

static void text_cell(FILE *f, const char *s, bool left, bool last, size_t width, const char *painted)
{
	int pad = (int)(width - utf8_width(s));
	fprintf(f, "%*s%s%*s%s", left ? 0 : pad, "", painted, left && !last ? pad : 0, "", last ? "\n" : "  ");
}

void table_text(FILE *f, const struct table *t, const struct style *st)
{
	const char **shown = NEWN(st->a, const char *, t->cells.n + 1);
	for (size_t i = 0; i < t->cells.n; i++)
		shown[i] = cell_shown(&t->cells.v[i], t->columns[i % t->ncolumn].kind, st);
	size_t *width = column_widths(t, shown, st), last = t->ncolumn;
	while (last > 1 && !width[last - 1])
		last--;
	for (size_t r = 0; r <= table_rows(t); r++)
		for (size_t c = 0; c < last; c++) {
			const char *s = r ? shown[(r - 1) * t->ncolumn + c] : t->columns[c].name;
			if (width[c])
				text_cell(f, s, t->columns[c].kind == CELL_TEXT, c + 1 == last, width[c],
					  r ? s : words_paint(st, PAINT_BOLD, s));
		}
}

void table_json(FILE *f, const struct table *t, const struct style *st)
{
	struct json j = { .f = f };
	(void)st;
	json_open(&j, NULL, '{');
	json_str(&j, "schema", t->schema);
	json_open(&j, t->name, '[');
	for (size_t r = 0; r < table_rows(t); r++) {
		json_open(&j, NULL, '{');
		for (size_t c = 0; c < t->ncolumn; c++)
			if (t->columns[c].kind == CELL_TEXT)
				json_str(&j, t->columns[c].name, cell_at(t, r, c)->text);
			else
				json_uint(&j, t->columns[c].name, cell_at(t, r, c)->number);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

/* RFC 4180: quotes around what holds a quote, a comma or a line end; quotes doubled. */
static void put_csv(FILE *f, const char *s)
{
	if (!strpbrk(s, "\",\r\n")) {
		fputs(s, f);
		return;
	}
	fputc('"', f);
	for (; *s; s++)
		fputs(*s == '"' ? "\"\"" : (char[]){ *s, 0 }, f);
	fputc('"', f);
}

/* Tabs and line ends cannot occur in a field: a space stands for each. */
static void put_tsv(FILE *f, const char *s)
{
	for (; *s; s++)
		fputc(strchr("\t\r\n", *s) ? ' ' : *s, f);
}

static void put_md(FILE *f, const char *s)
{
	for (; *s; s++)
		fputs(*s == '|' ? "\\|" : *s == '*' ? "\\*" : (char[]){ *s, 0 }, f);
}

/* Rows with the column names first; integers raw. */
static void table_separated(FILE *f, const struct table *t, char sep, void (*put)(FILE *, const char *))
{
	for (size_t r = 0; r <= table_rows(t); r++)
		for (size_t c = 0; c < t->ncolumn; c++) {
			if (r == 0)
				put(f, t->columns[c].name);
			else if (t->columns[c].kind != CELL_TEXT)
				fprintf(f, "%" PRIu64, cell_at(t, r - 1, c)->number);
			else if (cell_at(t, r - 1, c)->text)
				put(f, cell_at(t, r - 1, c)->text);
			fputc(c + 1 == t->ncolumn ? '\n' : sep, f);
		}
}

void table_csv(FILE *f, const struct table *t, const struct style *st)
{
	(void)st;
	table_separated(f, t, ',', put_csv);
}

void table_tsv(FILE *f, const struct table *t, const struct style *st)
{
	(void)st;
	table_separated(f, t, '\t', put_tsv);
}

void table_md(FILE *f, const struct table *t, const struct style *st)
{
	for (size_t c = 0; c < t->ncolumn; c++)
		fprintf(f, "| %s ", t->columns[c].name);
	fputs("|\n", f);
	for (size_t c = 0; c < t->ncolumn; c++)
		fputs(t->columns[c].kind == CELL_TEXT ? "|---" : "|---:", f);
	fputs("|\n", f);
	for (size_t r = 0; r < table_rows(t); r++) {
		for (size_t c = 0; c < t->ncolumn; c++) {
			fputs("| ", f);
			put_md(f, cell_shown(cell_at(t, r, c), t->columns[c].kind, st));
			fputc(' ', f);
		}
		fputs("|\n", f);
	}
}
