/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of optimizations, in the order in which they are applied. */
#include "opt/opt.h"

#include <string.h>

#define OPTS(ROW) \
	ROW(opt_recompute) \
	ROW(opt_chunk_loss) \
	ROW(opt_optimizer_in_backward)

#define DECLARED(name) extern const struct opt name;
#define LISTED(name) &name,
OPTS(DECLARED)

const struct opt *const opts[] = { OPTS(LISTED) };
const size_t nopt = COUNT(opts);

const char *const opt_group_names[] = {
	[GROUP_REDUCE] = "reduce", [GROUP_BOUND] = "bound", [GROUP_SHIFT] = "shift", [GROUP_SHORTEN] = "shorten",
	[GROUP_ALLOCATOR] = "allocator", [GROUP_SHARD] = "shard", [GROUP_PRECISION] = "precision",
};

const struct opt *opt_find(const char *name)
{
	for (size_t i = 0; i < nopt; i++)
		if (!strcmp(opts[i]->name, name))
			return opts[i];
	return NULL;
}
