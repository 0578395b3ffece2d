/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Output files: written beside their place and renamed when complete.  What
 * is no regular file (a device, a pipe, a link) is written directly. */
#include "cmd/cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool failed(const char *path)
{
	fprintf(stderr, "memplan: %s: cannot be written: %s\n", path, strerror(errno));
	return false;
}

static FILE *open_temporary(struct output *o, struct arena *a, const char *path)
{
	char *name = arena_printf(a, "%s.XXXXXX", path);
	mode_t mask = umask(0);
	int fd = mkstemp(name);

	umask(mask);
	if (fd < 0)
		return NULL;
	o->temporary = name;
	fchmod(fd, 0666 & ~mask);
	return fdopen(fd, "w");
}

bool output_open(struct output *o, struct arena *a, const char *path)
{
	struct stat st;

	*o = (struct output){ .f = stdout, .path = "standard output" };
	if (!path || !strcmp(path, "-"))
		return true;
	o->path = path;
	o->f = !lstat(path, &st) && !S_ISREG(st.st_mode) ? fopen(path, "w") : open_temporary(o, a, path);
	return o->f || failed(path);
}

bool output_close(struct output *o, bool keep)
{
	bool ok = !fflush(o->f) && !ferror(o->f) && (!o->temporary || !fsync(fileno(o->f)));

	if (!ok)
		failed(o->path);
	if (o->f != stdout && fclose(o->f) && ok)
		ok = failed(o->path);
	if (o->temporary && ok && keep && rename(o->temporary, o->path))
		ok = failed(o->path);
	if (o->temporary && (!ok || !keep))
		unlink(o->temporary);
	return ok;
}
