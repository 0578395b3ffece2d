/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Nodes: what a YAML or JSON document says, as a tree of maps, sequences and
 * scalars that all know their place.  yaml.c and json.c make it; nobody else
 * sees the parsers.  A tree is finite, whatever the file says. */
#ifndef MEMPLAN_NODE_H
#define MEMPLAN_NODE_H

#include "base/base.h"

enum { DEPTH_MAX = 64, NODES_MAX = 100000, FILE_MAX = 16 * 1024 * 1024 };

enum shape { SHAPE_MAP, SHAPE_SEQ, SHAPE_SCALAR };
/* YAML 1.2 core schema; quoted text is always a string. */
enum scalar { SCALAR_NULL, SCALAR_BOOL, SCALAR_INT, SCALAR_REAL, SCALAR_STRING };

struct node;
struct pair { const char *key; struct loc loc; struct node *value; };
struct node {
	enum shape shape;
	enum scalar scalar;            /* SHAPE_SCALAR */
	const char *text;              /* SHAPE_SCALAR: as written, without quotes */
	struct loc loc;
	struct pair *pairs;            /* SHAPE_MAP, in file order */
	struct node **items;           /* SHAPE_SEQ */
	size_t n;                      /* pairs or items */
	size_t total;                  /* nodes of the tree below and with this one, aliases expanded */
};

/* Reads a whole file ("-": standard input, at most FILE_MAX) and parses it: as JSON when its name ends in .json or
 * it begins with a brace and a quote, else as YAML.  NULL after an error. */
const struct node *node_read(struct arena *a, struct diag *d, const char *path);
/* The same; `name` is what messages call the file. */
const struct node *node_read_as(struct arena *a, struct diag *d, const char *path, const char *name);
/* Parses a text from byte `offset` on; what stands before it counts as part of the first line. */
const struct node *node_parse(struct arena *a, struct diag *d, const struct source *src, size_t offset);

/* ---- looking: absent keys and null values are alike, NULL or false */
const struct node *node_get(const struct node *map, const char *key);
const struct pair *node_pair(const struct node *map, const char *key);     /* also with a null value */
bool node_is_null(const struct node *n);
const char *node_describe(struct arena *a, const struct node *n);     /* "a mapping", "text 'x'", "12" */
bool scalar_uint(const struct node *n, uint64_t *out);                /* silent; false: not such a number */
bool scalar_real(const struct node *n, double *out);

/* ---- typed: true and *out set when the key is there with a good value; false when absent or null;
 * a bad value is reported and gives false.  A bound of UINT64_MAX or DBL_MAX is none. */
bool node_uint(struct diag *d, const struct node *map, const char *key, uint64_t min, uint64_t max, uint64_t *out);
bool node_real(struct diag *d, const struct node *map, const char *key, double min, double max, double *out);
bool node_bool(struct diag *d, const struct node *map, const char *key, bool *out);
bool node_string(struct diag *d, const struct node *map, const char *key, const char **out);
bool node_map(struct diag *d, const struct node *map, const char *key, const struct node **out);
bool node_seq(struct diag *d, const struct node *map, const char *key, const struct node **out);
/* The same for a value itself; `what` is what messages call it. */
bool value_uint(struct diag *d, const struct node *n, const char *what, uint64_t min, uint64_t max, uint64_t *out);
bool value_real(struct diag *d, const struct node *n, const char *what, double min, double max, double *out);
bool value_bool(struct diag *d, const struct node *n, const char *what, bool *out);
bool value_string(struct diag *d, const struct node *n, const char *what, const char **out);

#endif
