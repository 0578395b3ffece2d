/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Rows of parameters: how params_rows.c writes down a class and params.c
 * reads it.  A row names a module or a bare parameter, when it exists and its
 * shape in named dimensions. */
#ifndef MEMPLAN_PARAMS_ROWS_H
#define MEMPLAN_PARAMS_ROWS_H

#include "kernel/params.h"

/* Dimensions of shapes, one name each. */
enum extent {
	S_0, S_1, S_h, S_f, S_2f, S_V, S_H, S_d, S_q, S_kv, S_qkv, S_E, S_fe, S_2fe, S_fs, S_P, S_2h,
	S_rq, S_rkv, S_rkv_dr, S_H_dn_dr, S_H_dn_dv, S_H_dv,
	S_vh, S_v3h, S_vf, S_vC, S_vT, S_vp, S_vP, S_vm, S_vo, S_N
};
/* When a row exists. */
enum when {
	ALWAYS, IF_SPLIT, IF_FUSED, IF_NOT_MLA, IF_MLA, IF_MLA_PLAIN_Q, IF_MLA_LORA_Q, IF_SINKS, IF_QK_HEAD, IF_QK_FULL,
	IF_DENSE_SPLIT, IF_DENSE_FUSED, IF_DENSE, IF_MOE, IF_GATE_FIRST, IF_GATE_LAST, IF_ROUTER_BIAS,
	IF_SHARED_MANY, IF_SHARED_GATE, IF_EXPERT_BIAS, IF_PRE_NORM, IF_NORMS_4, IF_NORMS_POST, IF_ONE_NORM,
	IF_SEQUENTIAL, IF_TWO_PARALLEL, IF_VISION_QK_NORM, IF_VISION_HEAD,
};
enum row_kind {
	LINEAR,                        /* .weight, and .bias where the row says so */
	TABLE,                         /* .weight */
	NORM,                          /* what the family's norm has */
	NORM_OF_TOWER,                 /* what the vision tower's norm has */
	NORM_W, NORM_WB,               /* .weight; .weight and .bias */
	BARE,                          /* a parameter of its own */
	EXPERTS,                       /* bare, one slice per expert */
};
enum bias { NO_BIAS, BIAS, BIAS_Q, BIAS_O, BIAS_MLP, BIAS_HEAD, BIAS_VISION };
struct row {
	const char *name;
	enum row_kind kind;
	enum when when;
	enum extent dim[PARAM_DIMS];
	enum bias bias;
	enum extent bias_dim;           /* S_0: the first dimension of the weight */
	enum param_site site;
};
struct row_list { const struct row *v; size_t n; };

/* By enum param_layout: what the class calls its list of layers, rows of a layer, rows around the layers. */
extern const struct layout { const char *list_name; struct row_list layer, outer; } layouts[LAYOUT_N];
extern const struct row_list mtp_rows, deepstack_rows;
/* Vision towers, by enum vision_kind; a part whose rows stand `copies` times has "*" in its prefix. */
enum copies { COPIES_ONE, COPIES_DEPTH, COPIES_DEEPSTACK };
struct tower_part { const char *prefix; struct row_list rows; enum copies copies; };
struct tower { const struct tower_part *v; size_t n; };
extern const struct tower towers[VISION_N];

#endif

