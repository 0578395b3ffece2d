/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Head and loss over chunks of rows, so that the S x V logits are never whole. */
#include <stddef.h>

#include "kernel/build.h"
#include "opt/opt.h"

struct knobs { uint64_t chunks, chunk_size; bool checkpoint; };

enum { CHUNKS_MAX = 1024 };
static const struct field fields[] = {
	{ .name = "chunks", .type = FIELD_UINT, .offset = offsetof(struct knobs, chunks), .max = CHUNKS_MAX, .deflt = "0",
	  .doc = "number of chunks; 0: by chunk_size" },
	{ .name = "chunk_size", .type = FIELD_UINT, .offset = offsetof(struct knobs, chunk_size), .max = 1 << 24,
	  .deflt = "1024", .unit = "tokens", .doc = "tokens of one chunk, where chunks is 0" },
	{ .name = "checkpoint", .type = FIELD_BOOL, .offset = offsetof(struct knobs, checkpoint), .deflt = "true",
	  .doc = "recompute each chunk in backward; without it the log-probabilities of all chunks are kept" },
};

static void check(const struct spec *s, const void *k, struct loc loc, struct diag *d)
{
	const struct knobs *knobs = k;
	uint64_t tokens = mul_u64(s->train.micro_batch, s->train.seq_len);
	if (knobs->chunks == 0 && knobs->chunk_size == 0)
		diag_error(d, loc, "'chunk_loss' needs 'chunks' or 'chunk_size'");
	else if (knobs->chunks > tokens)
		diag_error(d, loc, "'chunk_loss.chunks' is more than the %llu tokens of a micro-batch",
			   (unsigned long long)tokens);
	else if (knobs->chunks == 0 && ceil_div_u64(tokens, knobs->chunk_size) > CHUNKS_MAX)
		diag_error(d, loc, "'chunk_loss.chunk_size' gives more than %d chunks", CHUNKS_MAX);
	if (s->model.vocab == 0)
		diag_error(d, loc, "%s has no head whose loss 'chunk_loss' could cut", s->model.name);
	if (s->kernel[K_LOSS] != 0)
		diag_error(d, loc, "'chunk_loss' computes the loss with kernels.loss: torch");
}

/* needs: the torch loss; leaves: head and loss traced chunk by chunk */
static void apply(struct recipe *r, const void *k)
{
	const struct knobs *knobs = k;
	r->loss_chunks = knobs->chunks;
	r->loss_chunk_rows = knobs->chunk_size;
	r->loss_checkpoint = knobs->checkpoint;
}

const struct opt opt_chunk_loss = {
	.name = "chunk_loss", .group = GROUP_BOUND,
	.summary = "head and cross entropy over chunks of tokens",
	.doc = "The hidden states are split into chunks; head, fp32 logits and loss run per chunk, and with "
	       "checkpoint each chunk is computed again in backward. Each chunk makes a full V x h gradient of the "
	       "head, and two of them meet when they are summed: that is the floor, so more chunks stop helping.",
	.fields = fields, .nfield = COUNT(fields), .knob_size = sizeof(struct knobs),
	.check = check, .apply = apply,
};
