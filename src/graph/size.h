/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Sizes: integer expressions over named dimensions.  A node knows its value
 * from the start (dimensions have values), so evaluating costs nothing, and
 * keeps its shape, so it prints as a formula.  Overflow is sticky
 * (BYTES_OVERFLOW).  Never floating point. */
#ifndef MEMPLAN_SIZE_H
#define MEMPLAN_SIZE_H

#include "base/base.h"

enum size_kind { SIZE_CONST, SIZE_DIM, SIZE_ADD, SIZE_SUB, SIZE_MUL, SIZE_CEIL_DIV, SIZE_ROUND_UP, SIZE_MAX_OF };

struct size {
	enum size_kind kind;
	uint64_t value;
	const char *dim, *doc;         /* SIZE_DIM: its name, what it stands for */
	const struct size *a, *b;      /* operands */
};
typedef const struct size *size_ref;

size_ref size_const(struct arena *a, uint64_t n);
size_ref size_dim(struct arena *a, const char *name, uint64_t value, const char *doc);
size_ref size_add(struct arena *a, size_ref x, size_ref y);
size_ref size_sub(struct arena *a, size_ref x, size_ref y);      /* x >= y */
size_ref size_mul(struct arena *a, size_ref x, size_ref y);
size_ref size_mulc(struct arena *a, size_ref x, uint64_t c);
size_ref size_ceil_div(struct arena *a, size_ref x, size_ref y);
size_ref size_round_up(struct arena *a, size_ref x, uint64_t m);
size_ref size_max(struct arena *a, size_ref x, size_ref y);

/* Sum of products with like terms collected: "2·S·h + 4·V·h"; ascii: "2*S*h + 4*V*h".
 * Opaque parts print as ceil_div(x, y), round_up(x, m), max(x, y). */
const char *size_print(struct arena *a, size_ref x, bool ascii);
/* The dimensions that occur in x, each once; returns the number written (at most cap). */
size_t size_dims(size_ref x, size_ref *out, size_t cap);

#endif
