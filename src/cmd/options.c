/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Options: getopt_long over a command's rows and the common rows that it
 * takes. */
#include "cmd/cmd.h"

#include "report/report.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const unit_names[] = {
	[UNIT_GIB] = "GiB", [UNIT_GB] = "GB", [UNIT_MIB] = "MiB", [UNIT_BYTE] = "B", NULL
};
enum { COLOR_AUTO, COLOR_ALWAYS };
static const char *const color_names[] = { [COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", "never", NULL };

static const struct common_row { unsigned bit; char letter; struct cmd_option o; } commons[] = {
	{ TAKES_SET, 0, { "set", "PATH=VALUE", NULL, "change a key of the plan, as train.micro_batch=2; repeatable" } },
	{ TAKES_FORMAT, 0, { "format", "FORMAT", NULL, "how to print the answer" } },
	{ TAKES_OUTPUT, 'o', { "output", "FILE", NULL, "write to FILE, which appears only when it is complete" } },
	{ TAKES_QUIET, 'q', { "quiet", NULL, NULL, "print nothing; the exit status tells" } },
	{ TAKES_UNITS, 0, { "units", "UNIT", unit_names, "unit of bytes in text" } },
	{ TAKES_COLOR, 0, { "color", "WHEN", color_names, "color in text" } },
	{ TAKES_HELP, 'h', { "help", NULL, NULL, "print this help" } },
};

static const char *const *format_names(struct arena *a)
{
	const char **names = NEWN(a, const char *, nformat + 1);

	for (size_t i = 0; i < nformat; i++)
		names[i] = formats[i].name;
	return names;
}

struct option_list cmd_options(struct arena *a, const struct cmd *c)
{
	struct option_list l = { 0 };

	for (size_t i = 0; i < c->noption; i++)
		*VEC_PUSH(a, &l) = (struct option_use){ &c->options[i], 0, 0, c->options[i].choices };
	for (size_t i = 0; i < COUNT(commons); i++) {
		const struct common_row *r = &commons[i];

		if ((c->takes | TAKES_HELP) & r->bit)
			*VEC_PUSH(a, &l) = (struct option_use){
				&r->o, r->bit, r->letter, r->bit == TAKES_FORMAT ? format_names(a) : r->o.choices };
	}
	return l;
}

/* ---- parsing */

struct parser {
	const struct cmd *c;
	struct arena *a;
	struct option_list list;
	struct args args;
	VEC(const char *) sets;
	const char *output;
	size_t color;
	bool help;
};

static size_t count(const char *const *names)
{
	size_t n = 0;

	while (names[n])
		n++;
	return n;
}

/* Index in a NULL-ended list; its length: not there. */
static size_t index_of(const char *const *names, const char *s)
{
	size_t i = 0;

	while (names[i] && strcmp(names[i], s) != 0)
		i++;
	return i;
}

static const char *listed(struct arena *a, const char *const *names)
{
	struct sb b = { .a = a };

	for (size_t i = 0; names[i]; i++)
		sb_printf(&b, "%s%s", i ? ", " : "", names[i]);
	return sb_str(&b);
}

static int take(struct parser *p, const struct option_use *u, const char *value)
{
	size_t i = u->choices ? index_of(u->choices, value) : 0;

	if (u->choices && !u->choices[i])
		return usage_error(p->c->name, "--%s wants one of %s, found '%s'%s", u->row->name,
				   listed(p->a, u->choices), value,
				   did_you_mean(p->a, value, u->choices, count(u->choices)));
	switch (u->common) {
	case TAKES_SET: *VEC_PUSH(p->a, &p->sets) = value; break;
	case TAKES_FORMAT: p->args.format = value; break;
	case TAKES_OUTPUT: p->output = value; break;
	case TAKES_QUIET: p->args.quiet = true; break;
	case TAKES_UNITS: p->args.unit = (enum unit)i; break;
	case TAKES_COLOR: p->color = i; break;
	case TAKES_HELP: p->help = true; break;
	default: p->args.value[u->row - p->c->options] = value ? value : ""; break;
	}
	return 0;
}

/* The word "--fromat=x" that getopt did not know. */
static int unknown_option(struct parser *p, const char *word)
{
	const char **names = NEWN(p->a, const char *, p->list.n);
	const char *name = arena_strndup(p->a, word, strcspn(word, "="));

	for (size_t i = 0; i < p->list.n; i++) {
		names[i] = arena_printf(p->a, "--%s", p->list.v[i].row->name);
		if (!strcmp(names[i], name) && word[strlen(name)])
			return usage_error(p->c->name, "%s takes no value", name);
	}
	return usage_error(p->c->name, "unknown option '%s'%s", name, did_you_mean(p->a, name, names, p->list.n));
}

static int bad_option(struct parser *p, char **argv, bool lacks_value)
{
	const char *word = argv[optind - 1];

	if (optopt > 0 && optopt < 256 && !lacks_value)
		return usage_error(p->c->name, "unknown option '-%c'", optopt);
	return lacks_value ? usage_error(p->c->name, "%s wants a value", word) : unknown_option(p, word);
}

static int parse_options(struct parser *p, int argc, char **argv)
{
	struct option *longs = NEWN(p->a, struct option, p->list.n + 1);
	struct sb letters = { .a = p->a };
	int c, status = 0;

	sb_puts(&letters, ":");
	for (size_t i = 0; i < p->list.n; i++) {
		const struct option_use *u = &p->list.v[i];

		longs[i] = (struct option){ u->row->name, u->row->arg ? required_argument : no_argument, NULL, 256 + (int)i };
		if (u->letter)
			sb_printf(&letters, "%c%s", u->letter, u->row->arg ? ":" : "");
	}
	optind = 0;
	opterr = 0;
	while (status == 0 && (c = getopt_long(argc, argv, sb_str(&letters), longs, NULL)) != -1) {
		if (c == '?' || c == ':')
			return bad_option(p, argv, c == ':');
		for (size_t i = 0; i < p->list.n; i++)
			if (c == 256 + (int)i || c == p->list.v[i].letter)
				status = take(p, &p->list.v[i], optarg);
	}
	return status;
}

static int parse_operands(struct parser *p, int argc, char **argv)
{
	const struct cmd *c = p->c;
	const char *const *names = c->operand_names;

	p->args.noperand = (size_t)(argc - optind);
	p->args.operand = NEWN(p->a, const char *, p->args.noperand + 1);
	for (size_t i = 0; i < p->args.noperand; i++)
		p->args.operand[i] = argv[optind + (int)i];
	if (p->args.noperand < c->min_operand)
		return usage_error(c->name, "missing %s", c->operands);
	if (p->args.noperand > c->max_operand)
		return usage_error(c->name, "unexpected operand '%s'", p->args.operand[c->max_operand]);
	if (p->args.noperand > 0 && names && !names[index_of(names, p->args.operand[0])])
		return usage_error(c->name, "%s wants one of %s, found '%s'%s", c->operands, listed(p->a, names),
				   p->args.operand[0], did_you_mean(p->a, p->args.operand[0], names, count(names)));
	return 0;
}

static bool is_set(const char *variable)
{
	const char *s = getenv(variable);

	return s && *s;
}

/* no-color.org, bixense.com/clicolors */
static bool wants_color(const struct parser *p, FILE *f)
{
	const char *term = getenv("TERM");

	if (p->color != COLOR_AUTO || is_set("NO_COLOR"))
		return p->color == COLOR_ALWAYS;
	return is_set("CLICOLOR_FORCE") || (term && strcmp(term, "dumb") != 0 && isatty(fileno(f)));
}

static int run_to(struct parser *p)
{
	struct output out;
	int status;

	if (!output_open(&out, p->a, p->output))
		return EXIT_ENVIRONMENT;
	p->args.out = out.f;
	p->args.color = wants_color(p, out.f);
	status = p->c->run(&p->args);
	return output_close(&out, status == EXIT_FITS || status == EXIT_NO || status == EXIT_NO_ANSWER) ? status
			: EXIT_ENVIRONMENT;
}

int cmd_run(const struct cmd *c, struct arena *a, int argc, char **argv)
{
	struct parser p = { .c = c, .a = a, .args = { .a = a }, .list = cmd_options(a, c) };
	int status = parse_options(&p, argc, argv);

	if (status == 0 && p.help) {
		help_command(stdout, a, c);
		return 0;
	}
	if (status == 0)
		status = parse_operands(&p, argc, argv);
	p.args.set = p.sets.v;
	p.args.nset = p.sets.n;
	return status ? status : run_to(&p);
}
