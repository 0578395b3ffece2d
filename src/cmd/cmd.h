/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Commands: one table.  A row says what the command is called, what it takes
 * and which function runs it; parsing, help, the manual and completion come
 * from it. */
#ifndef MEMPLAN_CMD_H
#define MEMPLAN_CMD_H

#include "base/base.h"

/* What every command may be given; a command lists the ones it takes. */
enum common {
	TAKES_SET = 1, TAKES_FORMAT = 2, TAKES_OUTPUT = 4, TAKES_QUIET = 8, TAKES_UNITS = 16, TAKES_COLOR = 32,
	TAKES_HELP = 64,               /* every command does */
	TAKES_ALL = 63,
};

/* An option of one command.  Its value goes to struct args.value[index of the row]. */
struct cmd_option {
	const char *name;              /* long name, without dashes */
	const char *arg;               /* metavariable, "TENSOR"; NULL: a flag */
	const char *const *choices;    /* NULL-ended; NULL: any text */
	const char *doc;
};

enum { MAX_OPTIONS = 16, ANY_NUMBER = 4096 };
struct args {
	struct arena *a;
	const char **operand; size_t noperand;
	const char *value[MAX_OPTIONS];    /* of the command's own options; a flag that is set has "" */
	const char **set; size_t nset;     /* --set PATH=VALUE, in order */
	const char *format;                /* --format; NULL: not given */
	bool quiet, color;                 /* color: decided already, for `out` */
	enum unit unit;
	FILE *out;                         /* standard output, or the -o file, which appears only when all went well */
};

struct cmd {
	const char *name, *operands, *summary, *doc;   /* operands: "PLAN"; doc: a paragraph for its help */
	unsigned takes;                    /* enum common */
	const struct cmd_option *options; size_t noption;
	size_t min_operand, max_operand;   /* max 0 with operands NULL: none */
	const char *const *operand_names;  /* NULL-ended list that operand 1 comes from; NULL: any */
	int (*run)(const struct args *args);   /* returns the exit status */
};

/* ---- cmd.c: the table */
extern const struct cmd cmd_predict, cmd_explain, cmd_whatif, cmd_check, cmd_list, cmd_schema, cmd_completion, cmd_help;
extern const struct cmd *const cmds[];
extern const size_t ncmd;
const struct cmd *cmd_find(const char *name);
/* Prints a usage error ("memplan predict: …") with an optional hint line; returns EXIT_INPUT.  cmd NULL: memplan. */
int usage_error(const char *cmd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "; did you mean 'x'?" or "". */
const char *did_you_mean(struct arena *a, const char *found, const char *const *names, size_t n);
/* Unknown command. */
int unknown_command(struct arena *a, const char *name);

/* ---- options.c: the options of a command, its own and the common ones */
struct option_use {
	const struct cmd_option *row;
	unsigned common;               /* enum common; 0: the command's own */
	char letter;                   /* short name; 0: none */
	const char *const *choices;    /* NULL-ended; NULL: any text */
};
struct option_list { struct option_use *v; size_t n, cap; };
struct option_list cmd_options(struct arena *a, const struct cmd *c);
/* Parses argv[1..] and runs the command; returns the exit status. */
int cmd_run(const struct cmd *c, struct arena *a, int argc, char **argv);

/* ---- output.c: an output file that appears as a whole or not at all */
struct output { FILE *f; const char *path, *temporary; };
bool output_open(struct output *o, struct arena *a, const char *path);     /* NULL or "-": standard output */
bool output_close(struct output *o, bool keep);        /* false: a write failed, and that is said */

/* ---- help.c */
void help_all(FILE *f, struct arena *a);
void help_command(FILE *f, struct arena *a, const struct cmd *c);
void help_mdoc(FILE *f, struct arena *a);              /* all commands and options, for memplan(1) */

#endif
