/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What to try first when a plan does not fit. */
#ifndef MEMPLAN_ADVICE_H
#define MEMPLAN_ADVICE_H

#include "plan/plan.h"

/* One line that names the side that is too large and what to try, first thing first; nothing that the plan
 * already does.  NULL when the plan fits. */
const char *advise(const struct result *r, struct arena *a);

/* NULL when opts[] has every optimization that a tip names, else the first name that it lacks. */
const char *advice_check(void);

#endif
