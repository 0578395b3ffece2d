/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The pure function: spec -> result.  No I/O, no globals, no clock. */
#ifndef MEMPLAN_PLAN_H
#define MEMPLAN_PLAN_H

#include "sim/sim.h"

struct class_bytes { enum tensor_class cls; uint64_t bytes; };
struct tensor_bytes {                  /* alive at the peak, like storages of different layers together */
	const char *name; enum tensor_class cls; uint64_t count, bytes;
	size_ref formula;              /* bytes of all `count`, allocator rounding included */
	const char *by;                /* optimization that last changed it, or NULL */
	const char *rule, *born, *freed;   /* source of the rule; op that creates it; op that frees it */
};
struct used_constant { const char *name; uint64_t value; enum provenance prov; const char *source; };
struct rank_peak { uint64_t rank, stage, peak_allocated; };

struct result {
	const struct spec *spec;
	uint64_t parameters, trainable;
	bool fits;
	uint64_t capacity, limit;      /* limit = capacity less headroom */
	uint64_t allocated, process;   /* worst over step 1 and steady; reserved has no model yet */
	bool reserved_known; uint64_t reserved;
	uint64_t allocated_first, allocated_steady;   /* peak of step 1 and of the steady step */
	enum window peak_window; const char *peak_op; int peak_step, peak_micro, peak_layer;   /* layer -1: none */
	struct class_bytes *by_class; size_t nclass;       /* descending; sums to allocated */
	struct tensor_bytes *by_tensor; size_t ntensor;    /* descending; sums to allocated */
	struct window_peak *windows; size_t nwindow;       /* steps 1 and 2 (steady), in order */
	uint64_t *saved_per_layer; size_t nlayer;
	uint64_t host_pinned, host_pageable;
	struct rank_peak *ranks; size_t nrank;
	struct used_constant *constants; size_t nconstant;
	const char **not_modelled; size_t nnot_modelled;
	size_ref formula;              /* the peak as a closed form; evaluates to allocated */
	const char *advice;            /* NULL when nothing is to be said */
	struct graph *graph;
	struct folded folded; struct walked walked;
};

/* The result lives in `a`.  d gets what memplan cannot honestly answer (diag_refuse); then NULL. */
const struct result *plan(const struct spec *spec, struct arena *a, struct diag *d);

/* ---- schema.c: reading plan files */
/* Reads the plan (path, "-" = stdin), applies --set texts ("a.b=VALUE"), resolves model and GPU by name in the
 * data directories.  Errors go to d; NULL when there is any. */
const struct spec *spec_read(struct arena *a, struct diag *d, const char *path, const char *const *set, size_t nset);

#endif
