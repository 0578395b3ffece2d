/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The graph: storages, tensors (views of storages), ops in program order,
 * blocks (stretches of ops) and the program, a tree of seq and repeat over
 * blocks.  Lifetimes are derived: a storage is born at the first op that
 * writes it and dies after the last op that reads it.  What a Python variable
 * or a framework buffer keeps alive is an explicit zero-cost hold op. */
#ifndef MEMPLAN_GRAPH_H
#define MEMPLAN_GRAPH_H

#include "graph/size.h"
#include "input/spec.h"

enum tensor_class {
	CLASS_PARAMETER, CLASS_MASTER, CLASS_BUFFER, CLASS_GRADIENT, CLASS_OPTIMIZER, CLASS_INPUT,
	CLASS_SAVED, CLASS_LOGITS, CLASS_TEMPORARY, CLASS_RECOMPUTE, CLASS_WEIGHT_CAST,
	CLASS_UNSHARDED, CLASS_UNSHARDED_GRAD, CLASS_COMM, CLASS_WORKSPACE, CLASS_N
};
extern const char *const class_names[CLASS_N];
enum place { PLACE_GPU, PLACE_PINNED, PLACE_HOST, PLACE_N };
enum window { WIN_LOAD, WIN_FORWARD, WIN_BACKWARD, WIN_CLIP, WIN_OPTIMIZER, WIN_ZERO_GRAD, WIN_N };
extern const char *const window_names[WIN_N];

#define MAX_DIMS 6
typedef int32_t tensor_id;             /* index into graph.tensors; < 0: none */
#define NO_TENSOR ((tensor_id)-1)

/* A tensor is a view of a storage: shape and strides in elements, as torch has them. */
struct tensor {
	int32_t storage;
	uint8_t ndim, dtype;           /* enum dtype */
	bool needs_grad;
	bool is_view;                  /* made by a view op: its storage has another referent */
	int32_t node, out;             /* autograd node that made it and which of its outputs; -1: leaf */
	int32_t param;                 /* index of the parameter it holds; -1: none */
	size_ref dim[MAX_DIMS];
	uint64_t stride[MAX_DIMS];
};

struct storage {
	const char *name;              /* what a person calls it: "mlp.down_proj input", "gradient of q_proj" */
	const char *rule;              /* source of the rule that allocates it */
	const char *by;                /* optimization that last changed it; NULL: none */
	size_ref size;                 /* bytes as requested */
	uint64_t bytes;                /* rounded as the allocator of its place does; each copy */
	size_ref copies;               /* a stack of like storages (one per layer, say); NULL: 1 */
	uint64_t ncopies;
	uint8_t cls, place, dtype;
	int32_t birth, death;          /* op indices, derived by graph_lives(); -1: never */
	int32_t layer;                 /* first decoder layer it belongs to; -1: none */
};

enum stream { STREAM_COMPUTE, STREAM_COPY_IN, STREAM_REDUCE, STREAM_HOST_COPY, STREAM_N };

struct op {
	const char *name;              /* aten spelling where there is one: "mm", "_log_softmax_backward_data" */
	uint32_t reads, nreads, writes, nwrites;   /* slices of graph.pool: tensor ids */
	uint32_t block;
	uint8_t stream;
	uint64_t flops, bytes;         /* cost: arithmetic, memory traffic */
	uint64_t link_bytes;           /* cost: bytes over a link */
};

/* A block: ops [first, end), always executed together. */
struct block {
	const char *name;              /* "layer 1..30 forward" */
	uint32_t first, end;
	uint8_t window;                /* enum window */
	int32_t layer;                 /* decoder layer of its first call; -1: none */
	int32_t group;                 /* run of like layers it stands for; -1: none */
	int32_t micro;                 /* micro-batch of its first call; -1: none */
};

/* What one call of a layer run hands to the next: the storage that the first call finds in `outer` stands, from
 * the second call on, for what the previous call left in `inner`.  Calls of the other direction (backward, for
 * what the forward hands on) meet them in reverse order. */
struct carry { int32_t outer, inner; uint8_t window; };   /* storages; window of the calls that hand on */
/* A run of like layers of which only one is in the graph: `times` calls of the same blocks. */
struct group { uint64_t times; int32_t first_layer; uint32_t period; VEC(struct carry) carries; };

enum node_kind { NODE_CALL, NODE_SEQ };
struct prog {                              /* a node of the program tree */
	enum node_kind kind;
	uint64_t times;                    /* repetitions */
	int32_t group;                     /* the layer run that `times` counts; -1: micro-batches or none */
	uint32_t block;                    /* NODE_CALL */
	struct prog *child, *next;         /* NODE_SEQ: first child; next sibling */
	uint8_t window; int32_t step, micro;   /* of a window node (mark): which window this subtree is */
	bool is_window;
};

/* Events op by op: at op i the storages born[born_off[i] .. born_off[i + 1]) in order, then those in died. */
struct life_index { const uint32_t *born_off, *died_off; const int32_t *born, *died; };

struct graph {
	struct arena *a;
	VEC(struct tensor) tensors;
	VEC(struct storage) storages;
	VEC(struct op) ops;
	VEC(tensor_id) pool;
	VEC(struct block) blocks;
	VEC(struct group) groups;
	VEC(size_ref) dims;                /* named dimensions */
	struct life_index events;          /* derived by graph_lives() */
	struct prog *load, *first, *steady;    /* program: load once, the first step, the steady step */
	bool overflow;                     /* some size did not fit 64 bits */
};

struct graph *graph_new(struct arena *a);

/* ---- building (graph.c) */
int32_t graph_storage(struct graph *g, const char *name, enum tensor_class cls, enum place place,
		      enum dtype dt, size_ref size);
tensor_id graph_tensor(struct graph *g, int32_t storage, enum dtype dt, unsigned ndim, const size_ref *dims);
/* Appends an op to the current block; reads and writes are copied. */
struct op *graph_op(struct graph *g, const char *name, const tensor_id *reads, size_t nreads,
		    const tensor_id *writes, size_t nwrites);
void graph_hold(struct graph *g, const tensor_id *t, size_t n);    /* zero-cost op that keeps t alive up to here */
void graph_drop_reads(struct graph *g, uint32_t op, enum tensor_class cls);   /* op no longer reads tensors of that class */
uint32_t graph_block(struct graph *g, const char *name, enum window w);   /* ops go here from now on */
struct prog *prog_call(struct graph *g, uint32_t block);
struct prog *prog_seq(struct graph *g, uint64_t times);
void prog_add(struct prog *seq, struct prog *child);

/* ---- lifetimes (lives.c) */
/* Sets birth and death of every storage from the op list, and g->events.  Ops stand in program order of one pass:
 * load, first micro-batch, further micro-batches, clip, first optimizer step, steady optimizer step, zero_grad, end. */
void graph_lives(struct graph *g);
/* How many copies of storage s one call of block b frees: its stack, times the calls of the layer run that
 * made it when b is outside that run. */
uint64_t graph_death_copies(const struct graph *g, int32_t s, uint32_t block);

/* The storage that block b, in call `iteration` of its layer run, means by s. */
int32_t graph_resolve(const struct graph *g, int32_t s, uint32_t block, uint64_t iteration);

/* ---- check.c: NULL when sound, else what is broken: every read is of a live storage, every storage that is
 * born dies or is held to the end, blocks tile the op list, the program calls each block. */
const char *graph_check(struct graph *g, struct arena *a);
void graph_dump(const struct graph *g, FILE *f);

#endif
