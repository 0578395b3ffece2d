/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Tracing a training program: load, the first step, the steady step. */
#ifndef MEMPLAN_STEP_H
#define MEMPLAN_STEP_H

#include "kernel/build.h"

/* The graph and program of one rank.  The recipe is what optimizations made of the plan. */
struct graph *trace_program(struct arena *a, const struct spec *s, const struct recipe *r);

/* Derives lifetimes and what they say: to be called again after ops were edited. */
void trace_finish(struct graph *g);

/* ---- layout.c: layer instances.  Like layers in a row (or a repeating pattern of kinds) are in the graph at
 * most three times: the first, one that stands for the middle, the last. */
void layout_layers(struct build *b);
size_t layer_instance(const struct build *b, uint64_t index);   /* the one that stands for decoder layer `index` */
bool recipe_checkpoints(const struct recipe *r, uint64_t layer);
/* ---- load.c: parameters, buffers and the batch */
void trace_load(struct build *b);
/* ---- optimizer.c, optimizer_clip.c: ops only, blocks are the caller's */
void trace_clip(struct build *b);
void trace_optimizer(struct build *b, bool first);
void trace_zero_grad(struct build *b);

#endif
