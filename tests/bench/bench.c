/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The speed table: for every plan given, how long fold and walk take in
 * process, the whole pure function, and a cold `memplan predict` with its
 * peak resident memory.  Medians; nothing passes or fails here.
 *
 *     bench MEMPLAN PLAN.yaml... */
#define _DEFAULT_SOURCE
#include <fcntl.h>
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

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof *v, compare);
	return v[n / 2];
}

enum { RUNS = 201, SLOW_RUNS = 21 };

static double time_fold(struct graph *g, struct arena *scratch)
{
	double t[RUNS];

	for (size_t i = 0; i < RUNS; i++) {
		arena_reset(scratch);
		double start = now();
		fold(g, scratch);
		t[i] = now() - start;
	}
	return median(t, RUNS);
}

static double time_walk(struct graph *g, struct arena *scratch)
{
	double t[SLOW_RUNS];

	for (size_t i = 0; i < SLOW_RUNS; i++) {
		arena_reset(scratch);
		double start = now();
		walk(g, scratch, NULL, NULL);
		t[i] = now() - start;
	}
	return median(t, SLOW_RUNS);
}

static double time_plan(const struct spec *spec, struct arena *scratch)
{
	double t[SLOW_RUNS];

	for (size_t i = 0; i < SLOW_RUNS; i++) {
		arena_reset(scratch);
		double start = now();
		plan(spec, scratch, diag_new(scratch));
		t[i] = now() - start;
	}
	return median(t, SLOW_RUNS);
}

/* A new process each time; *rss gets the largest resident size in KiB. */
static double time_cold(const char *memplan, const char *path, long *rss)
{
	double t[SLOW_RUNS];

	*rss = 0;
	for (size_t i = 0; i < SLOW_RUNS; i++) {
		struct rusage used;
		int status;
		double start = now();
		pid_t pid = fork();

		if (pid == 0) {
			int null = open("/dev/null", O_WRONLY);
			dup2(null, 1);
			execl(memplan, memplan, "predict", path, (char *)NULL);
			_exit(127);
		}
		if (pid < 0 || wait4(pid, &status, 0, &used) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) > EXIT_NO)
			return -1;
		t[i] = now() - start;
		if (used.ru_maxrss > *rss)
			*rss = used.ru_maxrss;
	}
	return median(t, SLOW_RUNS);
}

static const char *stem(struct arena *a, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');

	return dot ? arena_strndup(a, name, (size_t)(dot - name)) : name;
}

static bool bench_plan(const char *memplan, const char *path, const char *set, const char *note)
{
	struct arena *a = arena_new(), *scratch = arena_new();
	struct diag *d = diag_new(a);
	const struct spec *spec = spec_read(a, d, path, &set, set ? 1 : 0);
	const struct result *r = spec ? plan(spec, a, d) : NULL;

	if (r) {
		double t_fold = time_fold(r->graph, scratch), t_walk = time_walk(r->graph, scratch);
		double t_plan = time_plan(spec, scratch), t_cold = -1;
		long rss = 0;

		if (!set)
			t_cold = time_cold(memplan, path, &rss);
		printf("%-36s %-10s %8zu %9.1f %9.3f %9.3f", stem(a, path), note, r->graph->ops.n, t_fold * 1e6,
		       t_walk * 1e3, t_plan * 1e3);
		if (t_cold >= 0)
			printf(" %9.2f %9.1f", t_cold * 1e3, (double)rss / 1024);
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
	bool ok = argc > 2;

	if (!ok)
		fputs("usage: bench MEMPLAN PLAN.yaml...\n", stderr);
	printf("%-36s %-10s %8s %9s %9s %9s %9s %9s\n", "plan", "", "ops", "fold us", "walk ms", "plan ms", "cold ms",
	       "RSS MiB");
	for (int i = 2; i < argc; i++) {
		ok &= bench_plan(argv[1], argv[i], NULL, "");
		ok &= bench_plan(argv[1], argv[i], "train.gradient_accumulation=1024", "1024 micro");
	}
	return ok ? EXIT_FITS : EXIT_INPUT;
}
