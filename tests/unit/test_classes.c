/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Model classes with a layout of their own, against traces of torch 2.14.1
 * and transformers 5.12.1 on fake CUDA tensors: the highest point of the first
 * step, those of forward and backward from then on, and what a layer saves, to
 * the byte.  One GPU, fused AdamW. */
#include <inttypes.h>
#include <string.h>

#include "input/model.h"
#include "kernel/step.h"
#include "sim/sim.h"

struct trace {
	const char *name, *model;      /* keys of a config.json */
	uint64_t seq, batch, accum;
	enum dtype params;
	bool autocast;
	const char *attention;
	bool recompute;
	uint64_t first, forward, backward, saved;
};

static const struct trace traces[] = {
	{ "GPT-2, eager",
	  "architectures: []\nmodel_type: gpt2\nn_embd: 768\nn_layer: 4\nn_head: 12\nvocab_size: 50257\n"
	  "attn_pdrop: 0.1\nresid_pdrop: 0.1\nembd_pdrop: 0.1\n",
	  512, 1, 1, DT_BF16, false, "eager", false,
	  600409600, 819924992, 871383552, 38543360 },
	{ "GPT-2, flash",
	  "architectures: []\nmodel_type: gpt2\nn_embd: 1600\nn_layer: 3\nn_head: 25\nvocab_size: 50257\n"
	  "attn_pdrop: 0.1\nresid_pdrop: 0.1\nembd_pdrop: 0.1\n",
	  1024, 1, 1, DT_BF16, false, "flash", false,
	  1394272256, 1854004224, 1956921856, 95147008 },
	{ "GPT-2, flash, autocast",
	  "architectures: []\nmodel_type: gpt2\nn_embd: 768\nn_layer: 12\nn_head: 12\nvocab_size: 50257\n"
	  "attn_pdrop: 0.1\nresid_pdrop: 0.1\nembd_pdrop: 0.1\n",
	  1024, 1, 1, DT_FP32, true, "flash", false,
	  2180316672, 3076304896, 3175910912, 67699712 },
	{ "GPT-2, fp16, flash",
	  "architectures: []\nmodel_type: gpt2\nn_embd: 768\nn_layer: 4\nn_head: 12\nvocab_size: 50257\n"
	  "attn_pdrop: 0.1\nresid_pdrop: 0.1\nembd_pdrop: 0.1\n",
	  512, 1, 2, DT_FP16, false, "flash", false,
	  673071104, 892586496, 944045056, 22840320 },
	{ "GPT-2, eager, recompute, autocast",
	  "architectures: []\nmodel_type: gpt2\nn_embd: 768\nn_layer: 4\nn_head: 12\nvocab_size: 50257\n"
	  "attn_pdrop: 0.1\nresid_pdrop: 0.1\nembd_pdrop: 0.1\n",
	  512, 2, 1, DT_FP32, true, "eager", true,
	  1083832320, 1484750848, 1527836160, 3145728 },
	{ "GPT-NeoX, eager",
	  "architectures: []\nmodel_type: gpt_neox\nhidden_size: 4096\nintermediate_size: 16384\n"
	  "num_hidden_layers: 2\nnum_attention_heads: 32\nvocab_size: 50432\nuse_parallel_residual: true\n",
	  1024, 1, 1, DT_BF16, false, "eager", false,
	  6527286272, 6116721152, 6535675904, 343949312 },
	{ "GPT-NeoX, flash, recompute",
	  "architectures: []\nmodel_type: gpt_neox\nhidden_size: 4096\nintermediate_size: 16384\n"
	  "num_hidden_layers: 4\nnum_attention_heads: 32\nvocab_size: 50432\nuse_parallel_residual: true\n",
	  2048, 1, 1, DT_BF16, false, "flash", true,
	  9749392384, 8445882880, 9766170624, 16777216 },
	{ "GPT-NeoX, in sequence, flash",
	  "architectures: []\nmodel_type: gpt_neox\nhidden_size: 4096\nintermediate_size: 16384\n"
	  "num_hidden_layers: 3\nnum_attention_heads: 32\nvocab_size: 50432\n"
	  "use_parallel_residual: false\nhidden_dropout: 0.1\nattention_dropout: 0.1\n",
	  512, 2, 2, DT_BF16, false, "flash", false,
	  8138331136, 9179579904, 9282847744, 167920640 },
	{ "GPT-NeoX, whole heads rotated, eager, recompute",
	  "architectures: []\nmodel_type: gpt_neox\nhidden_size: 4096\nintermediate_size: 16384\n"
	  "num_hidden_layers: 4\nnum_attention_heads: 32\nvocab_size: 50432\nuse_parallel_residual: true\n"
	  "rotary_pct: 1.0\n",
	  512, 1, 1, DT_BF16, false, "eager", true,
	  9749367808, 7596212736, 9753563136, 4194304 },
	{ "Falcon, flash",
	  "architectures: []\nmodel_type: falcon\nhidden_size: 4544\nnum_hidden_layers: 2\n"
	  "num_attention_heads: 71\nvocab_size: 65024\nmulti_query: true\nparallel_attn: true\n"
	  "alibi: false\n",
	  1024, 1, 1, DT_BF16, false, "flash", false,
	  5676974592, 5781092352, 6858851840, 419308544 },
	{ "Falcon, eager",
	  "architectures: []\nmodel_type: falcon\nhidden_size: 4544\nnum_hidden_layers: 2\n"
	  "num_attention_heads: 71\nvocab_size: 65024\nmulti_query: true\nparallel_attn: true\n"
	  "alibi: false\n",
	  1024, 1, 1, DT_BF16, false, "eager", false,
	  5676974592, 5464160256, 6858851840, 260842496 },
	{ "Falcon, groups, flash",
	  "architectures: []\nmodel_type: falcon\nhidden_size: 2048\nnum_hidden_layers: 2\n"
	  "num_attention_heads: 32\nvocab_size: 65024\nmulti_query: true\nparallel_attn: true\n"
	  "new_decoder_architecture: true\nnum_kv_heads: 4\nalibi: false\n",
	  512, 1, 1, DT_BF16, false, "flash", false,
	  1753401856, 1716428800, 2286079488, 32057344 },
	{ "Falcon, groups, flash, recompute",
	  "architectures: []\nmodel_type: falcon\nhidden_size: 2048\nnum_hidden_layers: 2\n"
	  "num_attention_heads: 32\nvocab_size: 65024\nmulti_query: true\nparallel_attn: true\n"
	  "new_decoder_architecture: true\nnum_kv_heads: 4\nalibi: false\n",
	  512, 2, 1, DT_BF16, false, "flash", true,
	  1753410048, 1998110720, 2286087680, 4194304 },
	{ "Falcon, ALiBi, flash",
	  "architectures: []\nmodel_type: falcon\nhidden_size: 2048\nnum_hidden_layers: 2\n"
	  "num_attention_heads: 32\nvocab_size: 50304\nmulti_query: false\nparallel_attn: false\n"
	  "alibi: true\nbias: true\n",
	  512, 1, 1, DT_BF16, false, "flash", false,
	  1629968896, 1568278528, 2042060288, 33629184 },
	{ "Falcon, ALiBi, eager",
	  "architectures: []\nmodel_type: falcon\nhidden_size: 2048\nnum_hidden_layers: 2\n"
	  "num_attention_heads: 32\nvocab_size: 50304\nmulti_query: false\nparallel_attn: false\n"
	  "alibi: true\nbias: true\n",
	  512, 1, 1, DT_BF16, false, "eager", false,
	  1629968896, 1584922624, 2042060288, 50339840 },
	{ "Falcon, ALiBi, flash, recompute, autocast",
	  "architectures: []\nmodel_type: falcon\nhidden_size: 1536\nnum_hidden_layers: 2\n"
	  "num_attention_heads: 24\nvocab_size: 50304\nmulti_query: false\nparallel_attn: false\n"
	  "alibi: true\nbias: true\nhidden_dropout: 0.1\nattention_dropout: 0.1\n",
	  512, 2, 1, DT_FP32, true, "flash", true,
	  2142960128, 2355908608, 2458320384, 6291456 },
	{ "Falcon, flash, autocast",
	  "architectures: []\nmodel_type: falcon\nhidden_size: 4544\nnum_hidden_layers: 2\n"
	  "num_attention_heads: 71\nvocab_size: 65024\nmulti_query: true\nparallel_attn: true\n"
	  "alibi: false\n",
	  512, 1, 1, DT_FP32, true, "flash", false,
	  11353915904, 10496090112, 12545099264, 102503424 },
	{ "BLOOM",
	  "architectures: []\nmodel_type: bloom\nhidden_size: 1024\nn_layer: 2\nn_head: 16\n"
	  "vocab_size: 250880\n",
	  1024, 1, 1, DT_BF16, false, "eager", false,
	  3921802240, 4536414208, 5050207744, 134234112 },
	{ "BLOOM, 12 heads, autocast",
	  "architectures: []\nmodel_type: bloom\nhidden_size: 768\nn_layer: 2\nn_head: 12\n"
	  "vocab_size: 250880\n",
	  512, 1, 1, DT_FP32, true, "eager", false,
	  3309697536, 4252070912, 4507366912, 33038336 },
	{ "BLOOM, recompute",
	  "architectures: []\nmodel_type: bloom\nhidden_size: 1024\nn_layer: 4\nn_head: 16\n"
	  "vocab_size: 250880\nhidden_dropout: 0.1\nattention_dropout: 0.1\n",
	  512, 2, 1, DT_BF16, false, "eager", true,
	  3713188864, 4428591104, 4942376448, 2097152 },
	{ "GPT-J",
	  "architectures: []\nmodel_type: gptj\nn_embd: 4096\nn_layer: 2\nn_head: 16\nvocab_size: 50400\n"
	  "n_positions: 2048\nrotary_dim: 64\ntie_word_embeddings: false\n",
	  1024, 1, 1, DT_BF16, false, "eager", false,
	  6526245376, 6099998208, 6534635008, 336076800 },
	{ "GPT-J, recompute",
	  "architectures: []\nmodel_type: gptj\nn_embd: 4096\nn_layer: 4\nn_head: 16\nvocab_size: 50400\n"
	  "n_positions: 2048\nrotary_dim: 64\nattn_pdrop: 0.1\nresid_pdrop: 0.1\nembd_pdrop: 0.1\n"
	  "tie_word_embeddings: false\n",
	  512, 2, 1, DT_BF16, false, "eager", true,
	  9748988416, 7883976192, 9757378048, 8388608 },
	{ "GPT-J, autocast",
	  "architectures: []\nmodel_type: gptj\nn_embd: 4096\nn_layer: 2\nn_head: 16\nvocab_size: 50400\n"
	  "n_positions: 2048\nrotary_dim: 64\ntie_word_embeddings: false\n",
	  512, 1, 1, DT_FP32, true, "eager", false,
	  13051404800, 11689401856, 13059794432, 201592832 },
	{ "Phi, flash",
	  "architectures: []\nmodel_type: phi\nhidden_size: 2560\nintermediate_size: 10240\n"
	  "num_hidden_layers: 2\nnum_attention_heads: 32\nvocab_size: 51200\nresid_pdrop: 0.1\n"
	  "tie_word_embeddings: false\npartial_rotary_factor: 0.4\n",
	  1024, 1, 1, DT_BF16, false, "flash", false,
	  3356378624, 3346097152, 3450946048, 146940928 },
	{ "Phi, eager, recompute",
	  "architectures: []\nmodel_type: phi\nhidden_size: 2560\nintermediate_size: 10240\n"
	  "num_hidden_layers: 4\nnum_attention_heads: 32\nvocab_size: 51200\nresid_pdrop: 0.1\n"
	  "embd_pdrop: 0.1\nattention_dropout: 0.1\ntie_word_embeddings: false\n"
	  "partial_rotary_factor: 0.4\n",
	  512, 2, 1, DT_BF16, false, "eager", true,
	  4615134720, 4020874240, 4620378624, 5242880 },
};

static int failures, checks;

static void must(const struct trace *x, const char *what, uint64_t got, uint64_t want)
{
	checks++;
	if (got != want) {
		failures++;
		printf("FAIL: %s, %s: %" PRIu64 ", want %" PRIu64 "\n", x->name, what, got, want);
	}
}

static bool parse(struct arena *a, const char *text, struct model *out)
{
	struct diag *d = diag_new(a);
	struct source *s = NEW(a, struct source);
	*s = (struct source){ .name = "model.yaml", .text = text, .len = strlen(text) };
	const struct node *n = node_parse(a, d, s, 0);
	bool read = n && model_from_node(a, d, n, "test", out);
	diag_print(d, stdout);
	return read;
}

static int attention_row(const char *name)
{
	size_t i = 0;
	while (i + 1 < kernels[K_ATTENTION].nrow && strcmp(kernels[K_ATTENTION].rows[i].name, name))
		i++;
	return (int)i;
}

static struct spec plan(const struct trace *x, const struct model *m)
{
	struct spec s = { .model = *m };
	s.kernel[K_ATTENTION] = attention_row(x->attention);
	s.hw.gpus = s.par.shard = s.par.replicate = 1;
	s.prec.params = s.prec.compute = s.prec.gradients = s.prec.master = s.prec.optimizer = x->params;
	s.prec.autocast = x->autocast;
	if (x->autocast)
		s.prec.compute = DT_BF16;
	s.optim.weight_decay = 0.01;
	s.train.micro_batch = x->batch;
	s.train.grad_accum = x->accum;
	s.train.seq_len = x->seq;
	s.train.zero_grad_to_none = s.train.separate_labels = true;
	return s;
}

/* The highest point of one kind of window in the steady step. */
static uint64_t highest(const struct walked *w, enum window kind)
{
	uint64_t top = 0;
	for (size_t i = 0; i < w->nwindow; i++)
		if (w->windows[i].step == 2 && w->windows[i].window == kind && w->windows[i].peak > top)
			top = w->windows[i].peak;
	return top;
}

static uint64_t first_step(const struct walked *w)
{
	uint64_t top = 0;
	for (size_t i = 0; i < w->nwindow; i++)
		if (w->windows[i].step == 1 && w->windows[i].peak > top)
			top = w->windows[i].peak;
	return top;
}

static void compare(struct arena *a, const struct trace *x)
{
	struct model *m = NEW(a, struct model);
	if (!parse(a, x->model, m)) {
		must(x, "model is read", 0, 1);
		return;
	}
	struct spec s = plan(x, m);
	struct recipe r = { .checkpoint = x->recompute ? CKPT_FULL : CKPT_NONE };
	struct graph *g = trace_program(a, &s, &r);
	must(x, "sound graph", graph_check(g, a) == NULL, 1);
	struct walked w = walk(g, a, NULL, NULL);
	must(x, "first step", first_step(&w), x->first);
	must(x, "forward", highest(&w, WIN_FORWARD), x->forward);
	must(x, "backward", highest(&w, WIN_BACKWARD), x->backward);
	must(x, "saved by a layer", w.saved_per_layer[1], x->saved);
}

int main(void)
{
	struct arena *a = arena_new();
	for (size_t i = 0; i < COUNT(traces); i++) {
		arena_reset(a);
		compare(a, &traces[i]);
	}
	printf("%d checks, %d failures\n", checks, failures);
	arena_free(a);
	return failures != 0;
}
