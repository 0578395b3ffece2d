/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * libFuzzer target: any bytes as a model file, YAML or config.json. */
#include "input/model.h"
#include "input/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct diag *d = diag_new(a);
	struct source src = { .name = "fuzz", .text = arena_strndup(a, (const char *)data, size), .len = size };
	const struct node *n = node_parse(a, d, &src, 0);
	struct model m = { 0 };

	if (!n || !model_from_node(a, d, n, "fuzz", &m)) {
		if (diag_status(d) == 0)
			__builtin_trap();
	}
	arena_free(a);
	return 0;
}
