/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Honesty: plans that memplan cannot answer, and what an answer leaves out. */
#ifndef MEMPLAN_REFUSE_H
#define MEMPLAN_REFUSE_H

#include "plan/plan.h"

/* Reports everything in the plan that has no honest answer (exit status 3). */
void plan_refuse(const struct spec *s, struct diag *d);
/* Fills the result's list of what its numbers do not count. */
void plan_not_modelled(struct result *r, struct arena *a);

#endif
