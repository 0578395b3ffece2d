/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Calibration files: each file of calibrations/ is complete and believable,
 * and mistakes are reported.  Run in the source directory, or with
 * MEMPLAN_DATA naming it. */
#include "input/gpu.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static int failures, checks;

static void check(bool ok, const char *what, const char *about)
{
	checks++;
	if (!ok) {
		failures++;
		printf("FAIL: %s: %s\n", about, what);
	}
}

static bool load(struct arena *a, const char *file, struct gpu *out)
{
	struct diag *d = diag_new(a);
	const struct node *n = node_read(a, d, file);
	bool ok = n && gpu_from_node(a, d, n, out);
	if (!ok)
		diag_print(d, stdout);
	return ok;
}

static void check_gpu(const char *name, const struct gpu *g)
{
	uint64_t rate = g->c[CONST_MATRIX_RATE].value, link = g->c[CONST_LINK_BANDWIDTH].value;
	for (int i = 0; i < CONST_N; i++) {
		check(g->c[i].set, constant_rows[i].name, name);
		check(g->c[i].source && *g->c[i].source, "source", name);
	}
	check(g->product && *g->product, "product", name);
	check(g->c[CONST_CONTEXT].value + g->c[CONST_LIBRARY].value < g->c[CONST_CAPACITY].value / 10, "context", name);
	check(link >= g->c[CONST_HOST_BANDWIDTH].value && link < g->c[CONST_MEMORY_BANDWIDTH].value, "links", name);
	check(rate / g->c[CONST_SM_COUNT].value > 500000000000, "rate of a multiprocessor", name);
}

static void files(void)
{
	static const char *const wanted[] = {
		"v100-16gb", "v100-32gb", "t4", "a10", "a10g", "l4", "rtx3090", "rtx4090", "rtx5090", "a6000",
		"rtx6000-ada", "l40s", "a100-40gb", "a100-80gb", "h100-80gb", "h100-pcie", "h100-96gb", "h200", "b200",
		"gb200", "mi300x", "mi355x",
	};
	struct arena *a = arena_new();
	const char *root = getenv("MEMPLAN_DATA");
	for (size_t i = 0; i < COUNT(wanted); i++) {
		struct gpu g = { .name = wanted[i] };
		bool ok = load(a, arena_printf(a, "%s/calibrations/%s.yaml", root ? root : ".", wanted[i]), &g);
		check(ok, "cannot be read", wanted[i]);
		if (ok)
			check_gpu(wanted[i], &g);
	}
	arena_free(a);
}

/* Every file of the folder is read, whether this test knows it or not. */
static void folder(void)
{
	struct arena *a = arena_new();
	const char *root = getenv("MEMPLAN_DATA");
	const char *path = arena_printf(a, "%s/calibrations", root ? root : ".");
	DIR *dir = opendir(path);
	int n = 0;
	for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
		struct gpu g = { .name = e->d_name };
		if (!strstr(e->d_name, ".yaml"))
			continue;
		check(load(a, arena_printf(a, "%s/%s", path, e->d_name), &g), "cannot be read", e->d_name);
		n++;
	}
	check(n >= 22, "files", path);
	if (dir)
		closedir(dir);
	arena_free(a);
}

#define HEAD "schema: memplan.calibration/1\ndevice: {name: X}\n"
#define TOTAL "memory:\n  cuda_total: {bytes: 79.1GiB, how: oom-log, source: \"a log\"}\n"

static bool parse(struct arena *a, struct diag *d, const char *text, struct gpu *out)
{
	struct source *s = NEW(a, struct source);
	const struct node *n;
	*s = (struct source){ .name = "gpu.yaml", .text = text, .len = strlen(text) };
	n = node_parse(a, d, s, 0);
	return n && gpu_from_node(a, d, n, out);
}

static void values(void)
{
	struct arena *a = arena_new();
	struct gpu g = { .name = "x" };
	check(parse(a, diag_new(a), HEAD TOTAL "link:\n  host: {bytes_per_s: 5.5e10, how: measured, source: \"here\"}\n", &g),
	      "is read", "a short file");
	check(g.c[CONST_CAPACITY].value == 84932978278 && g.c[CONST_CAPACITY].prov == PROV_MEASURED, "79.1GiB", "capacity");
	check(g.c[CONST_HOST_BANDWIDTH].value == 55000000000, "5.5e10", "host");
	check(!g.c[CONST_CONTEXT].set, "stays unset", "context");
	check(!strcmp(g.c[CONST_CAPACITY].name, "memory.cuda_total"), g.c[CONST_CAPACITY].name, "name");
	check(!strcmp(provenance_names[PROV_DATASHEET], "datasheet"), "word", "provenance");
	arena_free(a);
}

static void refused(const char *text, const char *message)
{
	struct arena *a = arena_new();
	struct diag *d = diag_new(a);
	struct gpu g = { .name = "x" };
	bool found = false, ok = parse(a, d, text, &g);
	for (size_t i = 0; i < diag_count(d, SEV_ERROR); i++)
		found = found || !strcmp(diag_text(d, SEV_ERROR, i), message);
	check(!ok && found && diag_status(d) == EXIT_INPUT, "is refused", message);
	if (!found)
		diag_print(d, stdout);
	arena_free(a);
}

static void errors(void)
{
	refused("schema: memplan.plan/1\n", "the schema of a calibration is 'memplan.calibration/1'");
	refused("- 1\n", "a calibration is a mapping, found a list");
	refused(HEAD, "'memory.cuda_total' is missing");
	refused("schema: memplan.calibration/1\n" TOTAL, "'device' is missing");
	refused(HEAD TOTAL "  contxt: {bytes: 1, how: assumed, source: \"\"}\n", "unknown key 'contxt'");
	refused(HEAD TOTAL "  context: {bytes: 1, how: guessed, source: \"x\"}\n", "unknown word 'guessed' for how");
	refused(HEAD TOTAL "  context: {bytes: 1, source: \"x\"}\n", "'context' does not say how it is known");
	refused(HEAD TOTAL "  context: {bytes: 1, how: assumed}\n", "'context' has no source");
	refused(HEAD TOTAL "  context: {how: assumed, source: \"x\"}\n", "'context' has no bytes");
	refused(HEAD TOTAL "  context: {bytes: 99GiB, how: assumed, source: \"x\"}\n", "'context' is out of range: 99GiB");
	refused(HEAD TOTAL "speed: 1\n", "unknown key 'speed'");
}

int main(void)
{
	files();
	folder();
	values();
	errors();
	printf("%d passed, %d failed\n", checks - failures, failures);
	return failures != 0;
}
