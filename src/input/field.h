/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Field tables: one row per thing a user can type.  From the rows come
 * reading, bounds, defaults, errors with suggestions, --set, check --origin,
 * the JSON schema and the man page's tables. */
#ifndef MEMPLAN_FIELD_H
#define MEMPLAN_FIELD_H

#include "base/base.h"

enum field_type {
	FIELD_UINT,        /* uint64_t */
	FIELD_REAL,        /* double */
	FIELD_BOOL,        /* bool */
	FIELD_PERCENT,     /* double, written 5% or 5 */
	FIELD_BYTES,       /* uint64_t, written 80GiB */
	FIELD_CHOICE,      /* int (or an enum of that size): index into choices */
	FIELD_STRING,      /* const char * */
};
struct field_choice { const char *name, *doc; };
struct field {
	const char *name;
	enum field_type type;
	size_t offset;                         /* into the struct it fills */
	size_t loc_offset;                     /* of a struct loc that remembers the place; 0: none */
	double min, max;                       /* numbers */
	const struct field_choice *choices; size_t nchoice;
	const char *deflt;                     /* as a user would write it; NULL: required or set by the profile */
	const char *unit, *doc;
};

#endif
