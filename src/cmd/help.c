/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Help, from the tables: text for terminals, mdoc for the manual. */
#include "cmd/cmd.h"

#include "report/report.h"

#include <string.h>

enum { WIDTH = 80, NAME_COLUMN = 24 };

static const char *joined(struct arena *a, const char *const *names, const char *between)
{
	struct sb b = { .a = a };

	for (size_t i = 0; names && names[i]; i++)
		sb_printf(&b, "%s%s", i ? between : "", names[i]);
	return sb_str(&b);
}

void help_all(FILE *f, struct arena *a)
{
	(void)a;
	fputs("usage: memplan COMMAND [OPTIONS] [OPERANDS]\n\n"
	      "Plans the GPU memory of a training run before it is launched.\n\n", f);
	for (size_t i = 0; i < ncmd; i++)
		fprintf(f, "  %-12s %s\n", cmds[i]->name, cmds[i]->summary);
	fputs("\n'memplan help COMMAND' tells more; memplan(1) and memplan-plan(5) are the manual.\n", f);
}

static void put_option(FILE *f, const struct option_use *u, const struct style *st)
{
	struct sb name = { .a = st->a }, doc = { .a = st->a };

	if (u->letter)
		sb_printf(&name, "-%c, ", u->letter);
	sb_printf(&name, "--%s%s%s", u->row->name, u->row->arg ? " " : "", u->row->arg ? u->row->arg : "");
	sb_puts(&doc, u->row->doc);
	if (u->choices)
		sb_printf(&doc, ": %s", joined(st->a, u->choices, ", "));
	fprintf(f, "  %-*s ", NAME_COLUMN, sb_str(&name));
	if (name.n > NAME_COLUMN)
		fprintf(f, "\n  %*s ", NAME_COLUMN, "");
	words_wrap(f, sb_str(&doc), NAME_COLUMN + 3, WIDTH, st);
}

void help_command(FILE *f, struct arena *a, const struct cmd *c)
{
	struct style st = { .a = a };
	struct option_list l = cmd_options(a, c);

	fprintf(f, "usage: memplan %s [OPTIONS]%s%s\n\n", c->name, c->operands ? " " : "", c->operands ? c->operands : "");
	words_wrap(f, c->doc ? c->doc : c->summary, 0, WIDTH, &st);
	if (c->operand_names)
		fprintf(f, "\n%s: %s\n", c->operands, joined(a, c->operand_names, ", "));
	fputs("\noptions:\n", f);
	for (size_t i = 0; i < l.n; i++)
		put_option(f, &l.v[i], &st);
}

/* ---- mdoc */

/* A sentence begins on a line of its own. */
static void mdoc_text(FILE *f, const char *s)
{
	for (; *s; s++) {
		putc(*s, f);
		if (*s == '.' && s[1] == ' ') {
			putc('\n', f);
			s += strspn(s + 1, " ");
		}
	}
	putc('\n', f);
}

static void mdoc_option(FILE *f, struct arena *a, const struct option_use *u)
{
	fputs(".It", f);
	if (u->letter)
		fprintf(f, " Fl %c%s%s ,", u->letter, u->row->arg ? " Ar " : "", u->row->arg ? u->row->arg : "");
	fprintf(f, " Fl -%s%s%s\n%s", u->row->name, u->row->arg ? " Ar " : "", u->row->arg ? u->row->arg : "", u->row->doc);
	if (u->choices)
		fprintf(f, ":\n.Cm %s", joined(a, u->choices, " , "));
	else
		putc('.', f);
	putc('\n', f);
}

void help_mdoc(FILE *f, struct arena *a)
{
	struct cmd none = { .takes = TAKES_ALL };
	struct option_list common = cmd_options(a, &none);

	for (size_t i = 0; i < ncmd; i++) {
		const struct cmd *c = cmds[i];

		fprintf(f, ".Ss memplan %s%s%s\n", c->name, c->operands ? " " : "", c->operands ? c->operands : "");
		mdoc_text(f, c->doc ? c->doc : c->summary);
		if (c->noption)
			fputs(".Bl -tag -width Ds\n", f);
		for (size_t k = 0; k < c->noption; k++)
			mdoc_option(f, a, &(struct option_use){ &c->options[k], 0, 0, c->options[k].choices });
		if (c->noption)
			fputs(".El\n", f);
	}
	fputs(".Ss Common options\n.Bl -tag -width Ds\n", f);
	for (size_t i = 0; i < common.n; i++)
		mdoc_option(f, a, &common.v[i]);
	fputs(".El\n", f);
}

/* ---- the command */

enum { O_MDOC };
static const struct cmd_option options[] = {
	[O_MDOC] = { "mdoc", NULL, NULL, "print all commands and options in the language of manual pages" },
};

static int run(const struct args *args)
{
	const struct cmd *c = args->noperand ? cmd_find(args->operand[0]) : NULL;

	if (args->noperand && !c)
		return unknown_command(args->a, args->operand[0]);
	if (args->value[O_MDOC])
		help_mdoc(args->out, args->a);
	else if (c)
		help_command(args->out, args->a, c);
	else
		help_all(args->out, args->a);
	return 0;
}

const struct cmd cmd_help = {
	.name = "help", .operands = "[COMMAND]", .summary = "what the commands do and take",
	.doc = "Prints the list of commands, or what one of them does and which options it takes.",
	.options = options, .noption = COUNT(options), .max_operand = 1, .run = run,
};
