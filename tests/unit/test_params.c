/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Models and their parameters: every file of models/ against params.csv,
 * names and shapes against named_parameters.tsv, config.json files as they
 * are published, and what must be refused.  Run in the source directory, or
 * with MEMPLAN_DATA naming it. */
#include "input/model.h"
#include "kernel/params.h"

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

static void check_number(uint64_t got, uint64_t want, const char *what, const char *about)
{
	checks++;
	if (got != want) {
		failures++;
		printf("FAIL: %s: %s is %llu, want %llu\n", about, what, (unsigned long long)got, (unsigned long long)want);
	}
}

static const char *path(struct arena *a, const char *folder, const char *name, const char *suffix)
{
	const char *root = getenv("MEMPLAN_DATA");
	return arena_printf(a, "%s/%s/%s%s", root ? root : ".", folder, name, suffix);
}

static const struct model *load(struct arena *a, const char *file, const char *name)
{
	struct diag *d = diag_new(a);
	const struct node *n = node_read(a, d, file);
	const struct model *m = n ? model_from_node(a, d, n, name, NEW(a, struct model)) : NULL;
	if (!m)
		diag_print(d, stdout);
	return m;
}

/* Splits line in place; returns the number of fields. */
static size_t split(char *line, char sep, char **f, size_t cap)
{
	size_t n = 0;
	line[strcspn(line, "\r\n")] = '\0';
	for (char *p = line; n < cap; p++) {
		f[n++] = p;
		p = strchr(p, sep);
		if (!p)
			break;
		*p = '\0';
	}
	return n;
}

static FILE *open_table(struct arena *a, const char *name)
{
	FILE *f = fopen(path(a, "tests/unit", name, ""), "r");
	check(f != NULL, "cannot be read", name);
	return f;
}

static uint64_t mtp_count(struct arena *a, const struct model *m)
{
	struct model_dims d = model_dims(a, m);
	struct param_list l = params_mtp(a, m, &d);
	uint64_t sum = 0;
	for (size_t i = 0; i < l.n; i++)
		sum += param_count(&l.v[i]);
	return sum;
}

static int model_files(struct arena *a)
{
	DIR *dir = opendir(path(a, "models", "", ""));
	int n = 0;
	for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir))
		n += strstr(e->d_name, ".yaml") != NULL;
	if (dir)
		closedir(dir);
	return n;
}

static void counts(void)
{
	char line[512], *f[7];
	struct arena *a = arena_new();
	FILE *csv = open_table(a, "params.csv");
	int rows = 0;
	while (csv && fgets(line, sizeof line, csv)) {
		const struct model *m;
		if (line[0] == '#' || split(line, ',', f, COUNT(f)) != COUNT(f) || !strcmp(f[0], "model"))
			continue;
		rows++;
		m = load(a, path(a, "models", f[0], ".yaml"), f[0]);
		check(m != NULL, "cannot be read", f[0]);
		if (m) {
			check_number(model_parameters(a, m), strtoull(f[1], NULL, 10), "parameters", f[0]);
			check_number(model_active_parameters(a, m), strtoull(f[2], NULL, 10), "active parameters", f[0]);
			if (*f[3])
				check_number(model_parameters(a, m) + strtoull(f[4], NULL, 10), strtoull(f[3], NULL, 10),
					     "published count", f[0]);
			if (*f[5])
				check_number(mtp_count(a, m), strtoull(f[5], NULL, 10), "multi-token prediction", f[0]);
		}
		arena_reset(a);
	}
	check(rows == model_files(a), "a row for every file of models/", "params.csv");
	if (csv)
		fclose(csv);
	arena_free(a);
}

/* ---- names and shapes in order */

static const char *shape_text(struct arena *a, const struct param *p)
{
	struct sb b = { .a = a };
	for (unsigned i = 0; i < p->ndim; i++)
		sb_printf(&b, "%s%llu", i ? "x" : "", (unsigned long long)p->dim[i]->value);
	return sb_str(&b);
}

static void list_lines(struct arena *a, struct sb *b, struct param_list l, const char *prefix, bool head)
{
	for (size_t i = 0; i < l.n; i++)
		if (!l.v[i].buffer && (l.v[i].site == SITE_FINAL || l.v[i].site == SITE_HEAD) == head)
			sb_printf(b, "%s%s %s\n", prefix, l.v[i].name, shape_text(a, &l.v[i]));
}

static void layer_lines(struct arena *a, struct sb *b, const struct model *m, const struct model_dims *d, uint64_t layer)
{
	const char *prefix = arena_printf(a, "%s%llu.", params_layer_prefix(a, m), (unsigned long long)layer);
	list_lines(a, b, params_layer(a, m, d, layer), prefix, false);
}

/* The model's parameters as named_parameters.tsv has them. */
static const char *model_lines(struct arena *a, const struct model *m)
{
	struct model_dims d = model_dims(a, m);
	struct sb b = { .a = a };
	list_lines(a, &b, params_outer(a, m, &d), "", false);
	layer_lines(a, &b, m, &d, 0);
	if (m->first_dense > 0)
		layer_lines(a, &b, m, &d, m->first_dense);
	list_lines(a, &b, params_outer(a, m, &d), "", true);
	return sb_str(&b);
}

static void compare_lines(struct arena *a, const char *name, const char *want)
{
	const struct model *m = load(a, path(a, "models", name, ".yaml"), name);
	const char *got = m ? model_lines(a, m) : "";
	size_t i = 0, start = 0;
	for (; got[i] && got[i] == want[i]; i++)
		if (got[i] == '\n')
			start = i + 1;
	check(got[i] == want[i], "names and shapes differ", name);
	if (got[i] != want[i])
		printf("  got  %.*s\n  want %.*s\n", (int)strcspn(got + start, "\n"), got + start,
		       (int)strcspn(want + start, "\n"), want + start);
}

static void names(void)
{
	char line[512], *f[4], current[64] = "";
	struct arena *a = arena_new();
	FILE *tsv = open_table(a, "named_parameters.tsv");
	struct sb want = { .a = a };
	int models = 0;
	while (tsv && fgets(line, sizeof line, tsv)) {
		if (line[0] == '#' || split(line, '\t', f, COUNT(f)) != COUNT(f))
			continue;
		if (strcmp(current, f[0])) {
			if (*current)
				compare_lines(a, current, sb_str(&want));
			snprintf(current, sizeof current, "%s", f[0]);
			arena_reset(a);
			want = (struct sb){ .a = a };
			models++;
		}
		sb_printf(&want, "%s %s\n", f[2], f[3]);
	}
	compare_lines(a, current, sb_str(&want));
	check(models >= 30, "too few models", "named_parameters.tsv");
	if (tsv)
		fclose(tsv);
	arena_free(a);
}

/* ---- config.json as published */

static void configs(void)
{
	static const struct { const char *name; uint64_t parameters; } files[] = {
		{ "llama-3-8b", 8030261248 }, { "qwen2.5-7b", 7615616512 }, { "gemma-2-2b", 2614341888 },
		{ "gpt2", 124439808 }, { "mixtral-8x7b", 46702792704 }, { "deepseek-v3", 671026404352 },
		{ "qwen2.5-vl-7b", 8292166656 }, { "gemma-3-4b", 4300079472 }, { "internvl3-8b", 7944373760 },
		{ "clip-vit-large-patch14-tower", 303179776 }, { "siglip-so400m-patch14-384-tower", 428225600 },
		{ "qwen3-vl-8b-tower", 576388336 },
	};
	struct arena *a = arena_new();
	for (size_t i = 0; i < COUNT(files); i++) {
		const struct model *m = load(a, path(a, "tests/configs", files[i].name, ".json"), files[i].name);
		check(m != NULL, "is accepted", files[i].name);
		if (m)
			check_number(model_parameters(a, m), files[i].parameters, "parameters", files[i].name);
	}
	arena_free(a);
}

/* ---- what a config resolves to */

static const struct model *parse(struct arena *a, struct diag *d, const char *text)
{
	struct source *s = NEW(a, struct source);
	const struct node *n;
	*s = (struct source){ .name = "model.yaml", .text = text, .len = strlen(text) };
	n = node_parse(a, d, s, 0);
	return n ? model_from_node(a, d, n, "test", NEW(a, struct model)) : NULL;
}

#define SMALL "hidden_size: 64\nnum_hidden_layers: 6\nnum_attention_heads: 4\nvocab_size: 100\nintermediate_size: 128\n"

static void sliding(const char *text, uint64_t window, const char *layers)
{
	struct arena *a = arena_new();
	struct diag *d = diag_new(a);
	const struct model *m = parse(a, d, text);
	char got[8] = "";
	if (!m)
		diag_print(d, stdout);
	for (uint64_t i = 0; m && i < 6; i++)
		got[i] = m->sliding[i] ? 's' : '.';
	check(m && m->sliding_window == window && !strcmp(got, layers), got, text);
	arena_free(a);
}

static void windows(void)
{
	sliding("model_type: llama\n" SMALL "sliding_window: 16\n", 0, "......");
	sliding("model_type: mistral\n" SMALL "num_key_value_heads: 4\n", 4096, "ssssss");
	sliding("model_type: mistral\n" SMALL "num_key_value_heads: 4\nsliding_window: null\n", 0, "......");
	sliding("model_type: qwen2\n" SMALL "num_key_value_heads: 4\n", 0, "......");
	sliding("model_type: qwen2\n" SMALL "num_key_value_heads: 4\nuse_sliding_window: true\nmax_window_layers: 4\n", 4096,
		"....ss");
	sliding("model_type: qwen2_moe\n" SMALL "num_key_value_heads: 4\nuse_sliding_window: true\n", 4096, "s.s.s.");
	sliding("model_type: gemma2\n" SMALL, 4096, "s.s.s.");
	sliding("model_type: gemma3_text\n" SMALL "sliding_window: 512\n", 512, "sssss.");
	sliding("model_type: gemma3_text\n" SMALL "layer_types: [full_attention, full_attention, full_attention, "
		"sliding_attention, full_attention, full_attention]\n", 4096, "...s..");
	sliding("model_type: phi3\n" SMALL, 0, "......");
	sliding("model_type: gpt_oss\n" SMALL "num_key_value_heads: 2\n", 128, "s.s.s.");
}

static void resolution(void)
{
	struct arena *a = arena_new();
	struct diag *d = diag_new(a);
	const struct model *m = parse(a, d, "model_type: gpt2\nn_embd: 64\nn_layer: 2\nn_head: 4\nvocab_size: 100\n");
	check(m && m->ffn == 256 && m->tied && m->dropout_attn > 0.09 && m->positions == 1024, "class defaults", "gpt2");
	m = parse(a, d, "model_type: gemma2\n" SMALL);
	check(m && m->head_dim == 256 && m->kv_heads == 4 && m->tied && m->attn_softcap > 49 && m->final_softcap > 29,
	      "class defaults", "gemma2");
	m = parse(a, d, "model_type: falcon\n" SMALL);
	check(m && m->kv_heads == 1 && m->family->block == BLOCK_PARALLEL && m->family->norms == 1, "multi-query", "falcon");
	m = parse(a, d, "model_type: falcon\nnew_decoder_architecture: true\nnum_kv_heads: 2\n" SMALL);
	check(m && m->kv_heads == 2 && m->family->norms == 2, "grouped", "falcon");
	m = parse(a, d, "model_type: falcon\nparallel_attn: false\nmulti_query: false\nalibi: true\n" SMALL);
	check(m && m->kv_heads == 4 && m->family->block == BLOCK_PRE && m->family->position == POS_ALIBI, "rw", "falcon");
	m = parse(a, d, "model_type: gpt_neox\nuse_parallel_residual: false\nhidden_dropout: 0.1\n" SMALL);
	check(m && m->family->block == BLOCK_PRE && m->rotary_fraction < 0.26 && m->dropout_embd > 0.09, "sequential",
	      "gpt_neox");
	m = parse(a, d, "model_type: phi3\nrope_parameters: {rope_type: longrope, partial_rotary_factor: 0.75}\n" SMALL);
	check(m && m->rotary_fraction > 0.74 && m->rotary_fraction < 0.76, "rotary share", "phi3");
	m = parse(a, d, "model_type: qwen3_moe\nnum_key_value_heads: 2\nmlp_only_layers: [1]\ndecoder_sparse_step: 2\n" SMALL);
	check(m && !m->moe[0] && !m->moe[1] && !m->moe[2] && m->moe[3] && m->moe[5], "dense layers", "qwen3_moe");
	m = parse(a, d, "model_type: glm4_moe\nnum_key_value_heads: 2\n" SMALL);
	check(m && m->qk_norm == QKNORM_NONE && !m->q_bias, "switches off", "glm4_moe");
	m = parse(a, d, "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], \"anything\": 1}");
	check(m && m->layers == 32 && m->hidden == 4096, "written by transformers: defaults, further keys", "llama");
	diag_print(d, stdout);
	arena_free(a);
}

/* ---- refusals */

static void refused(const char *text, int status, const char *message)
{
	struct arena *a = arena_new();
	struct diag *d = diag_new(a);
	const struct model *m = parse(a, d, text);
	bool found = false;
	for (size_t i = 0; i < diag_count(d, SEV_ERROR); i++)
		found = found || !strcmp(diag_text(d, SEV_ERROR, i), message);
	check(!m, "is refused", message);
	check(found, "says so", message);
	check(diag_status(d) == status, "exit status", message);
	if (!found)
		diag_print(d, stdout);
	arena_free(a);
}

static void errors(void)
{
	refused("model_type: lama\n" SMALL, EXIT_NO_ANSWER, "model_type 'lama' is not modelled");
	refused("hidden_size: 64\n", EXIT_INPUT, "'model_type' is missing");
	refused("- 1\n", EXIT_INPUT, "a model is a mapping, found a list");
	refused("model_type: llama\nhiden_size: 64\n" SMALL, EXIT_INPUT, "unknown key 'hiden_size'");
	refused("model_type: llama\nhidden_size: 64\n", EXIT_INPUT, "'num_hidden_layers' is missing");
	refused("model_type: llama\nn_embd: 32\n" SMALL, EXIT_INPUT, "'n_embd' and 'hidden_size' disagree");
	refused("model_type: llama\nnum_key_value_heads: 3\n" SMALL, EXIT_INPUT,
		"num_key_value_heads=3 does not divide num_attention_heads=4");
	refused("model_type: gpt2\nn_embd: 50\nn_layer: 2\nn_head: 4\nvocab_size: 100\n", EXIT_INPUT,
		"num_attention_heads=4 does not divide hidden_size=50");
	refused("model_type: llama\nhidden_act: xielu\n" SMALL, EXIT_NO_ANSWER, "activation 'xielu' is not modelled");
	refused("model_type: llama\nnum_experts: 8\n" SMALL, EXIT_INPUT, "'llama' has no experts");
	refused("model_type: mixtral\nnum_key_value_heads: 4\nnum_experts_per_tok: 9\n" SMALL, EXIT_INPUT,
		"num_experts_per_tok=9 is more than the 8 experts");
	refused("model_type: gemma2\nlayer_types: [full_attention]\n" SMALL, EXIT_INPUT, "layer_types has 1 entries for 6 layers");
	refused("model_type: olmo\nclip_qkv: 8.0\n" SMALL, EXIT_NO_ANSWER, "'clip_qkv' is not modelled");
	refused("model_type: qwen2_vl\nnum_key_value_heads: 4\nvision_config: {depht: 2}\n" SMALL, EXIT_INPUT, "unknown key 'depht'");
	refused("model_type: qwen2_vl\nnum_key_value_heads: 4\nvision_config: {num_heads: 7, hidden_size: 64}\n" SMALL, EXIT_INPUT,
		"num_heads=7 does not divide hidden_size=1280 of the vision tower");
	refused("model_type: qwen2_5_vl\nnum_key_value_heads: 4\n" SMALL, EXIT_INPUT,
		"the vision tower's output width 3584 is not the hidden size 64");
	refused("model_type: qwen2_vl\nnum_key_value_heads: 4\nvision_config: {depth: 0, hidden_size: 64}\n" SMALL, EXIT_INPUT,
		"'depth' of the vision tower is missing");
	refused("model_type: deepseek_v3\nkv_lora_rank: null\n" SMALL, EXIT_INPUT,
		"'deepseek_v3' needs kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim");
	refused("model_type: gemma3\nhidden_size: 8\ntext_config:\n  model_type: gemma3\n", EXIT_NO_ANSWER,
		"a vision tower inside a vision tower's language part");
}

int main(void)
{
	counts();
	names();
	configs();
	windows();
	resolution();
	errors();
	printf("%d passed, %d failed\n", checks - failures, failures);
	return failures != 0;
}
