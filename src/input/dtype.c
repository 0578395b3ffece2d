/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Element types: one row each. */
#include "input/spec.h"

const struct dtype_row dtypes[DT_N] = {
	[DT_FP32] = { "fp32", 4, true },
	[DT_BF16] = { "bf16", 2, true },
	[DT_FP16] = { "fp16", 2, true },
	[DT_FP8] = { "fp8", 1, true },
	[DT_INT64] = { "int64", 8, false },
	[DT_INT32] = { "int32", 4, false },
	[DT_UINT8] = { "uint8", 1, false },
	[DT_BOOL] = { "bool", 1, false },
};
