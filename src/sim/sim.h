/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Two simulators that must agree.  fold summarises blocks and subtrees to
 * (change, highest point) pairs and never unrolls; walk unrolls the program
 * into events in order. */
#ifndef MEMPLAN_SIM_H
#define MEMPLAN_SIM_H

#include "graph/graph.h"

/* Per place: net change and highest point, relative to the start. */
struct summary { int64_t delta[PLACE_N]; int64_t peak[PLACE_N]; };

struct window_peak {                   /* one window of one step, on the GPU */
	uint8_t window; int32_t step, micro;
	uint64_t start, peak, end;
	int32_t peak_op;               /* op index; -1: the peak is the window's start */
};

struct folded {
	struct summary load, first, steady;      /* steady is relative to the end of first */
	uint64_t peak[PLACE_N];                  /* over everything, absolute bytes */
	uint64_t peak_first, peak_steady;        /* GPU */
};
/* Needs graph_lives().  O(ops + program nodes), independent of layer and micro-batch counts. */
struct folded fold(const struct graph *g, struct arena *scratch);

struct event { int32_t storage; uint32_t call; bool birth; uint32_t op; uint64_t copies; };

struct alive { int32_t storage; uint64_t copies; };      /* at the peak: copies alive of this storage */

struct walked {
	uint64_t peak[PLACE_N];
	/* the moment of the GPU peak of the whole run (step 1 and steady) */
	int32_t peak_op; uint8_t peak_window; int32_t peak_step, peak_micro, peak_layer;
	uint64_t peak_first, peak_steady;
	struct alive *alive; size_t nalive;
	struct window_peak *windows; size_t nwindow;     /* in program order; of many equal micro-batches the first 16 */
	uint64_t *saved_per_layer; size_t nlayer;        /* growth between entries of successive layers, first micro-batch of the steady step */
	uint64_t at_end[CLASS_N];                        /* bytes by class at the start of the steady step */
};
/* on_event may be NULL; it sees every birth and death in order. */
typedef void walk_fn(void *ctx, const struct event *e);
struct walked walk(const struct graph *g, struct arena *a, walk_fn *on_event, void *ctx);

#endif
