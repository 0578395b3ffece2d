/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * libFuzzer target: any bytes as a plan file, through field tables, models,
 * GPUs and the rules between keys.  Needs MEMPLAN_DATA. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("plan", 0);
	struct arena *a = arena_new();
	struct diag *d = diag_new(a);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		__builtin_trap();
	if (!spec_read(a, d, arena_printf(a, "/proc/self/fd/%d", fd), NULL, 0) && diag_status(d) == 0)
		__builtin_trap();
	arena_free(a);
	close(fd);
	return 0;
}
