/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * memplan completion: scripts for shells, from the tables of commands and
 * options. */
#include "cmd/cmd.h"
#include "plan/schema.h"

#include <string.h>

static const char *words(struct arena *a, const char *const *names)
{
	struct sb b = { .a = a };

	for (size_t i = 0; names && names[i]; i++)
		sb_printf(&b, "%s%s", i ? " " : "", names[i]);
	return sb_str(&b);
}

static const char *command_words(struct arena *a)
{
	struct sb b = { .a = a };

	for (size_t i = 0; i < ncmd; i++)
		sb_printf(&b, "%s%s", i ? " " : "", cmds[i]->name);
	return sb_str(&b);
}

/* "train.micro_batch= train.seq_len= …" for --set. */
static void add_paths(struct sb *b, const char *path, const struct field *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *name = *path ? arena_printf(b->a, "%s.%s", path, f[i].name) : f[i].name;

		if (f[i].nfield)
			add_paths(b, name, f[i].fields, f[i].nfield);
		else
			sb_printf(b, "%s%s=", b->n ? " " : "", name);
	}
}

static const char *path_words(struct arena *a)
{
	struct sb b = { .a = a };
	size_t n;
	const struct field *f = plan_fields(a, &n);

	add_paths(&b, "", f, n);
	return sb_str(&b);
}

static const char *option_words(struct arena *a, const struct option_list *l)
{
	struct sb b = { .a = a };

	for (size_t i = 0; i < l->n; i++)
		sb_printf(&b, "%s--%s", i ? " " : "", l->v[i].row->name);
	return sb_str(&b);
}

/* The words that may follow an option; "": any. */
static const char *value_words(struct arena *a, const struct option_use *u)
{
	return u->common == TAKES_SET ? path_words(a) : words(a, u->choices);
}

/* The words that operand 1 may be; "": a file. */
static const char *operand_words(struct arena *a, const struct cmd *c)
{
	return c == &cmd_help ? command_words(a) : words(a, c->operand_names);
}

/* ---- bash */

static void print_bash(FILE *f, struct arena *a)
{
	fprintf(f, "# bash completion for memplan, printed by \"memplan completion bash\"\n"
		"_memplan() {\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
		"\tCOMPREPLY=()\n"
		"\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
		"\t\tCOMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n\t\treturn\n\tfi\n"
		"\tcase ${COMP_WORDS[1]} in\n", command_words(a));
	for (size_t i = 0; i < ncmd; i++) {
		struct option_list l = cmd_options(a, cmds[i]);
		const char *operands = operand_words(a, cmds[i]);

		fprintf(f, "\t%s)\n\t\tcase $prev in\n", cmds[i]->name);
		for (size_t k = 0; k < l.n; k++)
			if (*value_words(a, &l.v[k]))
				fprintf(f, "\t\t--%s)\n%s\t\t\tCOMPREPLY=($(compgen -W '%s' -- \"$cur\"))\n\t\t\treturn ;;\n",
					l.v[k].row->name, l.v[k].common == TAKES_SET ? "\t\t\tcompopt -o nospace\n" : "",
					value_words(a, &l.v[k]));
		fprintf(f, "\t\tesac\n\t\tcase $cur in\n\t\t-*) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", option_words(a, &l));
		if (*operands)
			fprintf(f, "\t\t*) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", operands);
		fputs("\t\tesac ;;\n", f);
	}
	fputs("\tesac\n}\ncomplete -o default -F _memplan memplan\n", f);
}

/* ---- zsh */

/* Brackets and colons have a meaning in _arguments. */
static const char *zsh_quote(struct arena *a, const char *s)
{
	struct sb b = { .a = a };

	for (; *s; s++)
		sb_printf(&b, "%s%c", strchr("[]:\\", *s) ? "\\" : "", *s == '\'' ? '"' : *s);
	return sb_str(&b);
}

static void zsh_options(FILE *f, struct arena *a, const struct cmd *c)
{
	struct option_list l = cmd_options(a, c);
	const char *operands = operand_words(a, c);

	for (size_t k = 0; k < l.n; k++) {
		const struct option_use *u = &l.v[k];
		const char *values = u->common == TAKES_SET ? "" : value_words(a, u);

		fprintf(f, " \\\n\t\t\t'%s--%s%s[%s]", u->common == TAKES_SET ? "*" : "", u->row->name, u->row->arg ? "=" : "",
			zsh_quote(a, u->row->doc));
		if (u->row->arg)
			fprintf(f, ":%s:%s%s%s", zsh_quote(a, u->row->arg), *values ? "(" : "_files", values, *values ? ")" : "");
		putc('\'', f);
	}
	if (*operands)
		fprintf(f, " \\\n\t\t\t'1:%s:(%s)'", zsh_quote(a, c->operands), operands);
	else if (c->operands)
		fprintf(f, " \\\n\t\t\t'*:%s:_files'", zsh_quote(a, c->operands));
}

static void print_zsh(FILE *f, struct arena *a)
{
	fputs("#compdef memplan\n# zsh completion for memplan, printed by \"memplan completion zsh\"\n"
	      "_memplan() {\n\tlocal -a commands\n\tcommands=(\n", f);
	for (size_t i = 0; i < ncmd; i++)
		fprintf(f, "\t\t'%s:%s'\n", cmds[i]->name, zsh_quote(a, cmds[i]->summary));
	fputs("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command commands\n\t\treturn\n\tfi\n"
	      "\tshift words\n\t(( CURRENT-- ))\n\tcase $words[1] in\n", f);
	for (size_t i = 0; i < ncmd; i++) {
		fprintf(f, "\t%s)\n\t\t_arguments -s", cmds[i]->name);
		zsh_options(f, a, cmds[i]);
		fputs(" ;;\n", f);
	}
	fputs("\tesac\n}\n_memplan \"$@\"\n", f);
}

/* ---- fish */

static const char *fish_quote(struct arena *a, const char *s)
{
	struct sb b = { .a = a };

	for (; *s; s++)
		sb_printf(&b, "%s%c", strchr("'\\", *s) ? "\\" : "", *s);
	return sb_str(&b);
}

static void fish_option(FILE *f, struct arena *a, const struct cmd *c, const struct option_use *u)
{
	const char *values = value_words(a, u);

	fprintf(f, "complete -c memplan -n '__fish_seen_subcommand_from %s' -l %s", c->name, u->row->name);
	if (u->letter)
		fprintf(f, " -s %c", u->letter);
	if (u->row->arg)
		fprintf(f, *values ? " -x -a '%s'" : " -r", values);
	fprintf(f, " -d '%s'\n", fish_quote(a, u->row->doc));
}

static void print_fish(FILE *f, struct arena *a)
{
	fputs("# fish completion for memplan, printed by \"memplan completion fish\"\n", f);
	for (size_t i = 0; i < ncmd; i++)
		fprintf(f, "complete -c memplan -n __fish_use_subcommand -f -a %s -d '%s'\n", cmds[i]->name,
			fish_quote(a, cmds[i]->summary));
	for (size_t i = 0; i < ncmd; i++) {
		struct option_list l = cmd_options(a, cmds[i]);
		const char *operands = operand_words(a, cmds[i]);

		for (size_t k = 0; k < l.n; k++)
			fish_option(f, a, cmds[i], &l.v[k]);
		if (*operands)
			fprintf(f, "complete -c memplan -n '__fish_seen_subcommand_from %s' -f -a '%s'\n", cmds[i]->name, operands);
	}
}

/* ---- the command */

enum { SHELL_N = 3 };
static const char *const shell_names[SHELL_N + 1] = { "bash", "zsh", "fish", NULL };
static void (*const printers[SHELL_N])(FILE *f, struct arena *a) = { print_bash, print_zsh, print_fish };

static int run(const struct args *args)
{
	size_t i = 0;

	while (i + 1 < SHELL_N && strcmp(shell_names[i], args->operand[0]) != 0)
		i++;
	printers[i](args->out, args->a);
	return 0;
}

const struct cmd cmd_completion = {
	.name = "completion", .operands = "SHELL", .summary = "a completion script for a shell",
	.doc = "Prints a script that completes commands, options and their values.",
	.takes = TAKES_OUTPUT, .min_operand = 1, .max_operand = 1, .operand_names = shell_names, .run = run,
};
