/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The data folder: models/ and calibrations/, one file per name. */
#ifndef MEMPLAN_DATA_H
#define MEMPLAN_DATA_H

#include "base/base.h"

enum data_kind { DATA_MODEL, DATA_GPU, DATA_N };
struct data_def { const char *folder, *what, *list; };     /* list: what "memplan list" calls it */
extern const struct data_def data_defs[DATA_N];

/* The file that holds this name; NULL: the data folder has none. */
const char *data_path(struct arena *a, enum data_kind kind, const char *name);
/* All names, sorted.  The folder is missing or empty: n 0, and an error about the environment. */
const char *const *data_names(struct arena *a, struct diag *d, enum data_kind kind, size_t *n);
/* Whether a user's word is a path rather than a name: it has a slash or the suffix of a data file. */
bool data_is_path(const char *word);

#endif
