/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The emitters behind the rows of kernels[] (kernel.c). */
#ifndef MEMPLAN_ROWS_H
#define MEMPLAN_ROWS_H

#include "kernel/build.h"

/* The row the plan chose for an operation. */
const struct kernel_row *kernel_row(const struct spec *s, enum kernel_op op);

norm_fn norm_rms_composite, norm_rms_fused, norm_rms_liger, norm_layer_torch, norm_layer_liger;
rope_fn rope_torch, rope_liger, rope_complex;
attention_fn attention_eager, attention_flash, attention_efficient, attention_cudnn, attention_math;
mlp_fn mlp_torch, mlp_liger;
experts_fn experts_grouped_mm, experts_eager;
loss_fn loss_torch, loss_liger;

#endif
