/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Calibration files.  The table below is the format: every constant stands at
 * SECTION.NAME as {UNIT: value, how: word, source: text}. */
#include "input/gpu.h"

#include <string.h>

#define GIB ((uint64_t)1 << 30)
#define GIGA ((uint64_t)1000000000)

static const char schema[] = "memplan.calibration/1";
const char *const provenance_names[] = { "assumed", "datasheet", "measured" };

const struct constant_row constant_rows[CONST_N] = {
	[CONST_CAPACITY] = { "memory", "cuda_total", "bytes", 1 * GIB, 2048 * GIB, true,
			     "memory that the driver reports to a process" },
	[CONST_CONTEXT] = { "memory", "context", "bytes", 0, 16 * GIB, false, "context of a process" },
	[CONST_LIBRARY] = { "memory", "library", "bytes", 0, 16 * GIB, false,
			    "kernels loaded on first use and library state of a process" },
	[CONST_CUBLAS_WORKSPACE] = { "memory", "cublas_workspace", "bytes", 0, 1 * GIB, false,
				     "cuBLAS workspace per handle and stream, inside the allocator" },
	[CONST_NCCL] = { "memory", "nccl_communicator", "bytes", 0, 64 * GIB, false, "buffers of one communicator" },
	[CONST_MEMORY_BANDWIDTH] = { "memory", "bandwidth", "bytes_per_s", 10 * GIGA, 100000 * GIGA, false,
				     "device memory, reads and writes together" },
	[CONST_MATRIX_RATE] = { "compute", "bf16", "flop_per_s", 1000 * GIGA, 100000000 * GIGA, false,
				"dense bf16 matrix products (fp16 where a GPU has no bf16)" },
	[CONST_SM_COUNT] = { "compute", "sm_count", "count", 1, 4096, false, "multiprocessors" },
	[CONST_LINK_BANDWIDTH] = { "link", "gpu", "bytes_per_s", GIGA / 10, 10000 * GIGA, false,
				   "GPU to GPU inside a node, one way" },
	[CONST_HOST_BANDWIDTH] = { "link", "host", "bytes_per_s", GIGA / 10, 10000 * GIGA, false,
				   "host to GPU, one way" },
};
const struct how_row hows[] = {
	{ "measured", PROV_MEASURED, "measured on such a GPU" },
	{ "oom-log", PROV_MEASURED, "printed by the framework in out-of-memory messages or logs" },
	{ "datasheet", PROV_DATASHEET, "the vendor's figure" },
	{ "assumed", PROV_ASSUMED, "nobody measured it; a figure of the right size" },
};
const size_t nhow = COUNT(hows);
static const char *const sections[] = { "memory", "compute", "link" };

static void report_unknown(struct diag *d, const struct pair *p, const char *const *names, size_t n)
{
	const char *near = nearest(p->key, names, n);
	diag_error(d, p->loc, "unknown key '%s'", p->key);
	if (near)
		diag_hint(d, "did you mean '%s'?", near);
}

static void check_keys(struct diag *d, const struct node *map, const char *const *names, size_t n)
{
	for (size_t i = 0; i < map->n; i++) {
		size_t k = 0;
		while (k < n && strcmp(names[k], map->pairs[i].key))
			k++;
		if (k == n)
			report_unknown(d, &map->pairs[i], names, n);
	}
}

/* A count of bytes may be written 79.1GiB. */
static bool read_amount(struct diag *d, const struct node *n, const struct constant_row *r, uint64_t *out)
{
	double v;
	if (n->shape == SHAPE_SCALAR && n->scalar == SCALAR_STRING && !strcmp(r->unit, "bytes") &&
	    parse_bytes(n->text, out)) {
		if (*out >= r->min && *out <= r->max)
			return true;
		diag_error(d, n->loc, "'%s' is out of range: %s", r->name, n->text);
		return false;
	}
	if (!value_real(d, n, r->unit, (double)r->min, (double)r->max, &v))
		return false;
	*out = (uint64_t)(v + 0.5);
	return true;
}

static void read_how(struct diag *d, const struct node *map, const struct constant_row *r, struct constant *out)
{
	const char *names[COUNT(hows)], *how = NULL;
	if (!node_string(d, map, "how", &how)) {
		if (!node_get(map, "how"))
			diag_error(d, map->loc, "'%s' does not say how it is known", r->name);
		return;
	}
	for (size_t i = 0; i < nhow; i++) {
		names[i] = hows[i].name;
		if (!strcmp(hows[i].name, how)) {
			out->prov = hows[i].prov;
			return;
		}
	}
	diag_error(d, node_get(map, "how")->loc, "unknown word '%s' for how", how);
	how = nearest(how, names, nhow);
	if (how)
		diag_hint(d, "did you mean '%s'?", how);
}

static void read_constant(struct arena *a, struct diag *d, const struct node *section, const struct constant_row *r,
			  struct constant *out)
{
	const char *names[] = { r->unit, "how", "source" }, *source = NULL;
	const struct node *map = NULL, *amount;
	if (!node_map(d, section, r->name, &map))
		return;
	check_keys(d, map, names, COUNT(names));
	amount = node_get(map, r->unit);
	if (!amount)
		diag_error(d, map->loc, "'%s' has no %s", r->name, r->unit);
	else if (read_amount(d, amount, r, &out->value))
		out->set = true;
	read_how(d, map, r, out);
	if (node_string(d, map, "source", &source))
		out->source = arena_strdup(a, source);
	else if (!node_get(map, "source"))
		diag_error(d, map->loc, "'%s' has no source", r->name);
}

static void read_section(struct arena *a, struct diag *d, const struct node *root, const char *section, struct gpu *out)
{
	const char *names[CONST_N];
	const struct node *map = NULL;
	size_t n = 0;
	bool there = node_map(d, root, section, &map);
	for (int i = 0; i < CONST_N; i++) {
		const struct constant_row *r = &constant_rows[i];
		if (strcmp(r->section, section))
			continue;
		names[n++] = r->name;
		if (there)
			read_constant(a, d, map, r, &out->c[i]);
		if (r->required && !(there && node_get(map, r->name)))
			diag_error(d, root->loc, "'%s.%s' is missing", section, r->name);
	}
	if (there)
		check_keys(d, map, names, n);
}

static void read_device(struct arena *a, struct diag *d, const struct node *root, struct gpu *out)
{
	static const char *const names[] = { "name", "cc", "driver", "cudart", "ecc", "mig", "nvml_total" };
	const struct node *map = NULL;
	const char *product = NULL;
	if (!node_map(d, root, "device", &map)) {
		if (!node_get(root, "device"))
			diag_error(d, root->loc, "'device' is missing");
		return;
	}
	check_keys(d, map, names, COUNT(names));
	if (node_string(d, map, "name", &product))
		out->product = arena_strdup(a, product);
	else if (!node_get(map, "name"))
		diag_error(d, map->loc, "'device' has no name");
}

bool gpu_from_node(struct arena *a, struct diag *d, const struct node *n, struct gpu *out)
{
	static const char *const names[] = { "schema", "device", "when", "memory", "compute", "link" };
	size_t errors = diag_count(d, SEV_ERROR);
	const char *found = NULL;
	if (n->shape != SHAPE_MAP) {
		diag_error(d, n->loc, "a calibration is a mapping, found %s", node_describe(a, n));
		return false;
	}
	if (!node_string(d, n, "schema", &found) || strcmp(found, schema)) {
		diag_error(d, found ? node_get(n, "schema")->loc : n->loc, "the schema of a calibration is '%s'", schema);
		return false;
	}
	check_keys(d, n, names, COUNT(names));
	out->product = NULL;
	for (int i = 0; i < CONST_N; i++)
		out->c[i] = (struct constant){ .name = arena_printf(a, "%s.%s", constant_rows[i].section,
								   constant_rows[i].name) };
	read_device(a, d, n, out);
	for (size_t i = 0; i < COUNT(sections); i++)
		read_section(a, d, n, sections[i], out);
	return diag_count(d, SEV_ERROR) == errors;
}
