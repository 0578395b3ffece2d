/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MEMPLAN_YAML_H
#define MEMPLAN_YAML_H

#include "input/node.h"

/* One document; places count from byte `offset` of the text, which is where parsing starts. */
const struct node *yaml_parse(struct arena *a, struct diag *d, const struct source *src, size_t offset);

/* A plain scalar that no file has: a default, say. */
struct node *node_scalar(struct arena *a, const char *text, struct loc loc);

#endif
