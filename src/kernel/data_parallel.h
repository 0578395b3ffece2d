/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Data parallelism: what a wrapper around the model adds to the step.  Each
 * strategy is a row of hooks that the tracer calls at fixed points; none of
 * them knows of the others. */
#ifndef MEMPLAN_DATA_PARALLEL_H
#define MEMPLAN_DATA_PARALLEL_H

#include "kernel/build.h"

struct data_parallel {
	const char *name, *source;
	bool (*applies)(const struct spec *s);
	/* Changes the shape and place of a parameter to what this rank stores of it. */
	void (*shard)(struct build *b, size_ref *dim, enum place *place);
	void (*load)(struct build *b);                 /* parameters are there: buffers of its own */
	void (*forward_begin)(struct build *b);
	void (*embedding_output)(struct build *b, tensor_id x);
	void (*layer_begin)(struct build *b, size_t layer);
	tensor_id (*layer_input)(struct build *b, size_t layer, tensor_id x);  /* inside a checkpointed region if any */
	void (*layer_output)(struct build *b, size_t layer);                   /* so too */
	void (*layer_end)(struct build *b, size_t layer);
	tensor_id (*head_input)(struct build *b, tensor_id x);         /* of the final norm */
	void (*head_output)(struct build *b, tensor_id x);             /* logits, where the head is a module of its own */
	void (*forward_end)(struct build *b);
	void (*backward_begin)(struct build *b);
	void (*layer_backward)(struct build *b, size_t layer);         /* the engine comes to this layer */
	void (*backward_end)(struct build *b);         /* before the engine returns */
	void (*grad_ready)(void *build, struct pslot *p);              /* a gradient was accumulated */
};
extern const struct data_parallel data_parallels[];
extern const size_t ndata_parallel;
const struct data_parallel *data_parallel_of(const struct spec *s);

/* Layers at both ends of a run that must be in the graph one by one. */
uint64_t data_parallel_edge(const struct spec *s);

/* ---- ddp.c */
bool ddp_applies(const struct spec *s);
void ddp_load(struct build *b);
void ddp_grad_ready(void *build, struct pslot *p);

/* ---- fsdp.c */
bool fsdp_applies(const struct spec *s);
void fsdp_shard(struct build *b, size_ref *dim, enum place *place);
void fsdp_load(struct build *b);
void fsdp_forward_begin(struct build *b);
void fsdp_embedding_output(struct build *b, tensor_id x);
void fsdp_layer_begin(struct build *b, size_t layer);
tensor_id fsdp_layer_input(struct build *b, size_t layer, tensor_id x);
void fsdp_layer_output(struct build *b, size_t layer);
void fsdp_layer_end(struct build *b, size_t layer);
tensor_id fsdp_head_input(struct build *b, tensor_id x);
void fsdp_head_output(struct build *b, tensor_id x);
void fsdp_forward_end(struct build *b);
void fsdp_backward_begin(struct build *b);
void fsdp_layer_backward(struct build *b, size_t layer);
void fsdp_backward_end(struct build *b);

#endif
