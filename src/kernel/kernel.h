/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Kernels: what a framework really stores.  Every logical operation has one
 * row per implementation.  A row's emitter writes the forward pass in aten
 * ops on a tape; the backward pass follows from each aten op's derivative
 * (aten.c) by the rules of the autograd engine (tape.c), so order, saved
 * tensors and temporaries are stated once. */
#ifndef MEMPLAN_KERNEL_H
#define MEMPLAN_KERNEL_H

#include "input/spec.h"

struct kernel_row { const char *name, *summary, *source; void (*emit)(void); };   /* emit: each op's own signature */
struct kernel_def { enum kernel_op op; const char *name, *doc; const struct kernel_row *rows; size_t nrow; };
extern const struct kernel_def kernels[K_N];

/* A framework: its defaults where they differ from torch's. */
struct profile {
	const char *name, *summary;
	const struct preset *presets; size_t npreset;   /* keys of a plan: "parallel.zero", "3" */
	bool modelled, experts;        /* predictions are answered; also for mixtures of experts and latent attention */
	bool parts;                    /* also where only parts are trained: LoRA, frozen modules */
};
extern const struct profile profiles[];
extern const size_t nprofile;

#endif
