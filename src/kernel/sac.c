/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Selective checkpointing policies: which op outputs a region keeps. */
#include "kernel/tape.h"

#include <string.h>

/* functorch partitioners.py compute_intensive_ops (torch 2.14.1) with the attention forwards */
static const char *const compute_intensive[] = { "mm", "addmm", "bmm", "baddbmm", "convolution",
	"_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
	"_scaled_dot_product_cudnn_attention", "max", "topk", NULL };
static const char *const attention_only[] = { "_scaled_dot_product_flash_attention",
	"_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", NULL };

const struct sac sac_rows[] = {
	{ "matmul", "outputs of every matrix product and attention", compute_intensive, false },
	{ "every_second_matmul", "the same, but every second mm is recomputed (torchtitan's per-op policy)",
	  compute_intensive, true },
	{ "attention", "outputs of attention only", attention_only, false },
};
const size_t nsac = COUNT(sac_rows);

const char *const sac_ops[] = { "mm", "addmm", "bmm", "baddbmm", "_grouped_mm", "_scaled_dot_product_flash_attention",
	"_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", "native_layer_norm",
	"_fused_rms_norm", "_softmax", "silu", "gelu", "mul", "add", "cat", "clone", "_to_copy", "native_dropout", "topk",
	NULL };

bool sac_keeps(const struct sac *s, const char *op, uint32_t *matmuls)
{
	if (s->alternate_mm && !strcmp(op, "mm") && ++*matmuls % 2 == 0)
		return false;
	for (const char *const *o = s->ops; *o; o++)
		if (!strcmp(op, *o))
			return true;
	return false;
}
