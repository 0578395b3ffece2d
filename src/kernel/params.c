/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Parameter lists, made from the rows of params_rows.c: each row that exists
 * in this model becomes a weight and, where it has one, a bias. */
#include "kernel/params_rows.h"

struct ctx {
	struct arena *a;
	const struct model *m;
	bool moe;                      /* of the layer at hand */
	size_ref shape[S_N];
	struct param_list list;
};

struct model_dims model_dims(struct arena *a, const struct model *m)
{
	struct model_dims d = {
		.h = size_dim(a, "h", m->hidden, "hidden size"),
		.f = size_dim(a, "f", m->ffn, "feed-forward width"),
		.V = size_dim(a, "V", m->vocab, "vocabulary"),
		.H = size_dim(a, "a", m->heads, "attention heads"),
		.K = size_dim(a, "g", m->kv_heads, "key and value heads"),
		.d = size_dim(a, "d", m->head_dim, "head dimension"),
		.E = size_dim(a, "E", m->experts, "experts"),
		.k = size_dim(a, "k", m->topk, "experts of a token"),
		.fe = size_dim(a, "f_e", m->moe_ffn, "width of one expert"),
		.fs = size_dim(a, "f_s", m->shared_ffn, "width of the shared experts"),
		.P = size_dim(a, "P", m->positions, "positions"),
		.rq = size_dim(a, "r_q", m->q_lora, "rank of the query latent"),
		.rkv = size_dim(a, "r_kv", m->kv_lora, "rank of the key and value latent"),
		.dn = size_dim(a, "d_n", m->qk_nope, "head dimension without rotation"),
		.dr = size_dim(a, "d_r", m->qk_rope, "head dimension with rotation"),
		.dv = size_dim(a, "d_v", m->v_dim, "value head dimension"),
	};
	d.q = size_mul(a, d.H, d.d);
	d.kv = size_mul(a, d.K, d.d);
	return d;
}

/* A tower alone has the width of the model. */
static void vision_shapes(struct arena *a, const struct vision *v, size_ref s[S_N])
{
	s[S_vh] = v->present ? size_dim(a, "h_v", v->hidden, "hidden size of the vision tower") : s[S_h];
	s[S_v3h] = size_mulc(a, s[S_vh], 3);
	s[S_vf] = v->present ? size_dim(a, "f_v", v->ffn, "feed-forward width of the vision tower") : s[S_f];
	s[S_vC] = size_const(a, v->channels);
	s[S_vT] = size_const(a, v->temporal);
	s[S_vp] = size_const(a, v->patch);
	s[S_vP] = size_dim(a, "P_v", v->positions, "rows of the vision position table");
	s[S_vm] = size_mulc(a, s[S_vh], mul_u64(v->merge, v->merge));
	s[S_vo] = size_dim(a, "h_o", v->out_hidden, "output width of the vision tower");
}

static struct ctx ctx_new(struct arena *a, const struct model *m, const struct model_dims *d)
{
	struct ctx c = { .a = a, .m = m, .shape = {
		[S_1] = size_const(a, 1), [S_h] = d->h, [S_f] = d->f, [S_2f] = size_mulc(a, d->f, 2), [S_V] = d->V,
		[S_H] = d->H, [S_d] = d->d, [S_q] = d->q, [S_kv] = d->kv,
		[S_qkv] = size_add(a, d->q, size_mulc(a, d->kv, 2)), [S_E] = d->E, [S_fe] = d->fe,
		[S_2fe] = size_mulc(a, d->fe, 2), [S_fs] = d->fs, [S_P] = d->P, [S_2h] = size_mulc(a, d->h, 2),
		[S_rq] = d->rq, [S_rkv] = d->rkv, [S_rkv_dr] = size_add(a, d->rkv, d->dr),
		[S_H_dn_dr] = size_mul(a, d->H, size_add(a, d->dn, d->dr)),
		[S_H_dn_dv] = size_mul(a, d->H, size_add(a, d->dn, d->dv)),
		[S_H_dv] = size_mul(a, d->H, d->dv),
	} };
	if (m->vision.kind != VISION_NONE)
		vision_shapes(a, &m->vision, c.shape);
	return c;
}

static bool row_exists(const struct ctx *c, enum when when)
{
	const struct model *m = c->m;
	const struct family *f = m->family;
	bool mla = m->kv_lora > 0, fused = f->qkv == QKV_FUSED;
	switch (when) {
	case ALWAYS: return true;
	case IF_SPLIT: return !mla && !fused;
	case IF_FUSED: return !mla && fused;
	case IF_NOT_MLA: return !mla;
	case IF_MLA: return mla;
	case IF_MLA_PLAIN_Q: return mla && m->q_lora == 0;
	case IF_MLA_LORA_Q: return mla && m->q_lora > 0;
	case IF_SINKS: return m->attn_sinks;
	case IF_QK_HEAD: return m->qk_norm == QKNORM_HEAD;
	case IF_QK_FULL: return m->qk_norm == QKNORM_FULL;
	case IF_DENSE: return !c->moe;
	case IF_DENSE_SPLIT: return !c->moe && f->mlp != MLP_GATED_FUSED;
	case IF_DENSE_FUSED: return !c->moe && f->mlp == MLP_GATED_FUSED;
	case IF_MOE: return c->moe && !m->expert_bias;
	case IF_EXPERT_BIAS: return c->moe && m->expert_bias;
	case IF_GATE_FIRST: return c->moe && !m->expert_bias && f->router == ROUTER_FIRST;
	case IF_GATE_LAST: return c->moe && !m->expert_bias && f->router == ROUTER_LAST;
	case IF_ROUTER_BIAS: return c->moe && m->router_bias;
	case IF_SHARED_MANY: return c->moe && m->shared_ffn > 0 && !m->shared_gate;
	case IF_SHARED_GATE: return c->moe && m->shared_ffn > 0 && m->shared_gate;
	case IF_PRE_NORM: return f->block != BLOCK_POST;
	case IF_NORMS_4: return f->block == BLOCK_FOUR;
	case IF_NORMS_POST: return f->block == BLOCK_FOUR || f->block == BLOCK_POST;
	case IF_SEQUENTIAL: return f->block != BLOCK_PARALLEL;
	case IF_TWO_PARALLEL: return f->block == BLOCK_PARALLEL && f->norms == 2;
	case IF_ONE_NORM: return f->block == BLOCK_PARALLEL && f->norms == 1;
	case IF_VISION_QK_NORM: return m->vision.qk_norm;
	case IF_VISION_HEAD: return m->vision.head;
	}
	return false;
}

static bool row_biased(const struct model *m, enum bias bias)
{
	switch (bias) {
	case NO_BIAS: return false;
	case BIAS: return true;
	case BIAS_Q: return m->q_bias;
	case BIAS_O: return m->o_bias;
	case BIAS_MLP: return m->mlp_bias;
	case BIAS_HEAD: return m->head_bias;
	case BIAS_VISION: return m->vision.bias;
	}
	return false;
}

static struct param *push(struct ctx *c, const struct row *r, const char *prefix, const char *suffix, uint64_t copies)
{
	struct param *p = VEC_PUSH(c->a, &c->list);
	*p = (struct param){ .name = arena_printf(c->a, "%s%s%s", prefix, r->name, suffix), .site = r->site,
			     .copies = copies };
	return p;
}

static void push_weight(struct ctx *c, const struct row *r, const char *prefix, uint64_t copies)
{
	struct param *p = push(c, r, prefix, r->kind == BARE || r->kind == EXPERTS ? "" : ".weight", copies);
	while (p->ndim < PARAM_DIMS && r->dim[p->ndim] != S_0) {
		p->dim[p->ndim] = c->shape[r->dim[p->ndim]];
		p->ndim++;
	}
	p->tied = r->site == SITE_HEAD && c->m->tied;
	p->buffer = r->when == IF_ROUTER_BIAS;
	p->routed = r->kind == EXPERTS;
	p->linear = r->kind == LINEAR && p->ndim == 2 && r->site != SITE_HEAD;
	p->transposed = r->bias_dim != S_0;
}

static void push_bias(struct ctx *c, const struct row *r, const char *prefix, uint64_t copies)
{
	struct param *p = push(c, r, prefix, ".bias", copies);
	p->ndim = 1;
	p->dim[0] = c->shape[r->bias_dim != S_0 ? r->bias_dim : r->dim[0]];
}

static void push_row(struct ctx *c, const struct row *r, const char *prefix, uint64_t copies)
{
	const struct model *m = c->m;
	enum norm_kind norm = m->family->norm;
	bool weight = true, bias = false;
	switch (r->kind) {
	case LINEAR: bias = row_biased(m, r->bias); break;
	case TABLE: case NORM_W: case BARE: case EXPERTS: break;
	case NORM_WB: bias = true; break;
	case NORM_OF_TOWER: bias = !m->vision.rms; break;
	case NORM: weight = norm != NORM_LAYER_PLAIN; bias = norm == NORM_LAYER; break;
	}
	if (weight)
		push_weight(c, r, prefix, copies);
	if (bias)
		push_bias(c, r, prefix, copies);
}

static void push_rows(struct ctx *c, struct row_list rows, const char *prefix, uint64_t copies)
{
	for (size_t i = 0; i < rows.n; i++)
		if (row_exists(c, rows.v[i].when))
			push_row(c, &rows.v[i], prefix, copies);
}

static void push_tower(struct ctx *c)
{
	const struct vision *v = &c->m->vision;
	const uint64_t times[] = { [COPIES_ONE] = 1, [COPIES_DEPTH] = v->depth, [COPIES_DEEPSTACK] = v->deepstack };
	const struct tower *t = &towers[v->kind];
	size_t first = c->list.n;
	for (size_t i = 0; i < t->n; i++)
		if (times[t->v[i].copies] > 0)
			push_rows(c, t->v[i].rows, t->v[i].prefix, times[t->v[i].copies]);
	for (size_t i = first; i < c->list.n; i++)
		c->list.v[i].site = SITE_VISION;
}

/* A tower alone has its mergers of deepstack layers one by one. */
static void push_deepstack(struct ctx *c)
{
	size_t first = c->list.n;
	for (uint64_t i = 0; i < c->m->vision.deepstack; i++)
		push_rows(c, deepstack_rows, arena_printf(c->a, "deepstack_merger_list.%llu.", (unsigned long long)i), 1);
	for (size_t i = first; i < c->list.n; i++)
		c->list.v[i].site = SITE_FINAL;
}

static const char *stem(struct arena *a, const struct model *m)
{
	if (m->vision.present)
		return "model.language_model.";
	return *m->family->stem ? arena_printf(a, "%s.", m->family->stem) : "";
}

const char *params_layer_prefix(struct arena *a, const struct model *m)
{
	return arena_printf(a, "%s%s.", stem(a, m), layouts[m->family->layout].list_name);
}

struct param_list params_outer(struct arena *a, const struct model *m, const struct model_dims *d)
{
	struct ctx c = ctx_new(a, m, d);
	struct row_list rows = layouts[m->family->layout].outer;
	if (m->vision.present)
		push_tower(&c);
	for (size_t i = 0; i < rows.n; i++)
		if (row_exists(&c, rows.v[i].when))
			push_row(&c, &rows.v[i], rows.v[i].site == SITE_HEAD ? "" : stem(a, m), 1);
	if (!m->vision.present)
		push_deepstack(&c);
	return c.list;
}

struct param_list params_layer(struct arena *a, const struct model *m, const struct model_dims *d, uint64_t layer)
{
	struct ctx c = ctx_new(a, m, d);
	c.moe = m->moe && m->moe[layer];
	push_rows(&c, layouts[m->family->layout].layer, "", 1);
	for (size_t i = 0; i < c.list.n; i++)
		c.list.v[i].site = SITE_LAYER;
	return c.list;
}

struct param_list params_mtp(struct arena *a, const struct model *m, const struct model_dims *d)
{
	struct ctx c = ctx_new(a, m, d);
	if (m->mtp_layers == 0)
		return c.list;
	c.moe = m->experts > 0;
	push_rows(&c, layouts[m->family->layout].layer, "mtp.*.", m->mtp_layers);
	push_rows(&c, mtp_rows, "mtp.*.", m->mtp_layers);
	for (size_t i = 0; i < c.list.n; i++)
		c.list.v[i].site = SITE_MTP;
	return c.list;
}

uint64_t param_count(const struct param *p)
{
	uint64_t n = p->tied || p->buffer ? 0 : p->copies;
	for (unsigned i = 0; i < p->ndim; i++)
		n = mul_u64(n, p->dim[i]->value);
	return n;
}

static uint64_t active_count(const struct param *p, const struct model *m)
{
	uint64_t n = param_count(p);
	return p->routed && n != BYTES_OVERFLOW ? mul_u64(n / m->experts, m->topk) : n;
}

static uint64_t list_total(struct param_list l, const struct model *m, bool active)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < l.n; i++)
		sum = add_u64(sum, active ? active_count(&l.v[i], m) : param_count(&l.v[i]));
	return sum;
}

/* Layers are of at most two kinds, so each kind is listed once. */
static uint64_t total(struct arena *a, const struct model *m, bool active)
{
	struct model_dims d = model_dims(a, m);
	uint64_t sum = list_total(params_outer(a, m, &d), m, active), kind[2];
	bool known[2] = { false, false };
	for (uint64_t i = 0; i < m->layers; i++) {
		unsigned k = m->moe && m->moe[i];
		if (!known[k])
			kind[k] = list_total(params_layer(a, m, &d, i), m, active);
		known[k] = true;
		sum = add_u64(sum, kind[k]);
	}
	return sum;
}

uint64_t model_parameters(struct arena *a, const struct model *m)
{
	return total(a, m, false);
}

uint64_t model_active_parameters(struct arena *a, const struct model *m)
{
	return total(a, m, true);
}
