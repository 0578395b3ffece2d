/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MEMPLAN_JSON_H
#define MEMPLAN_JSON_H

#include "input/node.h"

const struct node *json_parse(struct arena *a, struct diag *d, const struct source *src);

#endif
