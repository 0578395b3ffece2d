/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Printers against a result made by hand: every format and every explanation
 * beside the file of the same name in tests/report.  UPDATE=1 rewrites the files. */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

static int failures;

/* ---- a result: two layers, logits that do not fit */

static const struct spec *make_spec(struct arena *a)
{
	struct spec *s = NEW(a, struct spec);
	s->model = (struct model){ .name = "tiny", .layers = 2 };
	s->hw = (struct hardware){ .gpu_name = "h100-80gb", .gpus = 8, .headroom = 5.0 };
	s->par = (struct parallel){ .tensor = 2, .pipeline = 1, .context = 1, .ulysses = 1, .expert = 1,
				    .shard = 4, .replicate = 1, .zero = 3, .reshard_after_forward = true };
	s->prec = (struct precision){ .params = DT_FP32, .compute = DT_BF16 };
	s->train = (struct train){ .micro_batch = 1, .seq_len = 2048, .grad_accum = 4 };
	return s;
}

/* x is made, read in forward and held to the end of backward. */
static struct graph *make_graph(struct arena *a, size_ref saved, size_ref logits)
{
	struct graph *g = graph_new(a);
	size_ref one = size_const(a, 1);
	int32_t s[2] = { graph_storage(g, "mlp input", CLASS_SAVED, PLACE_GPU, DT_BF16, saved),
			 graph_storage(g, "logits", CLASS_LOGITS, PLACE_GPU, DT_BF16, logits) };
	tensor_id x = graph_tensor(g, s[0], DT_BF16, 1, &one), y = graph_tensor(g, s[1], DT_BF16, 1, &one);
	g->storages.v[s[0]].rule = "modeling_llama.py LlamaMLP.forward";
	graph_block(g, "layer forward", WIN_FORWARD);
	graph_op(g, "mul", NULL, 0, &x, 1);
	graph_op(g, "mm", &x, 1, &y, 1);
	graph_block(g, "layer backward", WIN_BACKWARD);
	graph_op(g, "_log_softmax_backward_data", &y, 1, NULL, 0);
	graph_op(g, "mm", &x, 1, NULL, 0);
	g->storages.v[s[0]].birth = 0;
	g->storages.v[s[0]].death = 3;
	g->storages.v[s[1]].birth = 1;
	g->storages.v[s[1]].death = 2;
	return g;
}

static void make_windows(struct result *r, struct arena *a)
{
	static const struct window_peak w[] = {
		{ WIN_LOAD, 0, -1, 0, 6000000000, 6000000000, -1 },
		{ WIN_FORWARD, 1, 0, 6000000000, 12000000000, 11000000000, 1 },
		{ WIN_FORWARD, 1, 1, 9000000000, 15000000000, 14000000000, 1 },
		{ WIN_BACKWARD, 1, 1, 14000000000, 81000000000, 9000000000, 2 },
		{ WIN_FORWARD, 2, 0, 9000000000, 15000000000, 14000000000, 1 },
		{ WIN_BACKWARD, 2, 0, 14000000000, 87044739584, 9000000000, 2 },
		{ WIN_ZERO_GRAD, 2, -1, 9000000000, 9000000000, 6000000000, -1 },
	};
	r->nwindow = COUNT(w);
	r->windows = NEWN(a, struct window_peak, COUNT(w));
	memcpy(r->windows, w, sizeof w);
}

static void make_lists(struct result *r, struct arena *a, size_ref saved, size_ref logits)
{
	static const struct rank_peak ranks[] = { { 0, 0, 87044739584 } };
	static const struct used_constant constants[] = {
		{ "context", 471859200, PROV_ASSUMED, "a typical CUDA 12 context" },
		{ "memory_bandwidth", 3350000000000, PROV_DATASHEET, "H100 SXM data sheet" },
	};
	static const char *const missing[] = { "fragmentation", "cuDNN plans, \"quoted\"" };
	static const uint64_t per_layer[] = { 1048576, 1048064 };
	struct class_bytes *c = r->by_class = NEWN(a, struct class_bytes, 3);
	struct tensor_bytes *t = r->by_tensor = NEWN(a, struct tensor_bytes, 3);
	c[0] = (struct class_bytes){ CLASS_LOGITS, 64424509440 };
	c[1] = (struct class_bytes){ CLASS_SAVED, 22620229632 };
	c[2] = (struct class_bytes){ CLASS_BUFFER, 512 };
	t[0] = (struct tensor_bytes){ .name = "logits", .cls = CLASS_LOGITS, .count = 1, .bytes = 64424509440, .formula = logits };
	t[1] = (struct tensor_bytes){ .name = "mlp input", .cls = CLASS_SAVED, .count = 2, .bytes = 22620229632,
				      .formula = saved, .by = "recompute", .rule = "modeling_llama.py LlamaMLP.forward",
				      .born = "mul in layer forward", .freed = "mm in layer backward" };
	t[2] = (struct tensor_bytes){ .name = "inv_freq", .cls = CLASS_BUFFER, .count = 1, .bytes = 512, .formula = size_const(a, 512) };
	r->nclass = r->ntensor = 3;
	r->ranks = NEWN(a, struct rank_peak, 1);
	r->ranks[0] = ranks[0];
	r->nrank = 1;
	r->constants = NEWN(a, struct used_constant, COUNT(constants));
	memcpy(r->constants, constants, sizeof constants);
	r->nconstant = COUNT(constants);
	r->not_modelled = NEWN(a, const char *, COUNT(missing));
	memcpy(r->not_modelled, missing, sizeof missing);
	r->nnot_modelled = COUNT(missing);
	r->saved_per_layer = NEWN(a, uint64_t, COUNT(per_layer));
	memcpy(r->saved_per_layer, per_layer, sizeof per_layer);
	r->nlayer = COUNT(per_layer);
}

static const struct result *make_result(struct arena *a)
{
	struct result *r = NEW(a, struct result);
	size_ref S = size_dim(a, "S", 1048576, "tokens"), V = size_dim(a, "V", 30720, "vocabulary");
	size_ref h = size_dim(a, "h", 5393, "hidden size"), logits = size_mulc(a, size_mul(a, S, V), 2);
	size_ref saved = size_mulc(a, size_mul(a, S, h), 4);
	r->spec = make_spec(a);
	r->parameters = r->trainable = 1235814400;
	r->capacity = 84987740160;
	r->limit = 80738353152;
	r->allocated = r->allocated_steady = 87044739584;
	r->allocated_first = 81000000000;
	r->process = 87516598784;
	r->peak_window = WIN_BACKWARD;
	r->peak_op = "_log_softmax_backward_data";
	r->peak_step = 2;
	r->peak_micro = 0;
	r->peak_layer = -1;
	r->formula = size_add(a, size_add(a, logits, saved), size_const(a, 512));
	r->advice = "the loss head (logits and their gradients) takes 60.00 GiB of 75.19 GiB usable; first try: compute the "
		"loss in chunks (memory.chunk_loss)";
	make_windows(r, a);
	make_lists(r, a, saved, logits);
	r->graph = make_graph(a, saved, logits);
	r->walked.alive = NEWN(a, struct alive, 2);
	r->walked.alive[0] = (struct alive){ .storage = 1, .copies = 1 };
	r->walked.alive[1] = (struct alive){ .storage = 0, .copies = 2 };
	r->walked.nalive = 2;
	return r;
}

/* ---- comparing with files */

static char *file_text(struct arena *a, const char *path)
{
	FILE *f = fopen(path, "r");
	if (!f)
		return arena_strdup(a, "(no file)");
	char *s = NEWN(a, char, 1 << 16);
	s[fread(s, 1, (1 << 16) - 1, f)] = 0;
	fclose(f);
	return s;
}

static void compare(struct arena *a, const char *name, const char *text)
{
	const char *dir = getenv("MEMPLAN_DATA"), *update = getenv("UPDATE");
	const char *path = arena_printf(a, "%s/tests/report/%s", dir ? dir : ".", name);
	if (update && *update) {
		FILE *f = fopen(path, "w");
		if (!f || fputs(text, f) == EOF || fclose(f))
			abort();
	} else if (strcmp(file_text(a, path), text)) {
		failures++;
		printf("FAIL: %s differs; now:\n%s", name, text);
	}
}

static void check(bool ok, const char *what)
{
	if (!ok) {
		failures++;
		printf("FAIL: %s\n", what);
	}
}

typedef void print_fn(FILE *f, const struct result *r, const struct style *st);
static void as_csv(FILE *f, const struct result *r, const struct style *st) { report_predict(f, format_find("csv"), r, st); }
static void as_tsv(FILE *f, const struct result *r, const struct style *st) { report_predict(f, format_find("tsv"), r, st); }
static void as_md(FILE *f, const struct result *r, const struct style *st) { report_predict(f, format_find("md"), r, st); }
static void alive(FILE *f, const struct result *r, const struct style *st) { report_alive(f, format_find("text"), r, st); }
static void alive_json(FILE *f, const struct result *r, const struct style *st) { report_alive(f, format_find("json"), r, st); }
static void why(FILE *f, const struct result *r, const struct style *st)
{
	const char *near;
	check(explain_why(f, r, "mlp input", &near, st), "a tensor of the plan has an explanation");
}

static void print_one(const char *name, print_fn *print, bool color, bool utf8)
{
	struct arena *a = arena_new();
	struct style st = { .a = a, .color = color, .utf8 = utf8, .rank = color ? RANK_ALL : RANK_FULLEST };
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		abort();
	print(f, make_result(a), &st);
	fclose(f);
	compare(a, name, text);
	free(text);
	arena_free(a);
}

static void unknown_tensor(void)
{
	struct arena *a = arena_new();
	struct style st = { .a = a };
	const char *near = NULL;
	check(!explain_why(stdout, make_result(a), "mlp inptu", &near, &st), "an unknown tensor has no explanation");
	check(near && !strcmp(near, "mlp input"), "the nearest tensor is named");
	check(!explain_why(stdout, make_result(a), "zzzzzz", &near, &st) && !near, "a far name has no suggestion");
	arena_free(a);
}

static void words(void)
{
	struct arena *a = arena_new();
	check(!strcmp(utf8_cut(a, "abcdef", 6, true), "abcdef"), "what is as wide as its place stays whole");
	check(!strcmp(utf8_cut(a, "abcdefg", 6, true), "abcde…"), "what is wider is cut");
	check(!strcmp(utf8_cut(a, "2·S·h + 4", 6, false), "2·S..."), "a character is never cut in two");
	check(utf8_width("2·S·h") == 5, "width counts characters");
	check(format_find("yaml") == NULL, "an unknown format is not found");
	arena_free(a);
}

int main(void)
{
	print_one("predict.txt", predict_text, false, false);
	print_one("predict-utf8.txt", predict_text, true, true);
	print_one("predict.json", predict_json, false, true);
	print_one("predict.csv", as_csv, false, false);
	print_one("predict.tsv", as_tsv, false, false);
	print_one("predict.md", as_md, false, false);
	print_one("alive.txt", alive, false, false);
	print_one("alive.json", alive_json, false, false);
	print_one("formula.txt", explain_formula, false, true);
	print_one("why.txt", why, false, false);
	unknown_tensor();
	words();
	return failures != 0;
}
