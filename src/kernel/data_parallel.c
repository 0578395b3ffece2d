/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The table of data-parallel strategies. */
#include "kernel/data_parallel.h"

static bool always(const struct spec *s) { (void)s; return true; }
static void whole(struct build *b, size_ref *dim, enum place *place) { (void)b; (void)dim; (void)place; }
static void nothing(struct build *b) { (void)b; }
static void nothing_output(struct build *b, tensor_id x) { (void)b; (void)x; }
static tensor_id same_head(struct build *b, tensor_id x) { (void)b; return x; }
static void nothing_layer(struct build *b, size_t layer) { (void)b; (void)layer; }
static tensor_id same_input(struct build *b, size_t layer, tensor_id x) { (void)b; (void)layer; return x; }

const struct data_parallel data_parallels[] = {
	{ .name = "fsdp2", .source = "torch 2.14.1 distributed/fsdp/_fully_shard", .applies = fsdp_applies,
	  .shard = fsdp_shard, .load = fsdp_load,
	  .forward_begin = fsdp_forward_begin, .embedding_output = fsdp_embedding_output,
	  .layer_begin = fsdp_layer_begin, .layer_input = fsdp_layer_input,
	  .layer_output = fsdp_layer_output, .layer_end = fsdp_layer_end,
	  .head_input = fsdp_head_input, .head_output = fsdp_head_output, .forward_end = fsdp_forward_end,
	  .backward_begin = fsdp_backward_begin, .layer_backward = fsdp_layer_backward,
	  .backward_end = fsdp_backward_end },
	{ .name = "ddp", .source = "torch 2.14.1 nn/parallel/distributed.py, csrc/distributed/c10d/reducer.cpp",
	  .applies = ddp_applies, .shard = whole, .load = ddp_load,
	  .forward_begin = nothing, .embedding_output = nothing_output, .layer_begin = nothing_layer, .layer_input = same_input,
	  .layer_output = nothing_layer, .layer_end = nothing_layer,
	  .head_input = same_head, .head_output = nothing_output, .forward_end = nothing,
	  .backward_begin = nothing, .layer_backward = nothing_layer, .backward_end = nothing,
	  .grad_ready = ddp_grad_ready },
	{ .name = "none", .source = "one copy of the model", .applies = always, .shard = whole, .load = nothing,
	  .forward_begin = nothing, .embedding_output = nothing_output, .layer_begin = nothing_layer, .layer_input = same_input,
	  .layer_output = nothing_layer, .layer_end = nothing_layer,
	  .head_input = same_head, .head_output = nothing_output, .forward_end = nothing,
	  .backward_begin = nothing, .layer_backward = nothing_layer, .backward_end = nothing },
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
