/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Field tables: every type read, printed back, defaulted and refused. */
#include "input/field.h"
#include "input/node.h"

#undef NDEBUG
#include <assert.h>
#include <math.h>
#include <string.h>

struct inner { uint64_t depth; };
struct thing {
	uint64_t count, limit, size;
	double ratio, share;
	bool on, later, given;
	int color;
	const char *name;
	struct strings parts;
	struct uints layers;
	struct inner inner;
	struct loc loc_count;
};

#define IN(m) .offset = offsetof(struct thing, m)
static const struct field_choice colors[] = { { "red", "" }, { "green", "" } };
static const struct field_choice times[] = { { "now", "" }, { "later", "" } };
static const struct field inner_fields[] = {
	{ "depth", FIELD_UINT, .offset = offsetof(struct inner, depth), .min = 1, .deflt = "3" },
};
static const struct field fields[] = {
	{ "count", FIELD_UINT, IN(count), .loc_offset = offsetof(struct thing, loc_count), .min = 1, .max = 10 },
	{ "limit", FIELD_UINT, IN(limit), .min = 20, .deflt = "off", .off = true },
	{ "size", FIELD_BYTES, IN(size), .deflt = "2GiB" },
	{ "ratio", FIELD_REAL, IN(ratio), .min = 0, .max = 1, .deflt = "0.25" },
	{ "share", FIELD_PERCENT, IN(share), .min = 0, .max = 90, .deflt = "5%" },
	{ "on", FIELD_BOOL, IN(on), .deflt = "true" },
	{ "when", FIELD_BOOL, IN(later), CHOICES(times), .deflt = "later" },
	{ "color", FIELD_CHOICE, IN(color), CHOICES(colors), .deflt = "green" },
	{ "name", FIELD_STRING, IN(name), .deflt = "" },
	{ "parts", FIELD_STRINGS, IN(parts), .computed = "none" },
	{ "layers", FIELD_UINTS, IN(layers), .min = 0, .max = 100, .computed = "none" },
	{ "inner", FIELD_MAP, IN(inner), FIELDS(inner_fields), .given_offset = offsetof(struct thing, given) },
};

struct fixture { struct field_reader r; struct thing t; };

static void read_text(struct fixture *x, const char *text)
{
	struct arena *a = arena_new();
	struct source *src = NEW(a, struct source);
	static const struct preset presets[] = { { "t.ratio", "0.5" } };

	*src = (struct source){ .name = "t", .text = text, .len = strlen(text) };
	*x = (struct fixture){ .r = { .a = a, .d = diag_new(a), .presets = presets, .npreset = COUNT(presets) } };
	fields_read(&x->r, node_parse(a, x->r.d, src, 0), (struct loc){ src, 1, 1, 1 }, "t", fields, COUNT(fields), &x->t);
}

static void check_print(struct fixture *x, const char *path, const char *value, enum origin origin)
{
	const struct effective *e = effective_find(&x->r, path);

	assert(e && e->origin == origin);
	assert(!strcmp(field_print(x->r.a, e->field, e->base), value));
}

static void test_defaults(void)
{
	struct fixture x;

	read_text(&x, "count: 3\n");
	assert(diag_status(x.r.d) == 0 && !x.r.damaged && x.t.count == 3 && x.t.loc_count.col == 8);
	assert(x.t.limit == 0 && x.t.size == UINT64_C(2) << 30 && fabs(x.t.ratio - 0.5) < 1e-9 && fabs(x.t.share - 5) < 1e-9);
	assert(x.t.on && x.t.later && x.t.color == 1 && !*x.t.name && !x.t.parts.n && !x.t.given && x.t.inner.depth == 0);
	check_print(&x, "t.count", "3", ORIGIN_FILE);
	check_print(&x, "t.limit", "off", ORIGIN_DEFAULT);
	check_print(&x, "t.size", "2GiB", ORIGIN_DEFAULT);
	check_print(&x, "t.ratio", "0.5", ORIGIN_PROFILE);
	check_print(&x, "t.when", "later", ORIGIN_DEFAULT);
	check_print(&x, "t.parts", "[]", ORIGIN_COMPUTED);
	assert(!effective_find(&x.r, "t.inner.depth"));
	arena_free(x.r.a);
}

static void test_values(void)
{
	struct fixture x;

	read_text(&x, "{count: 0x0a, limit: 20, size: 1.5KiB, ratio: 1e-1, share: 12.5%, on: false, when: now, color: red,"
		      " name: \"8\", parts: [q, v], layers: [1, 2], inner: {depth: 7}}");
	assert(diag_status(x.r.d) == 0 && x.t.count == 10 && x.t.given && x.t.inner.depth == 7 && !x.t.later);
	check_print(&x, "t.limit", "20", ORIGIN_FILE);
	check_print(&x, "t.size", "1536B", ORIGIN_FILE);
	check_print(&x, "t.ratio", "0.1", ORIGIN_FILE);
	check_print(&x, "t.share", "12.5%", ORIGIN_FILE);
	check_print(&x, "t.on", "false", ORIGIN_FILE);
	check_print(&x, "t.color", "red", ORIGIN_FILE);
	check_print(&x, "t.name", "8", ORIGIN_FILE);
	check_print(&x, "t.parts", "[q, v]", ORIGIN_FILE);
	check_print(&x, "t.layers", "[1, 2]", ORIGIN_FILE);
	check_print(&x, "t.inner.depth", "7", ORIGIN_FILE);
	arena_free(x.r.a);
}

static void test_errors(void)
{
	static const struct { const char *text, *error; bool damaged; } bad[] = {
		{ "limit: 20", "missing key 't.count'", true },
		{ "{count: 3, cuont: 4}", "unknown key 'cuont' in 't'", false },
		{ "count: 11", "'t.count' wants an integer from 1 to 10, found 11", true },
		{ "count: '3'", "'t.count' wants an integer from 1 to 10, found '3'", true },
		{ "{count: 3, limit: 5}", "'t.limit' wants an integer >= 20, found 5", true },
		{ "{count: 3, size: 5 gig}", "'t.size' wants a size with its unit, such as 80GiB, found '5 gig'", true },
		{ "{count: 3, ratio: 2}", "'t.ratio' wants a number from 0 to 1, found 2", true },
		{ "{count: 3, ratio: .nan}", "'t.ratio' wants a number from 0 to 1, found .nan", true },
		{ "{count: 3, share: 95%}", "'t.share' wants a share with its %, from 0% to 90%, found '95%'", true },
		{ "{count: 3, on: yes}", "'t.on' wants true or false, found 'yes'", true },
		{ "{count: 3, color: blue}", "'t.color' wants one of red, green, found 'blue'", true },
		{ "{count: 3, parts: q}", "'t.parts' wants a list such as [a, b], found 'q'", true },
		{ "{count: 3, layers: [1, 200]}", "'t.layers' wants an integer from 0 to 100, found 200", true },
		{ "{count: 3, inner: 5}", "'t.inner' wants a mapping, found 5", true },
		{ "[count, 3]", "'t' wants a mapping, found a list", true },
	};
	struct fixture x;

	for (size_t i = 0; i < COUNT(bad); i++) {
		read_text(&x, bad[i].text);
		assert(diag_status(x.r.d) == EXIT_INPUT && diag_count(x.r.d, SEV_ERROR) == 1);
		assert(!strcmp(diag_text(x.r.d, SEV_ERROR, 0), bad[i].error));
		assert(x.r.damaged == bad[i].damaged);
		arena_free(x.r.a);
	}
}

/* Several errors at once are all collected. */
static void test_collects(void)
{
	struct fixture x;

	read_text(&x, "{count: 0, limit: x, color: 7, extra: 1}");
	assert(diag_count(x.r.d, SEV_ERROR) == 4);
	arena_free(x.r.a);
}

int main(void)
{
	test_defaults();
	test_values();
	test_errors();
	test_collects();
	return 0;
}
