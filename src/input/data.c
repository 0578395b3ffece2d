/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The data folder is $MEMPLAN_DATA or the one given at compile time. */
#include "input/data.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct data_def data_defs[DATA_N] = {
	[DATA_MODEL] = { "models", "model", "models" },
	[DATA_GPU] = { "calibrations", "GPU", "gpus" },
};

static const char *const suffixes[] = { ".yaml", ".json" };

static const char *data_folder(struct arena *a, enum data_kind kind)
{
	const char *top = getenv("MEMPLAN_DATA");

	return arena_printf(a, "%s/%s", top && *top ? top : MEMPLAN_DATADIR, data_defs[kind].folder);
}

/* Length of a name without its suffix; 0: it has none of them. */
static size_t stem_len(const char *file)
{
	size_t len = strlen(file), n;

	for (size_t i = 0; i < COUNT(suffixes); i++) {
		n = strlen(suffixes[i]);
		if (len > n && !strcmp(file + len - n, suffixes[i]))
			return len - n;
	}
	return 0;
}

bool data_is_path(const char *word)
{
	return strchr(word, '/') || stem_len(word) > 0;
}

const char *data_path(struct arena *a, enum data_kind kind, const char *name)
{
	const char *folder = data_folder(a, kind), *path;

	if (!*name || *name == '.' || strchr(name, '/'))
		return NULL;
	for (size_t i = 0; i < COUNT(suffixes); i++) {
		path = arena_printf(a, "%s/%s%s", folder, name, suffixes[i]);
		if (!access(path, R_OK))
			return path;
	}
	return NULL;
}

static int by_name(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

const char *const *data_names(struct arena *a, struct diag *d, enum data_kind kind, size_t *n)
{
	VEC(const char *) v = { 0 };
	DIR *dir = opendir(data_folder(a, kind));
	const struct dirent *e;
	size_t len;

	while (dir && (e = readdir(dir))) {
		len = *e->d_name == '.' ? 0 : stem_len(e->d_name);
		if (len > 0)
			*VEC_PUSH(a, &v) = arena_strndup(a, e->d_name, len);
	}
	if (dir)
		closedir(dir);
	if (v.n == 0) {
		diag_environment(d, (struct loc){ 0 }, "no files in the data folder '%s'", data_folder(a, kind));
		diag_hint(d, "MEMPLAN_DATA names the folder that holds %s/", data_defs[kind].folder);
	}
	if (v.n > 0)
		qsort(v.v, v.n, sizeof *v.v, by_name);
	*n = v.n;
	return v.v;
}
