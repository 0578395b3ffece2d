/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * GPUs: reading a calibration file (schema memplan.calibration/1), the
 * constants of one GPU with the origin of each. */
#ifndef MEMPLAN_GPU_H
#define MEMPLAN_GPU_H

#include "input/node.h"
#include "input/spec.h"

/* One row per constant: where it stands in the file, its unit and what is believable. */
struct constant_row {
	const char *section, *name;    /* memory.context */
	const char *unit;              /* key of the value: bytes, bytes_per_s, flop_per_s, count */
	uint64_t min, max;
	bool required;
	const char *doc;
};
extern const struct constant_row constant_rows[CONST_N];
/* Words for `how`. */
struct how_row { const char *name; enum provenance prov; const char *doc; };
extern const struct how_row hows[];
extern const size_t nhow;

/* Fills *out except its name, which is the caller's (the file's stem).  False after an error. */
bool gpu_from_node(struct arena *a, struct diag *d, const struct node *n, struct gpu *out);

#endif
