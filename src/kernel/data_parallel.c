/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of data-parallel strategies. */
#include "kernel/data_parallel.h"

static bool always(const struct spec *s) { (void)s; return true; }
static void whole(struct build *b, size_ref *dim, enum place *place) { (void)b; (void)dim; (void)place; }
static void nothing(struct build *b) { (void)b; }
static void nothing_layer(struct build *b, size_t layer) { (void)b; (void)layer; }
static tensor_id same_input(struct build *b, size_t layer, tensor_id x) { (void)b; (void)layer; return x; }

const struct data_parallel data_parallels[] = {
	{ "fsdp2", "torch 2.14.1 distributed/fsdp/_fully_shard", fsdp_applies, fsdp_shard, fsdp_load,
	  fsdp_forward_begin, fsdp_layer_begin, fsdp_layer_input, fsdp_layer_output, fsdp_layer_end, fsdp_forward_end,
	  fsdp_backward_begin, fsdp_layer_backward, fsdp_backward_end, NULL },
	{ "ddp", "torch 2.14.1 nn/parallel/distributed.py, csrc/distributed/c10d/reducer.cpp", ddp_applies, whole, ddp_load,
	  nothing, nothing_layer, same_input, nothing_layer, nothing_layer, nothing, nothing, nothing_layer, nothing, ddp_grad_ready },
	{ "none", "one copy of the model", always, whole, nothing,
	  nothing, nothing_layer, same_input, nothing_layer, nothing_layer, nothing, nothing, nothing_layer, nothing, NULL },
};
const size_t ndata_parallel = COUNT(data_parallels);

const struct data_parallel *data_parallel_of(const struct spec *s)
{
	const struct data_parallel *dp = data_parallels;
	while (!dp->applies(s))
		dp++;
	return dp;
}

/* Explicit prefetch stops this many layers before the end. */
uint64_t data_parallel_edge(const struct spec *s)
{
	const struct parallel *p = &s->par;
	uint64_t depth = p->forward_prefetch > p->backward_prefetch ? p->forward_prefetch : p->backward_prefetch;
	depth = depth < MAX_PENDING ? depth : MAX_PENDING;
	return fsdp_applies(s) && depth > 1 ? depth : 1;
}
