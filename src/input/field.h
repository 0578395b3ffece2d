/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Field tables: one row per thing a user can type.  From the rows come
 * reading, bounds, defaults, errors with suggestions, --set, check --origin,
 * the JSON schema and the man page's tables. */
#ifndef MEMPLAN_FIELD_H
#define MEMPLAN_FIELD_H

#include "base/base.h"

struct strings { const char **v; size_t n; };      /* v is NULL-ended too */
struct uints { uint64_t *v; size_t n; };

enum field_type {
	FIELD_UINT,        /* uint64_t */
	FIELD_REAL,        /* double */
	FIELD_BOOL,        /* bool; with two choices: their names in place of false and true */
	FIELD_PERCENT,     /* double, written 5% */
	FIELD_BYTES,       /* uint64_t, written 80GiB */
	FIELD_CHOICE,      /* int (or an enum of that size): index into choices */
	FIELD_STRING,      /* const char * */
	FIELD_STRINGS,     /* struct strings, written [a, b] */
	FIELD_UINTS,       /* struct uints */
	FIELD_MAP,         /* a struct inside the struct: fields, offsets from its start */
	FIELD_ANY,         /* read by its owner, not by fields_read */
};
struct field_choice { const char *name, *doc; };
struct field {
	const char *name;
	enum field_type type;
	size_t offset;                         /* into the struct it fills */
	size_t loc_offset;                     /* of a struct loc that remembers the place; 0: none */
	double min, max;                       /* numbers; max 0: no upper bound */
	const struct field_choice *choices; size_t nchoice;
	const char *deflt;                     /* as a user would write it; NULL: required or set by the profile */
	const char *unit, *doc;
	const char *computed;                  /* in words: what an omitted field becomes; then it is never missing */
	bool off;                              /* the word "off" may be written for 0 */
	size_t given_offset;                   /* of a bool that tells whether the user wrote it; 0: none */
	const struct field *fields; size_t nfield;     /* FIELD_MAP */
};
#define CHOICES(list) .choices = (list), .nchoice = COUNT(list)
#define FIELDS(list) .fields = (list), .nfield = COUNT(list)

/* A default of a framework: "parallel.zero", "3". */
struct preset { const char *path, *value; };

/* An effective value and where it came from. */
enum origin { ORIGIN_DEFAULT, ORIGIN_PROFILE, ORIGIN_COMPUTED, ORIGIN_FILE };
struct effective {
	const char *path;              /* "train.micro_batch" */
	const struct field *field; const void *base;   /* of the struct: the value as it is now */
	enum origin origin;
	struct loc loc;                /* ORIGIN_FILE: of the value */
};

struct node;
struct field_reader {
	struct arena *a;
	struct diag *d;
	const struct preset *presets; size_t npreset;
	VEC(struct effective) values;
	bool damaged;                  /* some value could not be read: the struct is not to be used */
};

/* Fills `out` by the rows from a mapping (NULL: all omitted), whose own place is `where`.  Unknown keys, wrong types,
 * values out of range and missing keys are reported.  `path` names the mapping in messages; "" is the whole file. */
void fields_read(struct field_reader *r, const struct node *map, struct loc where, const char *path,
		 const struct field *f, size_t n, void *out);
/* Reports keys of the mapping that no row has. */
void fields_check_keys(struct field_reader *r, const struct node *map, const char *path,
		       const struct field *f, size_t n);
/* One value, as the user wrote it. */
void field_read_value(struct field_reader *r, const struct node *value, const char *path,
		      const struct field *f, void *out);
/* The value of a field, as a user would write it. */
const char *field_print(struct arena *a, const struct field *f, const void *base);
/* The effective value of a path; NULL: no such path. */
struct effective *effective_find(struct field_reader *r, const char *path);
/* An unknown name: hint with the nearest of the names, or the list when it is short. */
void names_hint(struct diag *d, const char *found, const char *const *names, size_t n);

#endif
