/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Each parameter is stepped as soon as its gradient is there, and the
 * gradient is freed: gradients never meet. */
#include "graph/graph.h"
#include "opt/opt.h"

/* torch 2.14.1 register_post_accumulate_grad_hook; torchtitan early_step_in_backward */

static void check(const struct spec *s, const void *knobs, struct loc loc, struct diag *d)
{
	(void)knobs;
	if (s->train.grad_accum > 1)
		diag_error(d, loc, "'optimizer_in_backward' needs gradient_accumulation 1: a gradient is used up at once");
	if (s->train.clip_grad_norm > 0)
		diag_error(d, loc, "'optimizer_in_backward' cannot clip: the norm needs all gradients at once");
	if (!s->train.zero_grad_to_none)
		diag_error(d, loc, "'optimizer_in_backward' needs zero_grad: set_to_none");
}

/* needs: gradients that only the optimizer and zero_grad read after backward; leaves: none of those reads */
static void edit(struct graph *g, const void *knobs)
{
	(void)knobs;
	for (size_t i = 0; i < g->ops.n; i++) {
		enum window w = g->blocks.v[g->ops.v[i].block].window;
		if (w == WIN_OPTIMIZER || w == WIN_ZERO_GRAD)
			graph_drop_reads(g, (uint32_t)i, CLASS_GRADIENT);
	}
}

const struct opt opt_optimizer_in_backward = {
	.name = "optimizer_in_backward", .group = GROUP_SHORTEN,
	.summary = "step each parameter when its gradient is ready, then free the gradient",
	.doc = "A hook on each parameter runs the optimizer for it inside backward and clears its gradient, so that at "
	       "most the gradients of the layer at hand are alive. No gradient accumulation and no clipping by global norm. "
	       "States that the first step makes are still counted in its optimizer window, although they appear during "
	       "backward; the steady step and the highest peak are not touched by that.",
	.check = check, .edit = edit,
};
