/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A config.json becomes struct model in four steps: collect the values of
 * all spellings, fill in the defaults of the config class, derive what the
 * modeling code derives, check what it cannot compute. */
#include "input/model.h"

#include <string.h>

static const struct { const char *name; enum act_kind act; } acts[] = {
	{ "silu", ACT_SILU }, { "swish", ACT_SILU }, { "gelu", ACT_GELU }, { "gelu_python", ACT_GELU },
	{ "gelu_pytorch_tanh", ACT_GELU_TANH }, { "gelu_python_tanh", ACT_GELU_TANH }, { "gelu_new", ACT_GELU_NEW },
	{ "relu", ACT_RELU }, { "relu2", ACT_RELU2 }, { "quick_gelu", ACT_QUICK_GELU },
};

struct config {
	struct arena *a;
	struct diag *d;
	const struct node *node;
	const struct family *family;
	bool strict;                   /* written by hand */
	double v[KEY_N];
	bool set[KEY_N];
	bool wrong[KEY_N];             /* given, with a value that was refused */
	struct loc loc[KEY_N];
	const char *spelling[KEY_N];
};

static bool truthy(const struct node *n)
{
	return n->shape != SHAPE_SCALAR ||
		(n->scalar != SCALAR_NULL && strcmp(n->text, "false") && strcmp(n->text, "0") && strcmp(n->text, "0.0"));
}

/* ---- collecting */

static bool read_value(struct diag *d, const struct model_key *k, const struct node *n, double *out)
{
	uint64_t u;
	bool b;
	switch (k->type) {
	case TYPE_UINT:
		if (!value_uint(d, n, k->name, (uint64_t)k->min, (uint64_t)k->max, &u))
			return false;
		*out = (double)u;
		return true;
	case TYPE_BOOL:
		if (!value_bool(d, n, k->name, &b))
			return false;
		*out = b;
		return true;
	case TYPE_REAL:
		return value_real(d, n, k->name, k->min, k->max, out);
	}
	return false;
}

/* null means none: 0, and no default. */
static void collect_key(struct config *c, const struct model_key *k, const struct pair *p)
{
	double v = 0;
	bool null = node_is_null(p->value);
	if (!null && !read_value(c->d, k, p->value, &v)) {
		c->wrong[k->key] = true;
		return;
	}
	if (c->set[k->key] && !null && c->v[k->key] > 0 && c->v[k->key] != v) {
		diag_error(c->d, p->loc, "'%s' and '%s' disagree", c->spelling[k->key], p->key);
		return;
	}
	if (c->set[k->key] && null)
		return;
	c->v[k->key] = v;
	c->set[k->key] = true;
	c->loc[k->key] = p->value->loc;
	c->spelling[k->key] = k->name;
}

static void unknown(struct config *c, const struct pair *p)
{
	const char *names[MODEL_KEY_NAMES];
	model_unknown_key(c->d, p, names, model_key_names(names));
}

static void collect(struct config *c)
{
	for (size_t i = 0; i < c->node->n; i++) {
		const struct pair *p = &c->node->pairs[i];
		const struct model_key *k = model_key_find(p->key);
		if (k)
			collect_key(c, k, p);
		else if (model_key_unmodelled(p->key) && truthy(p->value))
			diag_refuse(c->d, p->loc, "'%s' is not modelled", p->key);
		else if (!strcmp(p->key, "quantization_config") && truthy(p->value))
			diag_warn(c->d, p->loc, "'quantization_config' is not used: weights count as unquantised");
		else if (c->strict && !model_key_structured(p->key) && !model_key_ignored(p->key) &&
			 !model_key_unmodelled(p->key))
			unknown(c, p);
	}
}

/* partial_rotary_factor inside rope_parameters or rope_scaling, there also by layer type */
static void collect_rope(struct config *c)
{
	static const char *const maps[] = { "rope_parameters", "rope_scaling" };
	for (size_t i = 0; i < COUNT(maps); i++) {
		const struct node *m = node_get(c->node, maps[i]);
		const struct node *full = m && m->shape == SHAPE_MAP ? node_get(m, "full_attention") : NULL;
		double v;
		if (full && full->shape == SHAPE_MAP)
			m = full;
		if (m && m->shape == SHAPE_MAP && node_real(c->d, m, "partial_rotary_factor", 0, 1, &v)) {
			c->v[KEY_ROTARY] = v;
			c->set[KEY_ROTARY] = true;
		}
	}
}

static void require(struct config *c)
{
	static const struct { int key; const char *name; } needed[] = {
		{ KEY_HIDDEN, "hidden_size" }, { KEY_LAYERS, "num_hidden_layers" },
		{ KEY_HEADS, "num_attention_heads" }, { KEY_VOCAB, "vocab_size" }, { KEY_FFN, "intermediate_size" },
	};
	for (size_t i = 0; i < COUNT(needed); i++) {
		double deflt = c->family->deflt[needed[i].key];
		if ((c->set[needed[i].key] && c->v[needed[i].key] > 0) || deflt <= 0)
			continue;
		if (c->wrong[needed[i].key])
			continue;
		if (c->strict)
			diag_error(c->d, c->node->loc, "'%s' is missing", needed[i].name);
		else
			c->set[needed[i].key] = false;    /* null: as absent */
	}
}

static void fill_defaults(struct config *c)
{
	for (int k = KEY_NONE + 1; k < KEY_N; k++)
		if (!c->set[k])
			c->v[k] = k == KEY_TIED ? c->family->tied : c->family->deflt[k];
}

/* ---- deriving */

static uint64_t uint(const struct config *c, enum config_key k)
{
	return (uint64_t)c->v[k];
}

static bool flag(const struct config *c, int key, bool otherwise)
{
	return key == KEY_NONE ? otherwise : c->v[key] > 0;
}

static struct loc at(const struct config *c, enum config_key k)
{
	return c->set[k] ? c->loc[k] : c->node->loc;
}

const enum act_kind *act_find(const char *name)
{
	for (size_t i = 0; i < COUNT(acts); i++)
		if (!strcmp(acts[i].name, name))
			return &acts[i].act;
	return NULL;
}

static void derive_act(struct config *c, struct model *m)
{
	static const char *const names[] = { "hidden_act", "activation_function", "activation", "hidden_activation" };
	m->act = c->family->act;
	for (size_t i = 0; i < COUNT(names); i++) {
		const char *s;
		if (c->family->layout == LAYOUT_BLOOM || !node_string(c->d, c->node, names[i], &s))
			continue;
		const enum act_kind *act = act_find(s);
		if (act)
			m->act = *act;
		else
			diag_refuse(c->d, node_get(c->node, names[i])->loc, "activation '%s' is not modelled", s);
	}
}

/* configuration_falcon.py, modeling_falcon.py: FalconAttention, FalconDecoderLayer */
static void derive_falcon(struct config *c, struct model *m, struct family *f)
{
	bool grouped = c->v[KEY_NEW_DECODER] > 0, parallel = c->v[KEY_PARALLEL_ATTN] > 0;
	if (!grouped)
		m->kv_heads = c->v[KEY_MULTI_QUERY] > 0 ? 1 : m->heads;
	f->grouped_qkv = grouped;
	f->block = parallel ? BLOCK_PARALLEL : BLOCK_PRE;
	f->norms = !parallel || uint(c, KEY_PARALLEL_NORMS) == 2 || (grouped && uint(c, KEY_PARALLEL_NORMS) == 0) ? 2 : 1;
	f->position = c->v[KEY_ALIBI] > 0 ? POS_ALIBI : POS_ROPE;
}

/* What the config switches in the class. */
static void derive_family(struct config *c, struct model *m)
{
	struct family *f = NEW(c->a, struct family);
	*f = *c->family;
	if (f->layout == LAYOUT_FALCON)
		derive_falcon(c, m, f);
	if (f->layout == LAYOUT_NEOX && c->v[KEY_PARALLEL_RESIDUAL] <= 0)
		f->block = BLOCK_PRE;
	if (f->layout == LAYOUT_NEOX)
		m->dropout_embd = m->dropout_resid;      /* GPTNeoXModel.emb_dropout */
	if (f->mlp == MLP_GATED_FUSED)
		m->dropout_embd = 0;                     /* Phi3Model has none */
	if (f->qk_norm_key != KEY_NONE && c->v[f->qk_norm_key] <= 0)
		f->qk_norm = QKNORM_NONE;
	f->act = m->act;
	m->qk_norm = f->qk_norm;
	m->family = f;
}

static void derive_attention(struct config *c, struct model *m)
{
	const struct family *f = c->family;
	bool mla = f->deflt[KEY_KV_LORA] > 0;
	m->kv_heads = m->kv_heads ? m->kv_heads : m->heads;
	m->head_dim = f->layout == LAYOUT_LLAMA ? uint(c, KEY_HEAD_DIM) : 0;
	if (mla) {
		m->q_lora = uint(c, KEY_Q_LORA);
		m->kv_lora = uint(c, KEY_KV_LORA);
		m->qk_nope = uint(c, KEY_QK_NOPE);
		m->qk_rope = uint(c, KEY_QK_ROPE);
		m->v_dim = uint(c, KEY_V_DIM);
		m->rope_interleave = c->v[KEY_ROPE_PAIRS] > 0;
		m->head_dim = m->qk_nope + m->qk_rope;
		m->kv_heads = m->heads;
		if (!m->kv_lora || !m->qk_nope || !m->qk_rope || !m->v_dim)
			diag_error(c->d, at(c, KEY_KV_LORA), "'%s' needs kv_lora_rank, qk_nope_head_dim, "
				   "qk_rope_head_dim and v_head_dim", f->model_type);
	} else if (m->head_dim == 0 && m->hidden % m->heads != 0) {
		diag_error(c->d, at(c, KEY_HEADS), "num_attention_heads=%llu does not divide hidden_size=%llu",
			   (unsigned long long)m->heads, (unsigned long long)m->hidden);
	}
	if (m->head_dim == 0)
		m->head_dim = m->hidden / m->heads;
	m->rotary_fraction = c->v[KEY_ROTARY] > 0 ? c->v[KEY_ROTARY] : 1;
	if (c->v[KEY_ROTARY_DIM] > 0 && m->head_dim > 0)
		m->rotary_fraction = c->v[KEY_ROTARY_DIM] / (double)m->head_dim;
	if (m->rotary_fraction > 1)
		diag_error(c->d, at(c, KEY_ROTARY_DIM), "rotary_dim is more than the head dimension %llu",
			   (unsigned long long)m->head_dim);
}

static bool slides(const struct config *c, const struct family *f, uint64_t layer)
{
	uint64_t from = uint(c, KEY_WINDOW_FROM), pattern = uint(c, KEY_WINDOW_PATTERN);
	switch (f->window) {
	case WINDOW_NEVER: return false;
	case WINDOW_ALL: return true;
	case WINDOW_PATTERN: return pattern > 0 && (layer + 1) % pattern != 0;
	case WINDOW_FROM: return layer >= from;
	case WINDOW_EVEN_BELOW: return layer % 2 == 0 && layer < from;
	}
	return false;
}

/* layer_types, checked: 1 where a layer slides */
static void read_layer_types(struct config *c, const struct node *types, uint8_t *sliding, uint64_t layers)
{
	if (types->n != layers) {
		diag_error(c->d, types->loc, "layer_types has %zu entries for %llu layers", types->n,
			   (unsigned long long)layers);
		return;
	}
	for (size_t i = 0; i < types->n; i++) {
		const struct node *t = types->items[i];
		if (t->shape == SHAPE_SCALAR && !strcmp(t->text, "sliding_attention"))
			sliding[i] = 1;
		else if (t->shape == SHAPE_SCALAR && !strcmp(t->text, "full_attention"))
			sliding[i] = 0;
		else
			diag_refuse(c->d, t->loc, "layer type '%s' is not modelled",
				    t->shape == SHAPE_SCALAR ? t->text : "");
	}
}

static void derive_window(struct config *c, struct model *m)
{
	uint8_t *sliding = NEWN(c->a, uint8_t, m->layers);
	const struct node *types = NULL;
	bool any = false;
	for (uint64_t i = 0; i < m->layers; i++)
		sliding[i] = slides(c, c->family, i);
	if (c->family->window > WINDOW_ALL && node_seq(c->d, c->node, "layer_types", &types))
		read_layer_types(c, types, sliding, m->layers);
	m->sliding_window = c->v[KEY_USE_WINDOW] > 0 ? uint(c, KEY_WINDOW) : 0;
	for (uint64_t i = 0; i < m->layers; i++) {
		sliding[i] = sliding[i] && m->sliding_window > 0;
		any = any || sliding[i];
	}
	if (!any)
		m->sliding_window = 0;
	m->sliding = sliding;
}

static void derive_moe_layers(struct config *c, struct model *m)
{
	uint8_t *moe = NEWN(c->a, uint8_t, m->layers);
	const struct node *dense = NULL;
	for (uint64_t i = 0; i < m->layers; i++)
		moe[i] = m->experts > 0 && i >= m->first_dense && (i + 1) % m->moe_every == 0;
	if (node_seq(c->d, c->node, "mlp_only_layers", &dense))
		for (size_t i = 0; i < dense->n; i++) {
			uint64_t k;
			if (value_uint(c->d, dense->items[i], "mlp_only_layers", 0, MAX_LAYERS, &k) && k < m->layers)
				moe[k] = 0;
		}
	m->moe = moe;
}

/* Without groups all experts are one. */
static void derive_groups(struct config *c, struct model *m)
{
	m->expert_groups = c->v[KEY_GROUPS] > 0 ? uint(c, KEY_GROUPS) : 1;
	m->topk_groups = c->v[KEY_TOPK_GROUPS] > 0 ? uint(c, KEY_TOPK_GROUPS) : 1;
	if (m->experts % m->expert_groups != 0)
		diag_error(c->d, at(c, KEY_GROUPS), "n_group=%llu does not divide the %llu experts",
			   (unsigned long long)m->expert_groups, (unsigned long long)m->experts);
	const char *method;
	if (c->family->gate == GATE_SOFTMAX_SCALED && node_string(c->d, c->node, "topk_method", &method))
		m->group_limited = strcmp(method, "greedy") != 0;
	if (m->topk_groups > m->expert_groups)
		diag_error(c->d, at(c, KEY_TOPK_GROUPS), "topk_group=%llu is more than the %llu groups",
			   (unsigned long long)m->topk_groups, (unsigned long long)m->expert_groups);
}

static void derive_moe(struct config *c, struct model *m)
{
	const struct family *f = c->family;
	if (f->deflt[KEY_EXPERTS] > 0) {
		m->experts = uint(c, KEY_EXPERTS);
		m->mtp_layers = uint(c, KEY_MTP);
	} else if (c->strict && c->v[KEY_EXPERTS] > 0) {
		diag_error(c->d, at(c, KEY_EXPERTS), "'%s' has no experts", f->model_type);
	}
	m->moe_every = c->v[KEY_MOE_EVERY] > 0 ? uint(c, KEY_MOE_EVERY) : 1;
	if (m->experts > 0) {
		m->topk = uint(c, KEY_TOPK);
		m->moe_ffn = f->experts_use_ffn ? m->ffn : uint(c, KEY_MOE_FFN);
		m->first_dense = uint(c, KEY_FIRST_DENSE);
		m->shared_experts = uint(c, KEY_SHARED);
		m->shared_ffn = f->shared_gate ? uint(c, KEY_SHARED_FFN) : mul_u64(m->shared_experts, m->moe_ffn);
		m->router_bias = f->router_bias;
		m->shared_gate = f->shared_gate;
		m->expert_bias = f->expert_bias;
		m->norm_topk = c->v[KEY_NORM_TOPK] > 0;
		derive_groups(c, m);
		if (m->topk == 0)
			diag_error(c->d, c->node->loc, "'num_experts_per_tok' is missing");
		if (m->moe_ffn == 0)
			diag_error(c->d, c->node->loc, "'moe_intermediate_size' is missing");
		if (m->topk > m->experts)
			diag_error(c->d, at(c, KEY_TOPK), "num_experts_per_tok=%llu is more than the %llu experts",
				   (unsigned long long)m->topk, (unsigned long long)m->experts);
	}
	derive_moe_layers(c, m);
}

static void derive(struct config *c, struct model *m)
{
	const struct family *f = c->family;
	m->hidden = uint(c, KEY_HIDDEN);
	m->layers = uint(c, KEY_LAYERS);
	m->heads = uint(c, KEY_HEADS);
	m->kv_heads = uint(c, KEY_KV_HEADS);
	m->vocab = uint(c, KEY_VOCAB);
	m->positions = uint(c, KEY_POSITIONS);
	m->ffn = c->v[KEY_FFN] > 0 ? uint(c, KEY_FFN) : mul_u64(4, m->hidden);
	m->attn_softcap = c->v[KEY_ATTN_SOFTCAP];
	m->final_softcap = c->v[KEY_FINAL_SOFTCAP];
	m->dropout_attn = c->v[KEY_DROP_ATTN];
	m->dropout_resid = c->v[KEY_DROP_RESID];
	m->dropout_embd = c->v[KEY_DROP_EMBD];
	m->tied = c->v[KEY_TIED] > 0;
	m->q_bias = flag(c, f->q_bias_key, f->q_bias);
	m->o_bias = flag(c, f->o_bias_key, f->o_bias);
	m->mlp_bias = flag(c, f->mlp_bias_key, f->mlp_bias);
	m->head_bias = f->head_bias;
	m->attn_sinks = f->attn_sinks;
	derive_act(c, m);
	derive_attention(c, m);
	derive_family(c, m);
	derive_window(c, m);
	derive_moe(c, m);
	if (m->kv_heads == 0 || m->heads % m->kv_heads != 0)
		diag_error(c->d, at(c, KEY_KV_HEADS), "num_key_value_heads=%llu does not divide num_attention_heads=%llu",
			   (unsigned long long)m->kv_heads, (unsigned long long)m->heads);
}

/* ---- the parts of a file */

static const struct family *family_of(struct diag *d, const struct node *n)
{
	const char *type, *near;
	const struct family *f;
	if (!node_string(d, n, "model_type", &type)) {
		if (!node_get(n, "model_type"))
			diag_error(d, n->loc, "'model_type' is missing");
		return NULL;
	}
	f = family_find(type);
	if (f)
		return f;
	diag_refuse(d, node_get(n, "model_type")->loc, "model_type '%s' is not modelled", type);
	near = family_nearest(type);
	if (near)
		diag_hint(d, "did you mean '%s'?", near);
	return NULL;
}

static bool written_by_transformers(const struct node *n)
{
	return node_get(n, "architectures") || node_get(n, "transformers_version");
}

/* Flat files (Qwen2-VL) have the language part at the top. */
static const struct node *text_node(struct diag *d, const struct node *n)
{
	const struct node *t = NULL;
	if (!node_map(d, n, "text_config", &t))
		node_map(d, n, "llm_config", &t);
	return t ? t : n;
}

/* The outer config's word on tying counts; then the language part's, then the outer class's default. */
static void settle_tying(struct config *text, struct config *outer)
{
	collect(outer);
	if (outer->set[KEY_TIED] || !text->set[KEY_TIED])
		text->v[KEY_TIED] = outer->set[KEY_TIED] ? outer->v[KEY_TIED] : outer->family->tied;
	text->set[KEY_TIED] = true;
	for (int k = KEY_NONE + 1; outer->strict && k < KEY_N; k++)
		if (outer->set[k] && k != KEY_TIED)
			diag_error(outer->d, outer->loc[k], "'%s' belongs in text_config", outer->spelling[k]);
}

const struct model *model_from_node(struct arena *a, struct diag *d, const struct node *n, const char *name,
				    struct model *out)
{
	size_t errors = diag_count(d, SEV_ERROR);
	struct config *c = NEW(a, struct config), *o = NEW(a, struct config);
	const struct family *outer, *f;
	if (n->shape != SHAPE_MAP) {
		diag_error(d, n->loc, "a model is a mapping, found %s", node_describe(a, n));
		return NULL;
	}
	f = outer = family_of(d, n);
	if (!outer)
		return NULL;
	*c = (struct config){ .a = a, .d = d, .node = n, .strict = !written_by_transformers(n) };
	if (outer->text) {
		c->node = text_node(d, n);
		f = c->node != n && node_get(c->node, "model_type") ? family_of(d, c->node) : family_find(outer->text);
	}
	if (!f || f->text) {
		if (f)
			diag_refuse(d, c->node->loc, "a vision tower inside a vision tower's language part");
		return NULL;
	}
	if (f->vision != VISION_NONE) {
		*out = (struct model){ .name = name, .model_type = f->model_type, .family = f, .outer = f, .loc = n->loc };
		return tower_from_node(a, d, n, c->strict, out) ? out : NULL;
	}
	c->family = f;
	collect(c);
	collect_rope(c);
	if (c->node != n) {
		*o = (struct config){ .a = a, .d = d, .node = n, .strict = c->strict, .family = outer };
		settle_tying(c, o);
	} else if (outer->text && !c->set[KEY_TIED]) {
		c->v[KEY_TIED] = outer->tied;
		c->set[KEY_TIED] = true;
	}
	require(c);
	if (diag_count(d, SEV_ERROR) > errors)
		return NULL;
	fill_defaults(c);
	*out = (struct model){ .name = name, .model_type = outer->model_type, .outer = outer, .loc = n->loc };
	derive(c, out);
	if (outer->text)
		vision_from_node(d, n, c->strict, out, &out->vision);
	return diag_count(d, SEV_ERROR) > errors ? NULL : out;
}
