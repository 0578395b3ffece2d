/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * FSDP2 inside: units, and what their collectives allocate. */
#ifndef MEMPLAN_FSDP_H
#define MEMPLAN_FSDP_H

#include "kernel/data_parallel.h"

struct fsdp_unit {
	size_t n, *param;              /* of tape.params */
	size_ref shard;                /* elements of one rank's shards, padded */
	bool reshards;                 /* reshard_after_forward */
	bool early;                    /* a group of modules, the first of which is the embedding */
};
struct fsdp {
	struct fsdp_unit *layer;       /* by layer instance */
	struct fsdp_unit embedding, head, root;        /* head: final norm and head; those that hold nothing do nothing */
	bool head_done;                /* the head's module has returned in this forward */
	size_ref W;                    /* ranks that share one copy */
	enum dtype param, reduce;      /* param_dtype and reduce_dtype of the MixedPrecisionPolicy */
};

static inline struct fsdp *fsdp_of(struct build *b) { return b->dp_state; }

/* ---- fsdp_collectives.c */
tensor_id fsdp_all_gather(struct build *b, const struct fsdp_unit *u);        /* NO_TENSOR: one rank alone */
void fsdp_copy_out(struct build *b, struct fsdp_unit *u, tensor_id gathered);
void fsdp_reshard(struct build *b, struct fsdp_unit *u);
bool fsdp_is_gathered(struct build *b, const struct fsdp_unit *u);
void fsdp_reduce(struct build *b, struct fsdp_unit *u);                       /* post_backward */

#endif
