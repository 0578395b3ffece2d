/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * The tape: torch's autograd engine without the numbers.  Emitters call aten
 * functions (aten.h) in the order in which a framework's Python does; each
 * appends ops to the graph and a node to the tape.  tape_backward() then runs
 * the nodes as the engine does: highest sequence number first, gradients
 * summed in place when nobody else holds the first, saved tensors released
 * after their node.  Checkpointed regions re-run their emitter at the first
 * unpack.  Rules: torch 2.14.1 autograd/engine.cpp, input_buffer.cpp,
 * utils/checkpoint.py. */
#ifndef MEMPLAN_TAPE_H
#define MEMPLAN_TAPE_H

#include "graph/graph.h"

enum { NODE_SAVED = 8 };

struct tape;
struct anode;
/* Emits the ops of one node's backward.  grad[i] is the gradient of output i (NO_TENSOR: none arrived);
 * sets out[i], the gradient of input i, where n->want[i]. */
typedef void back_fn(struct tape *t, struct anode *n, const tensor_id *grad, tensor_id *out);

struct anode {
	const char *name;
	const char *label, *rule;      /* of the forward op; what its backward makes is named after it */
	back_fn *back;
	tensor_id *in;                 /* inputs, for their shapes and edges; not kept alive */
	bool *want;                    /* input needs a gradient */
	tensor_id saved[NODE_SAVED];   /* kept alive until the node has run */
	tensor_id *buf;                /* gradients of the nout outputs, as they arrive */
	uint64_t iarg[4];              /* what the node remembers besides tensors */
	const size_ref *dims;
	int32_t region, scope;         /* checkpoint region (-1: none); layer scope */
	uint16_t deps;                 /* consumers that still owe a gradient */
	uint32_t nin, nout;
	uint8_t nsaved;
	bool ready, reachable;
	void (*on_grad)(void *ctx);    /* runs first, when a gradient has arrived; NULL: none */
};

/* Selective checkpointing: which op outputs a region keeps (torch.utils.checkpoint
 * create_selective_checkpoint_contexts).  Rows of sac_rows[] (sac.c); NULL: everything is recomputed. */
struct sac { const char *name, *doc; const char *const *ops; bool alternate_mm; };   /* ops: NULL-ended */
extern const struct sac sac_rows[];
extern const size_t nsac;
extern const char *const sac_ops[];    /* NULL-ended: ops that a policy may name */
bool sac_keeps(const struct sac *s, const char *op, uint32_t *matmuls);

struct slot { int32_t node; uint32_t index; };

/* A checkpointed stretch: emit(ctx, x) is the forward function. */
struct region {
	tensor_id (*emit)(void *ctx, tensor_id x);
	void *ctx;
	tensor_id x;                   /* the saved input */
	tensor_id kwargs[8]; size_t nkwarg;   /* what the closure refers to: alive as long as the region */
	VEC(struct slot) packs;        /* what its nodes save, in order */
	uint32_t packed, unpacked;
	bool recomputed, early_stop;
	const struct sac *sac;         /* selective: whose outputs are kept */
	VEC(tensor_id) kept;           /* in order of creation */
	size_t nused;
	uint32_t mm, mm_again;         /* matmuls seen, forward and recompute */
};

enum tape_mode {
	TAPE_RECORD,                   /* nodes and saved tensors */
	TAPE_REGION,                   /* nodes whose saved tensors will be recomputed */
	TAPE_RECOMPUTE,                /* fills the saved tensors of a region's nodes */
	TAPE_NOGRAD,                   /* ops only */
};

/* A parameter as one rank sees it. */
struct pslot {
	const char *name, *grad_label;
	tensor_id tensor;              /* what layers read: the parameter, or its gathered copy under FSDP */
	tensor_id local;               /* what the optimizer sees: the parameter, or its shard */
	tensor_id grad, local_grad;    /* NO_TENSOR: none yet */
	tensor_id kept;                /* gradient of earlier micro-batches, not yet reduced */
	tensor_id master;              /* wider copy that the optimizer updates; NO_TENSOR: none */
	const size_ref *dim; unsigned ndim;    /* of the whole parameter */
	tensor_id cast; uint32_t cast_epoch;   /* autocast's cached low-precision copy */
	tensor_id sum;                 /* gradient that waits for further uses (tied weights) */
	int32_t unit;                  /* FSDP unit; -1 */
	uint16_t uses;                 /* edges into its AccumulateGrad on this tape */
	bool trainable;
	uint64_t copies; size_ref ncopies;     /* layers it stands for */
	int32_t layer;
};

struct tape_hooks {
	void *ctx;
	void (*scope_enter)(void *ctx, int32_t scope);    /* backward is about to run the first node of a scope */
	void (*scope_leave)(void *ctx, int32_t scope);    /* and has run the last */
	void (*grad_ready)(void *ctx, struct pslot *p);   /* a parameter's gradient was accumulated */
	void (*finish)(void *ctx);                        /* all nodes have run; the loss gradient is still there */
};

struct tape {
	struct graph *g;
	struct arena *a;
	VEC(struct anode) nodes;
	VEC(struct region) regions;
	VEC(struct pslot) params;
	VEC(uint16_t) pending;         /* per storage: gradient buffers that hold it */
	enum tape_mode mode;
	int32_t region;                /* index, while in TAPE_REGION or TAPE_RECOMPUTE */
	struct anode sink;             /* stands for the nodes that TAPE_RECOMPUTE does not make */
	bool stopped;                  /* early stop: nothing is executed any more */
	size_t made;                   /* storages that were there by then */
	tensor_id leaf, leaf_grad;     /* nested run of a reentrant checkpoint: its detached input */
	struct pslot input;            /* an activation that was told to require a gradient; tensor NO_TENSOR: none */
	struct op dummy;               /* what tape_op returns after an early stop */
	bool autocast; enum dtype low; /* low-precision dtype */
	uint32_t cast_epoch;           /* an autocast context */
	VEC(tensor_id) casts;          /* cached by it */
	int32_t scope, layer;
	const char *label;             /* names the storages that are made now */
	const char *by;                /* optimization at work */
	const char *rule;
	int32_t cls;                   /* class for new storages; -1: from the context */
	size_ref vocab;                /* tensors with this last dimension are logits */
	struct tape_hooks hooks;
	bool in_backward;
	const struct sac *sac;         /* of regions made from now on */
	tensor_id kwargs[8]; size_t nkwarg;   /* of regions made from now on */
	bool reentrant;                /* some region is reentrant */
};

struct tape *tape_new(struct graph *g, struct arena *a);
/* Forgets the nodes (a new micro-batch); parameters stay. */
void tape_reset(struct tape *t);

/* ---- making tensors and ops */
tensor_id tape_tensor(struct tape *t, enum dtype dt, unsigned ndim, const size_ref *dims);   /* new storage, contiguous */
tensor_id tape_like(struct tape *t, tensor_id x, enum dtype dt);     /* new storage, x's shape and order of dimensions in memory */
tensor_id tape_scalar(struct tape *t, enum dtype dt);
/* Temporary inside one op, out of sight of the dispatcher: written by the op and by nothing else. */
tensor_id tape_workspace(struct tape *t, enum dtype dt, size_ref n);
struct op *tape_op(struct tape *t, const char *name, const tensor_id *reads, size_t nreads,
		   const tensor_id *writes, size_t nwrites);
struct op *tape_op1(struct tape *t, const char *name, tensor_id r0, tensor_id r1, tensor_id w);
void tape_hold(struct tape *t, tensor_id x);              /* Python still refers to x here */
void tape_holdv(struct tape *t, const tensor_id *x, size_t n);
static inline struct tensor *T(struct tape *t, tensor_id x) { return &t->g->tensors.v[x]; }

/* ---- nodes.  node_begin returns NULL when no input needs a gradient; the other two then do nothing. */
struct anode *node_begin(struct tape *t, const char *name, back_fn *back, const tensor_id *in, size_t nin);
void node_save(struct tape *t, struct anode *n, tensor_id x);   /* inputs before the op, outputs after it */
void node_end(struct tape *t, struct anode *n, const tensor_id *out, size_t nout);
void tape_on_grad(struct tape *t, tensor_id x, void (*fn)(void *ctx));   /* x.register_hook() */
tensor_id node_saved(struct tape *t, const struct anode *n, size_t i);   /* as current tensor (a parameter may have been gathered anew) */

/* ---- running */
tensor_id tape_checkpoint(struct tape *t, tensor_id (*emit)(void *, tensor_id), void *ctx, tensor_id x, bool early_stop);
tensor_id tape_checkpoint_reentrant(struct tape *t, tensor_id (*emit)(void *, tensor_id), void *ctx, tensor_id x);
/* Runs the engine from loss with a gradient of one.  */
void tape_backward(struct tape *t, tensor_id loss);
tensor_id tape_param(struct tape *t, int32_t param);      /* the tensor layers read */
void tape_require_grad(struct tape *t, tensor_id x);      /* x.requires_grad_(): x becomes a leaf whose gradient is kept */
void tape_drop_unused(struct tape *t, tensor_id root);    /* results that root does not depend on go, and what their nodes saved */
void tape_drop_input(struct tape *t);                     /* the graph goes, and with it that leaf */

#endif
