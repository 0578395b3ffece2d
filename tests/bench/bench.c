/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The speed table: for every plan given, and variants of the first, how long
 * fold, walk and the whole pure function take in process, and a cold
 * `memplan predict` with its peak resident memory.  Best of several runs;
 * nothing passes or fails here.
 *
 *     bench MEMPLAN PLAN.yaml... */
#define _DEFAULT_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plan/plan.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* At most RUNS times, and no new one after so many seconds. */
enum { RUNS = 201, COLD_RUNS = 21 };
#define ENOUGH 0.2

static double time_fold(struct graph *g, struct arena *scratch)
{
	double best = HUGE_VAL, begin = now();

	for (size_t i = 0; i < RUNS && now() - begin < ENOUGH; i++) {
		arena_reset(scratch);
		double start = now();
		fold(g, scratch);
		best = fmin(best, now() - start);
	}
	return best;
}

static double time_walk(struct graph *g, struct arena *scratch)
{
	double best = HUGE_VAL, begin = now();

	for (size_t i = 0; i < RUNS && now() - begin < ENOUGH; i++) {
		arena_reset(scratch);
		double start = now();
		walk(g, scratch, NULL, NULL);
		best = fmin(best, now() - start);
	}
	return best;
}

static double time_plan(const struct spec *spec, struct arena *scratch)
{
	double best = HUGE_VAL, begin = now();

	for (size_t i = 0; i < RUNS && now() - begin < ENOUGH; i++) {
		arena_reset(scratch);
		double start = now();
		plan(spec, scratch, diag_new(scratch));
		best = fmin(best, now() - start);
	}
	return best;
}

/* A new process each time.  A child's peak counts what it shares with its parent before exec, so this comes first. */
struct cold { double seconds; long rss; };     /* rss in KiB; seconds < 0: it failed */

static struct cold time_cold(const char *memplan, const char *path)
{
	struct cold best = { HUGE_VAL, 0 };

	for (size_t i = 0; i < COLD_RUNS; i++) {
		struct rusage used;
		int status;
		double start = now();
		pid_t pid = fork();

		if (pid == 0) {
			int null = open("/dev/null", O_WRONLY);
			dup2(null, 1);
			dup2(null, 2);
			execl(memplan, memplan, "predict", path, (char *)NULL);
			_exit(127);
		}
		if (pid < 0 || wait4(pid, &status, 0, &used) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > EXIT_NO)
			return (struct cold){ -1, 0 };
		best.seconds = fmin(best.seconds, now() - start);
		best.rss = used.ru_maxrss > best.rss ? used.ru_maxrss : best.rss;
	}
	return best;
}

static const char *stem(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

	return dot ? arena_strndup(a, name, (size_t)(dot - name)) : name;
}

/* What is changed in the plan; %s is the model's name. */
static const struct variant { const char *note, *set; } variants[] = {
	{ "", NULL },
	{ "2 layers", "model={base: %s, num_hidden_layers: 2}" },
	{ "200 layers", "model={base: %s, num_hidden_layers: 200}" },
	{ "4096 micro-batches", "train.gradient_accumulation=4096" },
};

static const struct spec *read_plan(struct arena *a, struct diag *d, const char *path, const struct variant *v)
{
	const struct spec *plain = spec_read(a, d, path, NULL, 0);

	if (plain && v->set) {
		const char *at = strstr(v->set, "%s"), *set = v->set;

		if (at)
			set = arena_printf(a, "%.*s%s%s", (int)(at - set), set, plain->model.name, at + 2);
		return spec_read(a, d, path, &set, 1);
	}
	return plain;
}

static bool bench_plan(const char *path, const struct variant *v, struct cold cold)
{
	struct arena *a = arena_new(), *scratch = arena_new();
	struct diag *d = diag_new(a);
	const struct spec *spec = read_plan(a, d, path, v);
	const struct result *r = spec ? plan(spec, a, d) : NULL;

	if (r) {
		double t_fold = time_fold(r->graph, scratch), t_walk = time_walk(r->graph, scratch);
		double t_plan = time_plan(spec, scratch);

		printf("%-30s %-18s %6zu %8.1f %8.3f %8.3f", stem(a, path), v->note, r->graph->ops.n, t_fold * 1e6,
		       t_walk * 1e3, t_plan * 1e3);
		if (!v->set && cold.seconds >= 0)
			printf(" %8.2f %8.1f", cold.seconds * 1e3, (double)cold.rss / 1024);
		putchar('\n');
	} else {
		diag_print(d, stderr);
	}
	arena_free(scratch);
	arena_free(a);
	return r != NULL;
}

int main(int argc, char **argv)
{
	struct cold cold[64];
	bool ok = argc > 2 && argc <= 64;

	if (!ok) {
		fputs("usage: bench MEMPLAN PLAN.yaml...\n", stderr);
		return EXIT_INPUT;
	}
	for (int i = 2; i < argc; i++)
		cold[i] = time_cold(argv[1], argv[i]);
	printf("%-30s %-18s %6s %8s %8s %8s %8s %8s\n", "plan", "", "ops", "fold us", "walk ms", "plan ms", "cold ms",
	       "RSS MiB");
	for (int i = 2; i < argc; i++)
		for (size_t v = 0; v < (i == 2 ? COUNT(variants) : 1); v++)
			ok &= bench_plan(argv[i], &variants[v], cold[i]);
	return ok ? EXIT_FITS : EXIT_INPUT;
}
