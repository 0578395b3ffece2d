/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Sizes are small trees built as the graph is traced.  They are never
 * simplified while building; printing expands them into a sum of products
 * with like terms collected. */
#include "graph/size.h"

#include <string.h>

static size_ref node(struct arena *a, enum size_kind kind, size_ref x, size_ref y, uint64_t value)
{
	struct size *s = NEW(a, struct size);
	*s = (struct size){ .kind = kind, .value = value, .a = x, .b = y };
	return s;
}

size_ref size_const(struct arena *a, uint64_t n)
{
	static const struct size zero = { .value = 0 }, one = { .value = 1 };
	return n == 0 ? &zero : n == 1 ? &one : node(a, SIZE_CONST, NULL, NULL, n);
}

size_ref size_dim(struct arena *a, const char *name, uint64_t value, const char *doc)
{
	struct size *s = NEW(a, struct size);
	*s = (struct size){ .kind = SIZE_DIM, .value = value, .dim = name, .doc = doc };
	return s;
}

static bool is_const(size_ref x, uint64_t n)
{
	return x->kind == SIZE_CONST && x->value == n;
}

size_ref size_add(struct arena *a, size_ref x, size_ref y)
{
	if (is_const(x, 0))
		return y;
	if (is_const(y, 0))
		return x;
	return node(a, SIZE_ADD, x, y, add_u64(x->value, y->value));
}

size_ref size_sub(struct arena *a, size_ref x, size_ref y)
{
	uint64_t v = x->value == BYTES_OVERFLOW || y->value > x->value ? BYTES_OVERFLOW : x->value - y->value;
	return is_const(y, 0) ? x : node(a, SIZE_SUB, x, y, v);
}

size_ref size_mul(struct arena *a, size_ref x, size_ref y)
{
	if (is_const(x, 1))
		return y;
	if (is_const(y, 1))
		return x;
	if (x->kind == SIZE_CONST && y->kind == SIZE_CONST)
		return size_const(a, mul_u64(x->value, y->value));
	return node(a, SIZE_MUL, x, y, mul_u64(x->value, y->value));
}

size_ref size_mulc(struct arena *a, size_ref x, uint64_t c)
{
	return c == 1 ? x : size_mul(a, size_const(a, c), x);
}

size_ref size_ceil_div(struct arena *a, size_ref x, size_ref y)
{
	return is_const(y, 1) ? x : node(a, SIZE_CEIL_DIV, x, y, ceil_div_u64(x->value, y->value));
}

size_ref size_round_up(struct arena *a, size_ref x, uint64_t m)
{
	if (x->kind == SIZE_CONST)
		return size_const(a, round_up_u64(x->value, m));
	return node(a, SIZE_ROUND_UP, x, size_const(a, m), round_up_u64(x->value, m));
}

size_ref size_max(struct arena *a, size_ref x, size_ref y)
{
	return node(a, SIZE_MAX_OF, x, y, x->value > y->value ? x->value : y->value);
}

/* ---- printing: a sum of terms, each a signed coefficient times a sorted list of atoms */

enum { MAX_ATOMS = 12 };
struct term { int64_t coef; unsigned n; const char *atom[MAX_ATOMS]; };
struct poly { VEC(struct term) t; };

static const char *opaque(struct arena *a, size_ref x, bool ascii)
{
	static const char *const names[] = {
		[SIZE_CEIL_DIV] = "ceil_div", [SIZE_ROUND_UP] = "round_up", [SIZE_MAX_OF] = "max",
	};
	return arena_printf(a, "%s(%s, %s)", names[x->kind], size_print(a, x->a, ascii), size_print(a, x->b, ascii));
}

static bool same_atoms(const struct term *x, const struct term *y)
{
	if (x->n != y->n)
		return false;
	for (unsigned i = 0; i < x->n; i++)
		if (strcmp(x->atom[i], y->atom[i]))
			return false;
	return true;
}

static void add_term(struct arena *a, struct poly *p, const struct term *t)
{
	for (size_t i = 0; i < p->t.n; i++)
		if (same_atoms(&p->t.v[i], t)) {
			p->t.v[i].coef += t->coef;
			return;
		}
	*VEC_PUSH(a, &p->t) = *t;
}

static void term_times(struct term *t, const struct term *u)
{
	t->coef *= u->coef;
	for (unsigned i = 0; i < u->n && t->n < MAX_ATOMS; i++) {
		unsigned k = t->n++;
		for (; k > 0 && strcmp(t->atom[k - 1], u->atom[i]) > 0; k--)
			t->atom[k] = t->atom[k - 1];
		t->atom[k] = u->atom[i];
	}
}

static struct poly expand(struct arena *a, size_ref x, bool ascii)
{
	struct poly p = { 0 };
	struct term t = { .coef = 1 };
	struct poly l, r;
	switch (x->kind) {
	case SIZE_CONST:
		t.coef = (int64_t)x->value;
		if (x->value)
			add_term(a, &p, &t);
		return p;
	case SIZE_DIM:
	case SIZE_CEIL_DIV:
	case SIZE_ROUND_UP:
	case SIZE_MAX_OF:
		t.n = 1;
		t.atom[0] = x->kind == SIZE_DIM ? x->dim : opaque(a, x, ascii);
		add_term(a, &p, &t);
		return p;
	case SIZE_ADD:
	case SIZE_SUB:
		p = expand(a, x->a, ascii);
		r = expand(a, x->b, ascii);
		for (size_t i = 0; i < r.t.n; i++) {
			if (x->kind == SIZE_SUB)
				r.t.v[i].coef = -r.t.v[i].coef;
			add_term(a, &p, &r.t.v[i]);
		}
		return p;
	case SIZE_MUL:
		l = expand(a, x->a, ascii);
		r = expand(a, x->b, ascii);
		for (size_t i = 0; i < l.t.n; i++)
			for (size_t j = 0; j < r.t.n; j++) {
				t = l.t.v[i];
				term_times(&t, &r.t.v[j]);
				add_term(a, &p, &t);
			}
		return p;
	}
	return p;
}

static void print_term(struct sb *b, const struct term *t, bool first, const char *times)
{
	int64_t c = t->coef < 0 ? -t->coef : t->coef;
	sb_puts(b, t->coef < 0 ? (first ? "-" : " - ") : first ? "" : " + ");
	if (c != 1 || t->n == 0)
		sb_printf(b, "%lld%s", (long long)c, t->n ? times : "");
	for (unsigned i = 0; i < t->n; i++)
		sb_printf(b, "%s%s", i ? times : "", t->atom[i]);
}

const char *size_print(struct arena *a, size_ref x, bool ascii)
{
	struct poly p = expand(a, x, ascii);
	struct sb b = { .a = a };
	bool first = true;
	for (size_t i = 0; i < p.t.n; i++)
		if (p.t.v[i].coef) {
			print_term(&b, &p.t.v[i], first, ascii ? "*" : "·");
			first = false;
		}
	return first ? "0" : sb_str(&b);
}

size_t size_dims(size_ref x, size_ref *out, size_t cap)
{
	size_t n = 0;
	size_ref stack[64];
	size_t top = 0;
	stack[top++] = x;
	while (top) {
		size_ref s = stack[--top];
		if (s->kind == SIZE_DIM) {
			size_t i = 0;
			while (i < n && strcmp(out[i]->dim, s->dim))
				i++;
			if (i == n && n < cap)
				out[n++] = s;
		}
		if (s->a && top < COUNT(stack))
			stack[top++] = s->a;
		if (s->b && top < COUNT(stack))
			stack[top++] = s->b;
	}
	return n;
}
