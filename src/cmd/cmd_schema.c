/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * memplan schema: the rows of a plan file, as JSON Schema for editors and as
 * mdoc for memplan-plan(5). */
#include "cmd/cmd.h"
#include "plan/schema.h"
#include "report/report.h"

#include <string.h>

enum { O_MDOC };
static const struct cmd_option options[] = {
	[O_MDOC] = { "mdoc", NULL, NULL, "print in the language of manual pages" },
};

/* What a field type is in JSON Schema and in words. */
static const struct type_row { const char *json, *items, *words; } types[] = {
	[FIELD_UINT] = { "integer", NULL, "integer" }, [FIELD_REAL] = { "number", NULL, "number" },
	[FIELD_BOOL] = { "boolean", NULL, "true or false" }, [FIELD_PERCENT] = { NULL, NULL, "share, as 5%" },
	[FIELD_BYTES] = { NULL, NULL, "size, as 80GiB" }, [FIELD_CHOICE] = { NULL, NULL, "word" },
	[FIELD_STRING] = { "string", NULL, "text" }, [FIELD_STRINGS] = { "array", "string", "list of texts" },
	[FIELD_UINTS] = { "array", "integer", "list of integers" }, [FIELD_MAP] = { "object", NULL, "mapping" },
	[FIELD_ANY] = { NULL, NULL, "text or mapping" },
};

/* ---- JSON Schema */

static void json_properties(struct json *j, const struct field *f, size_t n);

/* A choice as YAML reads it: 3 and true are no strings. */
static void json_choice(struct json *j, const char *name)
{
	if (strspn(name, "0123456789") == strlen(name))
		json_uint(j, NULL, (uint64_t)(name[0] - '0'));
	else if (!strcmp(name, "true") || !strcmp(name, "false"))
		json_bool(j, NULL, !strcmp(name, "true"));
	else
		json_str(j, NULL, name);
}

static void json_choices(struct json *j, const struct field *f)
{
	json_open(j, "enum", '[');
	for (size_t i = 0; i < f->nchoice; i++)
		if (f->type == FIELD_CHOICE)
			json_choice(j, f->choices[i].name);
		else
			json_str(j, NULL, f->choices[i].name);
	json_close(j, ']');
}

/* A number that the word "off" may stand for. */
static void json_number(struct json *j, const struct field *f)
{
	if (f->off) {
		json_open(j, "type", '[');
		json_str(j, NULL, types[f->type].json);
		json_str(j, NULL, "string");
		json_close(j, ']');
	} else {
		json_str(j, "type", types[f->type].json);
	}
	json_int(j, "minimum", (int64_t)f->min);
	if (f->max > 0)
		json_int(j, "maximum", (int64_t)f->max);
}

static void json_array(struct json *j, const struct field *f)
{
	json_str(j, "type", types[f->type].json);
	json_open(j, "items", '{');
	json_str(j, "type", types[f->type].items);
	json_close(j, '}');
}

/* An optimization: a mapping, true or "off". */
static void json_switchable(struct json *j, const struct field *f)
{
	json_open(j, "type", '[');
	json_str(j, NULL, "object");
	json_str(j, NULL, "boolean");
	json_str(j, NULL, "string");
	json_close(j, ']');
	json_properties(j, f->fields, f->nfield);
}

static void json_field(struct json *j, const struct field *f)
{
	json_open(j, f->name, '{');
	json_str(j, "description", f->doc);
	if (f->nchoice)
		json_choices(j, f);
	else if (f->type == FIELD_MAP && f->deflt)
		json_switchable(j, f);
	else if (f->nfield) {
		json_str(j, "type", "object");
		json_properties(j, f->fields, f->nfield);
	} else if (types[f->type].items)
		json_array(j, f);
	else if (f->type == FIELD_UINT || f->type == FIELD_REAL)
		json_number(j, f);
	else if (types[f->type].json)
		json_str(j, "type", types[f->type].json);
	if (f->deflt && f->type != FIELD_MAP && *f->deflt)
		json_str(j, "default", f->deflt);
	json_close(j, '}');
}

/* A mapping is required when one of its keys is, unless it may be left out as a whole. */
static bool is_required(const struct field *f)
{
	if (f->deflt || f->computed || f->given_offset)
		return false;
	for (size_t i = 0; i < f->nfield; i++)
		if (is_required(&f->fields[i]))
			return f->type == FIELD_MAP;
	return f->nfield == 0;
}

static void json_properties(struct json *j, const struct field *f, size_t n)
{
	size_t required = 0;

	json_open(j, "properties", '{');
	for (size_t i = 0; i < n; i++) {
		json_field(j, &f[i]);
		required += is_required(&f[i]);
	}
	json_close(j, '}');
	if (required) {
		json_open(j, "required", '[');
		for (size_t i = 0; i < n; i++)
			if (is_required(&f[i]))
				json_str(j, NULL, f[i].name);
		json_close(j, ']');
	}
	json_bool(j, "additionalProperties", false);
}

static void print_json(FILE *out, const struct field *f, size_t n)
{
	struct json j = { .f = out };

	json_open(&j, NULL, '{');
	json_str(&j, "$schema", "https://json-schema.org/draft/2020-12/schema");
	json_str(&j, "title", "memplan.plan/1");
	json_str(&j, "type", "object");
	json_properties(&j, f, n);
	json_close(&j, '}');
}

/* ---- mdoc */

static const char *bound(struct arena *a, double x)
{
	return x < 1e15 && x == (double)(int64_t)x ? arena_printf(a, "%lld", (long long)x) : arena_printf(a, "%g", x);
}

static void mdoc_field(FILE *out, struct arena *a, const char *path, const struct field *f)
{
	struct sb b = { .a = a };

	fprintf(out, ".It Cm %s\n%s", path, f->doc);
	if (f->unit)
		sb_printf(&b, "; %s", f->unit);
	else if (!f->nchoice)
		sb_printf(&b, "; %s", types[f->type].words);
	if ((f->type == FIELD_UINT || f->type == FIELD_REAL) && f->max > 0)
		sb_printf(&b, ", %s to %s", bound(a, f->min), bound(a, f->max));
	if (f->deflt && *f->deflt)
		sb_printf(&b, "; default %s", f->deflt);
	else if (f->computed)
		sb_printf(&b, "; default: %s", f->computed);
	else if (is_required(f))
		sb_puts(&b, "; required");
	fprintf(out, "%s.\n", sb_str(&b));
	if (f->nchoice) {
		fputs(".Bl -tag -width Ds -compact\n", out);
		for (size_t i = 0; i < f->nchoice; i++)
			fprintf(out, ".It Cm %s\n%s\n", f->choices[i].name, f->choices[i].doc);
		fputs(".El\n", out);
	}
}

static void mdoc_fields(FILE *out, struct arena *a, const char *path, const struct field *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = *path ? arena_printf(a, "%s.%s", path, f[i].name) : f[i].name;

		mdoc_field(out, a, name, &f[i]);
		if (f[i].nfield)
			mdoc_fields(out, a, name, f[i].fields, f[i].nfield);
	}
}

static void print_mdoc(FILE *out, struct arena *a, const struct field *f, size_t n)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (size_t i = 0; i < n; i++)
		if (!f[i].nfield)
			mdoc_field(out, a, f[i].name, &f[i]);
	fputs(".El\n", out);
	for (size_t i = 0; i < n; i++) {
		if (!f[i].nfield)
			continue;
		fprintf(out, ".Ss %s\n%s.\n.Bl -tag -width Ds\n", f[i].name, f[i].doc);
		mdoc_fields(out, a, f[i].name, f[i].fields, f[i].nfield);
		fputs(".El\n", out);
	}
}

static int run(const struct args *args)
{
	size_t n;
	const struct field *f = plan_fields(args->a, &n);

	if (args->value[O_MDOC])
		print_mdoc(args->out, args->a, f, n);
	else
		print_json(args->out, f, n);
	return 0;
}

const struct cmd cmd_schema = {
	.name = "schema", .summary = "the keys of a plan file, as JSON Schema",
	.doc = "Prints the JSON Schema of plan files, for editors that complete and check.",
	.takes = TAKES_OUTPUT, .options = options, .noption = COUNT(options), .run = run,
};
