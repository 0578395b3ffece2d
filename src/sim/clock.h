/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Clock: how long a step takes at least, good enough to rank plans.  A
 * roofline: each op takes the longer of its arithmetic at the calibrated
 * matrix rate and its traffic at the calibrated memory bandwidth; transfers
 * on side streams overlap with the block they stand in. */
#ifndef MEMPLAN_CLOCK_H
#define MEMPLAN_CLOCK_H

#include "graph/graph.h"

struct timing {
	double step_s;                 /* the steady step */
	double compute_s, link_s, host_s;      /* busy time of the compute stream, GPU links, host link */
	double flops;                  /* arithmetic of the step */
	uint64_t host_bytes;           /* moved between GPU and host */
	bool known;                    /* every constant it needs is in the calibration */
};
/* Needs a traced graph.  O(ops + program nodes). */
struct timing clock_step(const struct graph *g, const struct gpu *gpu, struct arena *scratch);

#endif
