/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Printers: a const result goes in, text comes out, nothing is computed that
 * the result does not hold.  One row of formats[] per --format value; a row
 * without a printer of its own for an answer prints that answer's table. */
#ifndef MEMPLAN_REPORT_H
#define MEMPLAN_REPORT_H

#include "plan/plan.h"
#include "plan/whatif.h"

/* How a person wants to see it.  The arena holds what is made while printing. */
struct style {
	struct arena *a;
	enum unit unit;
	bool color, utf8;
	size_t top;                    /* rows of long tables; 0: all */
	int64_t rank;                  /* also this rank's peak; RANK_FULLEST: none, RANK_ALL: each kind of rank */
};
enum { RANK_FULLEST = -1, RANK_ALL = -2, TOP_OF_TEXT = 8 };
bool style_wants_utf8(void);           /* by the locale's character set */

/* ---- table.c: rows and columns, written by any format */
enum cell_kind { CELL_TEXT, CELL_COUNT, CELL_BYTES };
struct column { const char *name; enum cell_kind kind; };
struct cell { const char *text; uint64_t number; };    /* text NULL in a CELL_TEXT column: none */
struct table {
	const char *schema, *name;     /* of the JSON document and of its list */
	const struct column *columns; size_t ncolumn;
	VEC(struct cell) cells;        /* row after row */
};
void table_text(FILE *f, const struct table *t, const struct style *st);
void table_json(FILE *f, const struct table *t, const struct style *st);
void table_csv(FILE *f, const struct table *t, const struct style *st);
void table_tsv(FILE *f, const struct table *t, const struct style *st);
void table_md(FILE *f, const struct table *t, const struct style *st);

/* ---- formats */
struct format {
	const char *name, *summary;
	void (*table)(FILE *f, const struct table *t, const struct style *st);
	void (*predict)(FILE *f, const struct result *r, const struct style *st);   /* NULL: by_tensor as a table */
};
extern const struct format formats[];
extern const size_t nformat;
const struct format *format_find(const char *name);

/* ---- answers */
void report_predict(FILE *f, const struct format *fmt, const struct result *r, const struct style *st);
void report_alive(FILE *f, const struct format *fmt, const struct result *r, const struct style *st);
void report_whatif(FILE *f, const struct format *fmt, const struct whatif *w, const struct style *st);
void report_advice(FILE *f, const struct whatif *w, const struct style *st);
void predict_text(FILE *f, const struct result *r, const struct style *st);
void predict_json(FILE *f, const struct result *r, const struct style *st);
void explain_head(FILE *f, const struct result *r, const struct style *st);    /* one line: the moment of the peak */
void explain_formula(FILE *f, const struct result *r, const struct style *st);
/* False when no tensor of the plan has that name; then *near is the nearest name or NULL. */
bool explain_why(FILE *f, const struct result *r, const char *name, const char **near, const struct style *st);

/* ---- words.c: phrases that several reports share */
const char *words_scope(const struct spec *s, struct arena *a);        /* "8 x h100-80gb, FSDP 8, TP 2" */
const char *words_peak(const struct result *r, struct arena *a);       /* "steady step, backward of micro-batch 1 …" */
const char *words_count(uint64_t n, struct arena *a);                  /* "8.03 B" */
const char *words_paint(const struct style *st, const char *code, const char *text);
const char *words_formula(const struct style *st, size_ref x);
void words_wrap(FILE *f, const char *text, size_t indent, size_t width, const struct style *st);
size_t utf8_width(const char *s);
const char *utf8_cut(struct arena *a, const char *s, size_t width, bool utf8);   /* with an ellipsis when cut */
#define PAINT_BOLD "1"
#define PAINT_DIM "2"
#define PAINT_GOOD "1;32"
#define PAINT_BAD "1;31"

/* ---- json_out.c: a JSON document in a stated key order; integers and strings only */
struct json { FILE *f; unsigned depth; struct json_level { bool more, lines, flat; } level[16]; };
void json_open(struct json *j, const char *key, char bracket);         /* '{' or '['; key NULL inside a list */
void json_close(struct json *j, char bracket);
void json_uint(struct json *j, const char *key, uint64_t n);
void json_int(struct json *j, const char *key, int64_t n);
void json_str(struct json *j, const char *key, const char *s);         /* NULL: null */
void json_bool(struct json *j, const char *key, bool b);
void json_null(struct json *j, const char *key);

#endif
