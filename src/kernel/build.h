/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * One training program in the making: what emitters share.  A layer instance
 * is one decoder layer in the graph; it stands for `times` like layers. */
#ifndef MEMPLAN_BUILD_H
#define MEMPLAN_BUILD_H

#include "kernel/aten/aten.h"
#include "kernel/kernel.h"
#include "kernel/params.h"

/* What optimizations decide before the step is traced (opt rows write it, step.c and emitters obey). */
enum checkpointing { CKPT_NONE, CKPT_FULL, CKPT_SELECTIVE };
struct recipe {
	enum checkpointing checkpoint;
	bool reentrant;
	struct sac sac;                        /* selective: ops NULL recomputes everything */
	uint64_t checkpoint_layers;            /* the first n layers; 0: all */
	uint64_t checkpoint_every;             /* one layer in n; 0, 1: each */
	uint64_t loss_chunks, loss_chunk_rows; /* chunked loss: number of chunks, or rows of one; 0: off */
	bool loss_checkpoint;                  /* each chunk's head and loss are recomputed */
	bool unroll;                           /* every layer in the graph, none standing for others (tests) */
};

/* Tensors that outlive the layer that made them and die in the next one: the residual stream, what else a layer
 * returned, the last all-gather output, the last reduce-scatter input, outputs that were gathered ahead. */
enum { MAX_PENDING = 16 };
enum { STATE_STREAM, STATE_RETURNED, STATE_GATHERED, STATE_REDUCED, STATE_PENDING, NSTATE = STATE_PENDING + MAX_PENDING };

struct layer {                                 /* ctx of the layer emitter */
	struct build *b;
	uint64_t index, times;                 /* layers index, index + period, ... */
	uint32_t period;
	int32_t group;
	size_t first_param, nparam;            /* of tape.params */
	bool sliding;
};

/* What the model's forward makes once and every layer reads. */
struct shared_inputs {
	tensor_id position_ids;
	tensor_id cos[2], sin[2];              /* [1]: local rotary embedding, where the model has two */
	tensor_id mask[2];                     /* attention masks: full, sliding; NO_TENSOR: the kernel is causal by itself */
	tensor_id alibi;
};

struct param_range { size_t first, n; };       /* of tape.params */

struct build {
	const struct spec *spec;
	const struct model *m;
	struct arena *a;
	struct graph *g;
	struct tape *t;
	struct recipe recipe;
	struct model_dims d;
	size_ref B, S;                         /* micro-batch, sequence length */
	size_ref rotary;                       /* rotated part of a head */
	tensor_id embed_scale;                 /* buffer; NO_TENSOR: none */
	enum dtype dtype;                      /* of parameters as layers read them */
	tensor_id pixels, patch_ids;           /* vision towers: the batch, the positions of its patches */
	tensor_id corners, corner_weights, image_ends, inv_freq;       /* Qwen3-VL's */
	VEC(tensor_id) results;                /* theirs besides the hidden states */
	struct param_range outer[2];           /* parameters outside the layers: before and after them */
	struct layer *layers; size_t nlayer;   /* instances */
	uint64_t *frozen;                      /* by decoder layer: which parameters are frozen; NULL: none */
	struct shared_inputs in;
	tensor_id ids, labels, batch_positions;
	tensor_id angles[2];                   /* rotary caches, where the rope row keeps them as buffers */
	tensor_id logits, whole_loss;          /* of the micro-batch at hand; the loss before it is divided */
	bool unroll;                           /* every layer in the graph (tests) */
	struct prog *at;                       /* where the program grows */
	struct prog *body;                     /* of the layer run at hand */
	tensor_id *layer_in, *layer_out;       /* per instance, of the micro-batch at hand */
	tensor_id weights;                     /* attention probabilities that the layer at hand has a name for */
	tensor_id outer_state[NSTATE], state[NSTATE];   /* what one layer's run hands to the next */
	int32_t micro;
	tensor_id loss_scale;                  /* of the gradient scaler; NO_TENSOR: none */
	VEC(tensor_id) to_end;                 /* what lives as long as the program */
	const struct data_parallel *dp;
	void *dp_state; size_ref dp_ranks;     /* its own */
	bool reduces;                          /* this micro-batch's gradients are summed over the ranks */
	VEC(tensor_id) until_backward_end;
	tensor_id buckets;                     /* DDP: flat buffers of gradients */
};

/* Parameters by name; NO_TENSOR when the model has none of that name. */
tensor_id layer_param(struct layer *l, const char *name);
tensor_id outer_param(struct build *b, const char *name);

/* ---- emitters by logical operation; a kernel row's `emit` has the type of its operation */
typedef tensor_id norm_fn(struct build *b, tensor_id x, tensor_id weight, tensor_id bias);
typedef tensor_id mlp_fn(struct layer *l, tensor_id x);
struct attention_in { tensor_id q, k, v, mask; bool causal; double dropout, softcap; };
typedef tensor_id attention_fn(struct build *b, const struct attention_in *x);       /* -> [B,S,H,d] */
typedef void rope_fn(struct build *b, tensor_id *q, tensor_id *k, tensor_id cos, tensor_id sin);
/* Where tokens go: [tokens, k] weights and numbers of experts. */
struct routing { tensor_id logits, weights, index; };
typedef tensor_id experts_fn(struct layer *l, tensor_id x, const struct routing *r);   /* x: [tokens, h] */
typedef tensor_id loss_fn(struct build *b, tensor_id hidden, tensor_id head, tensor_id head_bias);

tensor_id emit_norm(struct build *b, const char *label, tensor_id x, tensor_id weight, tensor_id bias);  /* norm.c */
tensor_id emit_layer_norm(struct layer *l, const char *name, tensor_id x);           /* decoder.c: a norm of the layer, by its module's name */
tensor_id emit_linear(struct layer *l, const char *name, tensor_id x);               /* linear.c: "mlp.up_proj", with its adapter */
tensor_id emit_conv1d(struct layer *l, const char *name, tensor_id x);               /* linear.c: a transformers Conv1D */
tensor_id emit_linear_apart(struct layer *l, const char *name, tensor_id x);         /* linear.c: its bias is added apart (Falcon) */
tensor_id product_then_bias(struct tape *t, tensor_id x, tensor_id weight, tensor_id bias);   /* linear.c */
tensor_id emit_act(struct build *b, tensor_id x);                                   /* mlp.c: the model's activation */
tensor_id emit_mlp(struct layer *l, tensor_id x);                                   /* mlp.c */
tensor_id emit_moe(struct layer *l, tensor_id x);                                   /* moe.c: router, experts, shared experts */
tensor_id emit_latent_attention(struct layer *l, tensor_id x);                      /* mla.c */
tensor_id emit_attention_block(struct layer *l, tensor_id x);                        /* attention.c: projections in to projection out */
tensor_id emit_attention(struct build *b, const struct attention_in *x);            /* attention.c: the chosen row */
void emit_rope(struct build *b, tensor_id *q, tensor_id *k, bool sliding);          /* rope.c */
bool local_angles(const struct build *b, bool sliding);     /* rope.c: whether such a layer has cos and sin of its own */
/* modeling_phi.py: the class itself cuts, rotates and joins q and k, and keeps the rotated parts. */
struct rotated { tensor_id q, k, q_front, k_front; };
struct rotated emit_rope_part(struct build *b, tensor_id q, tensor_id k);           /* rope.c */
size_ref rotary_width(struct build *b);                                             /* rope.c */
void add_angles(struct build *b, unsigned kinds);                                   /* rope.c: its buffers */
void emit_position_ids(struct build *b);                                            /* rope.c */
void emit_rotary(struct build *b, tensor_id embedded, unsigned kinds);              /* rope.c: cos and sin, one pair or two */
tensor_id emit_alibi(struct build *b, tensor_id ones, enum dtype slope_type, enum dtype dt);   /* alibi.c: ones [B,S] */
void emit_masks(struct build *b, tensor_id embedded);                               /* mask.c: in the dtype of the embeddings */
/* What a causal mask is combined with: nothing; a window; a function of the class; a padding mask [B,S]. */
enum mask_kind { MASK_CAUSAL, MASK_SLIDING, MASK_OVERLAID, MASK_PADDED };
tensor_id emit_bool_mask(struct build *b, enum mask_kind kind, tensor_id padding);                   /* mask.c: sdpa_mask() */
tensor_id emit_float_mask(struct build *b, enum mask_kind kind, tensor_id padding, enum dtype dt);   /* eager_mask(): 0 and lowest */
tensor_id emit_sdpa(struct build *b, const struct attention_in *x);                  /* attention.c: called by the class itself; heads as they are */
bool attention_is_eager(const struct build *b);                                     /* attention.c: the model's own matmul and softmax */
typedef tensor_id run_layers_fn(struct build *b, tensor_id x);
/* A model class: ids -> hidden states, one decoder layer, the buffers it registers (decoder.c). */
struct arch {
	tensor_id (*model)(struct build *b, run_layers_fn *run_layers);
	tensor_id (*layer)(struct layer *l, tensor_id x);
	void (*buffers)(struct build *b);
	const char *embedding, *head;          /* names of their weights; a tied head has none */
	bool eager_only;                       /* its attention is its own, whatever row is chosen */
	bool keeps_results;                    /* its loop has a name for all results of a layer until the next returns */
	/* Vision towers: the batch, what comes after a layer, the loss; NULL elsewhere. */
	void (*batch)(struct build *b);
	void (*after_layer)(struct layer *l, tensor_id x);
	tensor_id (*loss)(struct build *b, tensor_id hidden);
};
extern const struct arch arch_bloom, arch_falcon, arch_gpt2, arch_gptj, arch_neox, arch_phi, arch_clip, arch_siglip, arch_qwen3_tower;
const struct arch *arch_of(const struct model *m);                                  /* NULL: no emitters for this class */
void embedding_hook(struct build *b, tensor_id x);     /* decoder.c: the model's input embeddings have returned x */
tensor_id emit_layer(void *layer, tensor_id x);
tensor_id emit_model(struct build *b, run_layers_fn *run_layers);
/* A persistent buffer of the model, `copies` like ones (load.c). */
tensor_id add_buffer(struct build *b, const char *name, enum dtype dt, unsigned ndim, const size_ref *dims, uint64_t copies);
tensor_id add_input(struct build *b, const char *name, enum dtype dt, unsigned ndim, const size_ref *dims);   /* load.c: of the batch */
tensor_id emit_outer_norm(struct build *b, const char *name, tensor_id x);            /* arch_vision.c: modules outside the layers */
tensor_id emit_outer_linear(struct build *b, const char *name, tensor_id x);
tensor_id emit_square_loss(struct build *b, tensor_id hidden);                       /* arch_vision.c */
tensor_id emit_head_loss(struct build *b, tensor_id hidden);                        /* loss.c -> loss */

/* Names the storages made from here on. */
static inline void label(struct build *b, const char *name)
{
	b->t->label = name;
}

/* Sets the source of the rule that allocates what is made from here on; returns the one before. */
static inline const char *set_rule(struct build *b, const char *source)
{
	const char *old = b->t->rule;
	b->t->rule = source;
	return old;
}

#endif
