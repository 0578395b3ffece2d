/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * memplan: finds the command and runs it. */
#include "cmd/cmd.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static void on_abort(int sig)
{
	static const char text[] = "memplan: internal error; please report it with the plan\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);

	(void)n;
	(void)sig;
	_exit(EXIT_BUG);
}

static int run(struct arena *a, int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;
	const struct cmd *c;

	if (!word) {
		help_all(stderr, a);
		return EXIT_INPUT;
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		puts("memplan " PACKAGE_VERSION);
		return 0;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
		help_all(stdout, a);
		return 0;
	}
	c = cmd_find(word);
	if (!c)
		return *word == '-' ? usage_error(NULL, "unknown option '%s'", word) : unknown_command(a, word);
	return cmd_run(c, a, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	struct arena *a = arena_new();
	int status;

	signal(SIGABRT, on_abort);
	status = run(a, argc, argv);
	arena_free(a);
	if (fflush(stdout) && status == 0) {
		perror("memplan: standard output");
		status = EXIT_ENVIRONMENT;
	}
	return status;
}
