/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * libFuzzer target: any bytes as a YAML document. */
#include "input/node.h"
#include "input/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *a = arena_new();
	struct diag *d = diag_new(a);
	struct source src = { .name = "fuzz.yaml", .text = arena_strndup(a, (const char *)data, size), .len = size };
	const struct node *n = yaml_parse(a, d, &src, 0);

	if (!n && diag_status(d) == 0)
		__builtin_trap();
	arena_free(a);
	return 0;
}
