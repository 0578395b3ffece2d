/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of commands. */
#include "cmd/cmd.h"

#include <string.h>
#include <unistd.h>

const struct cmd *const cmds[] = {
	&cmd_predict, &cmd_explain, &cmd_whatif, &cmd_check, &cmd_list, &cmd_schema, &cmd_completion, &cmd_help,
};
const size_t ncmd = COUNT(cmds);

const struct cmd *cmd_find(const char *name)
{
	for (size_t i = 0; i < ncmd; i++)
		if (!strcmp(cmds[i]->name, name))
			return cmds[i];
	return NULL;
}

int usage_error(const char *cmd, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "memplan%s%s: ", cmd ? " " : "", cmd ? cmd : "");
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\nTry 'memplan %s%s'.\n", cmd ? "help " : "--help", cmd ? cmd : "");
	return EXIT_INPUT;
}

const char *did_you_mean(struct arena *a, const char *found, const char *const *names, size_t n)
{
	const char *near = nearest(found, names, n);

	return near ? arena_printf(a, "; did you mean '%s'?", near) : "";
}

int unknown_command(struct arena *a, const char *name)
{
	const char **names = NEWN(a, const char *, ncmd);

	for (size_t i = 0; i < ncmd; i++)
		names[i] = cmds[i]->name;
	if (!access(name, F_OK))
		return usage_error(NULL, "unknown command '%s'; did you mean 'memplan predict %s'?", name, name);
	return usage_error(NULL, "unknown command '%s'%s", name, did_you_mean(a, name, names, ncmd));
}
