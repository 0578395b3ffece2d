/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Vision towers: vision_config of a vision-language model, or a model of its own.  Towers differ in
 * spelling and in defaults, so both are tables; sizes of transformers 5.12.1
 * configuration files of the class named in each row. */
#include "input/model.h"

#include <string.h>

enum vision_key {
	V_DEPTH, V_HIDDEN, V_HEADS, V_FFN, V_RATIO, V_PATCH, V_IMAGE, V_MERGE, V_TEMPORAL, V_OUT, V_CHANNELS,
	V_POSITIONS, V_WINDOW, V_BIAS, V_QK_NORM, V_HEAD, V_FULL, V_DEEPSTACK, V_N
};
enum { MAX_DEPTH = 10000 };
enum vision_type { V_NUMBER, V_FLAG, V_COUNT };       /* V_COUNT: how many items a list has */
static const struct vision_row { const char *name; enum vision_key key; enum vision_type type; } rows[] = {
	{ "depth", V_DEPTH, V_NUMBER }, { "num_hidden_layers", V_DEPTH, V_NUMBER },
	{ "embed_dim", V_HIDDEN, V_NUMBER }, { "hidden_size", V_HIDDEN, V_NUMBER },
	{ "num_heads", V_HEADS, V_NUMBER }, { "num_attention_heads", V_HEADS, V_NUMBER },
	{ "intermediate_size", V_FFN, V_NUMBER }, { "mlp_ratio", V_RATIO, V_NUMBER },
	{ "patch_size", V_PATCH, V_NUMBER }, { "image_size", V_IMAGE, V_NUMBER },
	{ "spatial_merge_size", V_MERGE, V_NUMBER }, { "temporal_patch_size", V_TEMPORAL, V_NUMBER },
	{ "out_hidden_size", V_OUT, V_NUMBER }, { "in_channels", V_CHANNELS, V_NUMBER },
	{ "in_chans", V_CHANNELS, V_NUMBER }, { "num_channels", V_CHANNELS, V_NUMBER },
	{ "num_position_embeddings", V_POSITIONS, V_NUMBER }, { "window_size", V_WINDOW, V_NUMBER },
	{ "attention_bias", V_BIAS, V_FLAG }, { "qkv_bias", V_BIAS, V_FLAG },
	{ "use_qk_norm", V_QK_NORM, V_FLAG }, { "qk_normalization", V_QK_NORM, V_FLAG },
	{ "vision_use_head", V_HEAD, V_FLAG }, { "fullatt_block_indexes", V_FULL, V_COUNT },
	{ "deepstack_visual_indexes", V_DEEPSTACK, V_COUNT },
};
static const char *const ignored[] = {
	"model_type", "hidden_act", "norm_type", "spatial_patch_size", "tokens_per_second", "layer_norm_eps",
	"attention_dropout", "initializer_range", "hidden_dropout_prob", "projection_dropout", "dropout",
	"drop_path_rate", "layer_scale_init_value", "use_absolute_position_embeddings", "use_mean_pooling",
	"initializer_factor", "use_mask_token", "use_flash_attn",
};

static const struct {
	bool gated, rms, gets_cls;
	uint64_t v[V_N];
} towers[VISION_N] = {
	[VISION_QWEN2] = { /* Qwen2VLVisionConfig */ .v = {
		[V_DEPTH] = 32, [V_HIDDEN] = 1280, [V_HEADS] = 16, [V_RATIO] = 4, [V_PATCH] = 14, [V_MERGE] = 2,
		[V_TEMPORAL] = 2, [V_CHANNELS] = 3, [V_OUT] = 3584, [V_BIAS] = 1 } },
	[VISION_QWEN2_5] = { /* Qwen2_5_VLVisionConfig */ .gated = true, .rms = true, .v = {
		[V_DEPTH] = 32, [V_HIDDEN] = 3584, [V_HEADS] = 16, [V_FFN] = 3420, [V_PATCH] = 14, [V_MERGE] = 2,
		[V_TEMPORAL] = 2, [V_CHANNELS] = 3, [V_WINDOW] = 112, [V_FULL] = 4, [V_OUT] = 3584, [V_BIAS] = 1 } },
	[VISION_QWEN3] = { /* Qwen3VLVisionConfig */ .v = {
		[V_DEPTH] = 27, [V_HIDDEN] = 1152, [V_HEADS] = 16, [V_FFN] = 4304, [V_PATCH] = 16, [V_MERGE] = 2,
		[V_TEMPORAL] = 2, [V_CHANNELS] = 3, [V_OUT] = 3584, [V_POSITIONS] = 2304, [V_DEEPSTACK] = 3,
		[V_BIAS] = 1 } },
	[VISION_SIGLIP] = { /* SiglipVisionConfig */ .v = {
		[V_DEPTH] = 12, [V_HIDDEN] = 768, [V_HEADS] = 12, [V_FFN] = 3072, [V_PATCH] = 16, [V_IMAGE] = 224,
		[V_TEMPORAL] = 1, [V_CHANNELS] = 3, [V_BIAS] = 1, [V_HEAD] = 1 } },
	[VISION_INTERN] = { /* InternVLVisionConfig */ .gets_cls = true, .v = {
		[V_DEPTH] = 24, [V_HIDDEN] = 1024, [V_HEADS] = 16, [V_FFN] = 4096, [V_PATCH] = 14, [V_IMAGE] = 448,
		[V_TEMPORAL] = 1, [V_CHANNELS] = 3 } },
	[VISION_CLIP] = { /* CLIPVisionConfig */ .gets_cls = true, .v = {
		[V_DEPTH] = 12, [V_HIDDEN] = 768, [V_HEADS] = 12, [V_FFN] = 3072, [V_PATCH] = 32, [V_IMAGE] = 224,
		[V_TEMPORAL] = 1, [V_CHANNELS] = 3, [V_BIAS] = 1 } },
};
/* Qwen3VLVisionConfig */
static const uint64_t default_deepstack[] = { 8, 16, 24 };

struct values { uint64_t v[V_N]; bool set[V_N]; };

static const struct vision_row *row_find(const char *name)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

/* A number, or the first of a list of equal ones ("patch_size": [14, 14]). */
static void read_number(struct diag *d, const struct pair *p, uint64_t *out)
{
	const struct node *n = p->value;
	uint64_t first, other;
	if (n->shape != SHAPE_SEQ || n->n == 0) {
		value_uint(d, n, p->key, 0, 1 << 22, out);
		return;
	}
	if (!value_uint(d, n->items[0], p->key, 1, 1 << 22, &first))
		return;
	*out = first;
	for (size_t i = 1; i < n->n; i++)
		if (value_uint(d, n->items[i], p->key, 1, 1 << 22, &other) && other != first)
			diag_refuse(d, n->loc, "'%s' with unequal sides is not modelled", p->key);
}

static void read_row(struct diag *d, const struct node *map, const struct pair *p, enum vision_kind kind,
		     struct values *x)
{
	const struct vision_row *r = row_find(p->key);
	const struct node *list = NULL;
	bool b = false;
	/* Qwen2VLVisionConfig: embed_dim is the tower's width, hidden_size its output's */
	enum vision_key key = kind == VISION_QWEN2 && !strcmp(p->key, "hidden_size") ? V_OUT : r->key;
	if (r->type == V_NUMBER && !node_is_null(p->value))
		read_number(d, p, &x->v[key]);
	else if (r->type == V_FLAG)
		x->v[key] = value_bool(d, p->value, p->key, &b) && b;
	else if (r->type == V_COUNT)
		x->v[key] = node_seq(d, map, p->key, &list) ? list->n : 0;
	x->set[key] = true;
}

static void unknown(struct diag *d, const struct pair *p)
{
	const char *names[COUNT(rows)];
	for (size_t i = 0; i < COUNT(rows); i++)
		names[i] = rows[i].name;
	model_unknown_key(d, p, names, COUNT(rows));
}

static bool is_ignored(const char *key)
{
	for (size_t i = 0; i < COUNT(ignored); i++)
		if (!strcmp(ignored[i], key))
			return true;
	return model_key_ignored(key);
}

static void read_map(struct diag *d, const struct node *map, bool strict, enum vision_kind kind, struct values *x)
{
	for (size_t i = 0; i < map->n; i++) {
		const struct pair *p = &map->pairs[i];
		if (row_find(p->key))
			read_row(d, map, p, kind, x);
		else if (strict && !is_ignored(p->key))
			unknown(d, p);
	}
}

/* How many patches along a side become one token: 1 / downsample_ratio (InternVL), or what leaves
 * mm_tokens_per_image of the patches (Gemma 3). */
static uint64_t merge_of(struct diag *d, const struct node *outer, enum vision_kind kind, uint64_t side)
{
	double ratio = 0.5;
	uint64_t tokens = 256, merge = 1;
	if (kind == VISION_INTERN) {
		node_real(d, outer, "downsample_ratio", 0.01, 1, &ratio);
		return (uint64_t)(1 / ratio + 0.5);
	}
	node_uint(d, outer, "mm_tokens_per_image", 1, 1 << 20, &tokens);
	while (merge < side && (side / (merge + 1)) * (side / (merge + 1)) >= tokens)
		merge++;
	return merge;
}

static void settle(struct diag *d, const struct node *outer, const struct model *m, struct vision *out, struct values *x)
{
	uint64_t *v = x->v, side;
	if (out->kind == VISION_INTERN)
		node_uint(d, outer, "force_image_size", 1, 1 << 20, &v[V_IMAGE]);
	side = v[V_PATCH] ? v[V_IMAGE] / v[V_PATCH] : 0;
	if (!v[V_MERGE] && m->outer == m->family)      /* a tower alone */
		v[V_MERGE] = 1;
	if (!v[V_MERGE])
		v[V_MERGE] = merge_of(d, outer, out->kind, side);
	if (!v[V_FFN])
		v[V_FFN] = mul_u64(v[V_HIDDEN], v[V_RATIO]);
	if (v[V_IMAGE])
		v[V_POSITIONS] = side * side + towers[out->kind].gets_cls;
	if (!v[V_OUT])
		v[V_OUT] = m->hidden;
}

static void check(struct diag *d, const struct node *map, const struct vision *v)
{
	const struct { uint64_t value; const char *name; } needed[] = {
		{ v->depth, "depth" }, { v->hidden, "hidden_size" }, { v->heads, "num_heads" }, { v->patch, "patch_size" },
		{ v->channels, "in_channels" }, { v->temporal, "temporal_patch_size" }, { v->merge, "spatial_merge_size" },
		{ v->ffn, "intermediate_size" },
	};
	for (size_t i = 0; i < COUNT(needed); i++)
		if (needed[i].value == 0)
			diag_error(d, map->loc, "'%s' of the vision tower is missing", needed[i].name);
	if (v->heads > 0 && v->hidden % v->heads != 0)
		diag_error(d, map->loc, "num_heads=%llu does not divide hidden_size=%llu of the vision tower",
			   (unsigned long long)v->heads, (unsigned long long)v->hidden);
}

/* `outer` has what the projector needs. */
static void read_tower(struct diag *d, const struct node *outer, const struct node *map, bool strict,
		       const struct model *m, struct vision *out)
{
	const char *norm = NULL;
	struct values x = { { 0 }, { false } };
	enum vision_kind kind = m->outer->vision;
	read_map(d, map, strict, kind, &x);
	for (int k = 0; k < V_N; k++)
		if (!x.set[k])
			x.v[k] = towers[kind].v[k];
	*out = (struct vision){ .kind = kind, .gated = towers[kind].gated, .rms = towers[kind].rms };
	settle(d, outer, m, out, &x);
	if (node_string(d, map, "norm_type", &norm))
		out->rms = !strcmp(norm, "rms_norm");
	out->depth = x.v[V_DEPTH];
	out->hidden = x.v[V_HIDDEN];
	out->heads = x.v[V_HEADS];
	out->ffn = x.v[V_FFN];
	out->patch = x.v[V_PATCH];
	out->image = x.v[V_IMAGE];
	out->merge = x.v[V_MERGE];
	out->temporal = x.v[V_TEMPORAL];
	out->out_hidden = x.v[V_OUT];
	out->channels = x.v[V_CHANNELS];
	out->positions = x.v[V_POSITIONS];
	out->deepstack = x.v[V_DEEPSTACK];
	out->window = x.v[V_WINDOW];
	out->full_blocks = x.v[V_FULL];
	out->bias = x.v[V_BIAS];
	out->qk_norm = x.v[V_QK_NORM];
	out->head = x.v[V_HEAD];
	check(d, map->n ? map : outer, out);
}

bool vision_from_node(struct diag *d, const struct node *outer, bool strict, const struct model *m, struct vision *out)
{
	static const struct node nothing = { .shape = SHAPE_MAP };
	const struct node *map = &nothing;
	size_t errors = diag_count(d, SEV_ERROR);
	node_map(d, outer, "vision_config", &map);
	read_tower(d, outer, map, strict, m, out);
	out->present = true;
	if (out->out_hidden != m->hidden)
		diag_error(d, map->n ? map->loc : outer->loc, "the vision tower's output width %llu is not the hidden size %llu",
			   (unsigned long long)out->out_hidden, (unsigned long long)m->hidden);
	return diag_count(d, SEV_ERROR) == errors;
}

/* ---- a tower alone */

static void read_act(struct diag *d, const struct node *n, struct model *m)
{
	const char *name;
	m->act = m->family->act;
	if (!node_string(d, n, "hidden_act", &name))
		return;
	const enum act_kind *act = act_find(name);
	if (act)
		m->act = *act;
	else
		diag_refuse(d, node_get(n, "hidden_act")->loc, "activation '%s' is not modelled", name);
}

/* deepstack_visual_indexes: layers that have a merger of their own */
static void read_deepstack(struct arena *a, struct diag *d, const struct node *n, struct vision *v)
{
	uint8_t *deep = NEWN(a, uint8_t, v->depth + 1);
	const struct node *list = NULL;
	bool given = node_seq(d, n, "deepstack_visual_indexes", &list);
	size_t count = given ? list->n : v->deepstack;
	for (size_t i = 0; i < count; i++) {
		uint64_t at = given || i >= COUNT(default_deepstack) ? 0 : default_deepstack[i];
		if (given && !value_uint(d, list->items[i], "deepstack_visual_indexes", 0, 1 << 16, &at))
			continue;
		if (at < v->depth)
			deep[at] = 1;
		else
			diag_error(d, given ? list->items[i]->loc : n->loc, "deepstack_visual_indexes has %llu, but there are %llu layers",
				   (unsigned long long)at, (unsigned long long)v->depth);
	}
	v->deep = deep;
}

bool tower_from_node(struct arena *a, struct diag *d, const struct node *n, bool strict, struct model *m)
{
	struct vision *v = &m->vision;
	size_t errors = diag_count(d, SEV_ERROR);
	read_tower(d, n, n, strict, m, v);
	if (v->depth > MAX_DEPTH)
		diag_error(d, n->loc, "the vision tower has more than %d layers", MAX_DEPTH);
	if (diag_count(d, SEV_ERROR) > errors)
		return false;
	read_act(d, n, m);
	if (v->kind == VISION_QWEN3)
		read_deepstack(a, d, n, v);
	node_real(d, n, "attention_dropout", 0, 1, &m->dropout_attn);
	m->hidden = v->hidden;
	m->ffn = v->ffn;
	m->layers = v->depth;
	m->heads = m->kv_heads = v->heads;
	m->head_dim = v->hidden / v->heads;
	m->positions = v->positions;
	m->rotary_fraction = 1;
	m->moe_every = 1;
	m->q_bias = m->family->q_bias;
	m->o_bias = m->family->o_bias;
	m->mlp_bias = m->family->mlp_bias;
	m->sliding = NEWN(a, uint8_t, m->layers);
	m->moe = NEWN(a, uint8_t, m->layers);
	return diag_count(d, SEV_ERROR) == errors;
}
