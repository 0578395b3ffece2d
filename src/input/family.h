/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Model families: one row per config.json model_type.  A row says what the
 * class computes and what its config class fills in for absent keys. */
#ifndef MEMPLAN_FAMILY_H
#define MEMPLAN_FAMILY_H

#include "input/spec.h"

/* Numbers and flags of a config.json that bear on memory, under one name for all spellings (input/model.c). */
enum config_key {
	KEY_NONE, KEY_HIDDEN, KEY_FFN, KEY_LAYERS, KEY_HEADS, KEY_KV_HEADS, KEY_HEAD_DIM, KEY_VOCAB, KEY_POSITIONS,
	KEY_TIED, KEY_ATTENTION_BIAS, KEY_QKV_BIAS, KEY_MLP_BIAS, KEY_BIAS, KEY_QK_NORM,
	KEY_WINDOW, KEY_USE_WINDOW, KEY_WINDOW_FROM, KEY_WINDOW_PATTERN, KEY_ATTN_SOFTCAP, KEY_FINAL_SOFTCAP,
	KEY_DROP_ATTN, KEY_DROP_RESID, KEY_DROP_EMBD, KEY_ROTARY, KEY_ROTARY_DIM,
	KEY_PARALLEL_RESIDUAL, KEY_PARALLEL_ATTN, KEY_PARALLEL_NORMS, KEY_NEW_DECODER, KEY_MULTI_QUERY, KEY_ALIBI,
	KEY_EXPERTS, KEY_TOPK, KEY_MOE_FFN, KEY_SHARED, KEY_SHARED_FFN, KEY_FIRST_DENSE, KEY_MOE_EVERY,
	KEY_NORM_TOPK, KEY_GROUPS, KEY_TOPK_GROUPS, KEY_ROPE_PAIRS,
	KEY_Q_LORA, KEY_KV_LORA, KEY_QK_NOPE, KEY_QK_ROPE, KEY_V_DIM, KEY_MTP, KEY_N
};

const struct family *family_find(const char *model_type);     /* NULL: no such row */
const char *family_nearest(const char *model_type);           /* NULL: none near */

#endif
