/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * memplan.predict/1: the prediction as a JSON document.  Fields are only
 * ever added; all sizes are integer bytes. */
#include "report/report.h"

enum { MAX_DIMENSIONS = 64 };

static void put_opt_int(struct json *j, const char *key, int n)
{
	if (n < 0)
		json_null(j, key);
	else
		json_int(j, key, n);
}

static void put_peak(struct json *j, const struct result *r)
{
	json_open(j, "peak", '{');
	json_uint(j, "allocated_bytes", r->allocated);
	if (r->reserved_known)
		json_uint(j, "reserved_bytes", r->reserved);
	else
		json_null(j, "reserved_bytes");
	json_uint(j, "process_bytes", r->process);
	json_str(j, "window", window_names[r->peak_window]);
	json_str(j, "op", r->peak_op);
	json_str(j, "step", r->peak_step > 1 ? "steady" : "first");
	put_opt_int(j, "micro_batch", r->peak_micro);
	put_opt_int(j, "layer", r->peak_layer);
	json_uint(j, "first_step_bytes", r->allocated_first);
	json_uint(j, "steady_step_bytes", r->allocated_steady);
	json_close(j, '}');
}

static void put_classes(struct json *j, const struct result *r)
{
	json_open(j, "by_class", '[');
	for (size_t i = 0; i < r->nclass; i++) {
		json_open(j, NULL, '{');
		json_str(j, "class", class_names[r->by_class[i].cls]);
		json_uint(j, "bytes", r->by_class[i].bytes);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_tensors(struct json *j, const struct result *r, const struct style *st)
{
	json_open(j, "by_tensor", '[');
	for (size_t i = 0; i < r->ntensor; i++) {
		const struct tensor_bytes *t = &r->by_tensor[i];
		json_open(j, NULL, '{');
		json_str(j, "name", t->name);
		json_str(j, "class", class_names[t->cls]);
		json_uint(j, "count", t->count);
		json_uint(j, "bytes", t->bytes);
		json_str(j, "formula", t->formula ? size_print(st->a, t->formula, true) : NULL);
		json_str(j, "by", t->by);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_step(struct json *j, const struct result *r, const char *key, bool steady)
{
	json_open(j, key, '{');
	json_open(j, "windows", '[');
	for (size_t i = 0; i < r->nwindow; i++) {
		const struct window_peak *w = &r->windows[i];
		if ((w->step > 1) != steady)
			continue;
		json_open(j, NULL, '{');
		json_str(j, "name", window_names[w->window]);
		put_opt_int(j, "micro_batch", w->micro);
		json_uint(j, "start_bytes", w->start);
		json_uint(j, "peak_bytes", w->peak);
		json_uint(j, "end_bytes", w->end);
		json_str(j, "op", w->peak_op >= 0 && r->graph ? r->graph->ops.v[w->peak_op].name : NULL);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

static void put_ranks(struct json *j, const struct result *r)
{
	json_open(j, "ranks", '[');
	for (size_t i = 0; i < r->nrank; i++) {
		json_open(j, NULL, '{');
		json_uint(j, "rank", r->ranks[i].rank);
		json_uint(j, "stage", r->ranks[i].stage);
		json_uint(j, "peak_allocated_bytes", r->ranks[i].peak_allocated);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_constants(struct json *j, const struct result *r)
{
	json_open(j, "constants", '[');
	for (size_t i = 0; i < r->nconstant; i++) {
		const struct used_constant *c = &r->constants[i];
		json_open(j, NULL, '{');
		json_str(j, "name", c->name);
		json_uint(j, "value", c->value);
		json_str(j, "provenance", provenance_names[c->prov]);
		json_str(j, "source", c->source);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void put_lists(struct json *j, const struct result *r)
{
	json_open(j, "saved_per_layer_bytes", '[');
	for (size_t i = 0; i < r->nlayer; i++)
		json_uint(j, NULL, r->saved_per_layer[i]);
	json_close(j, ']');
	json_open(j, "host", '{');
	json_uint(j, "pinned_bytes", r->host_pinned);
	json_uint(j, "pageable_bytes", r->host_pageable);
	json_close(j, '}');
	put_ranks(j, r);
	put_constants(j, r);
	json_open(j, "not_modelled", '[');
	for (size_t i = 0; i < r->nnot_modelled; i++)
		json_str(j, NULL, r->not_modelled[i]);
	json_close(j, ']');
}

/* The peak as an expression, and the value of every name in it. */
static void put_formula(struct json *j, const struct result *r, const struct style *st)
{
	size_ref dim[MAX_DIMENSIONS];
	size_t n = r->formula ? size_dims(r->formula, dim, MAX_DIMENSIONS) : 0;
	json_str(j, "formula", r->formula ? size_print(st->a, r->formula, true) : NULL);
	json_open(j, "dimensions", '{');
	for (size_t i = 0; i < n; i++)
		json_uint(j, dim[i]->dim, dim[i]->value);
	json_close(j, '}');
}

void predict_json(FILE *f, const struct result *r, const struct style *st)
{
	struct json j = { .f = f };
	json_open(&j, NULL, '{');
	json_str(&j, "schema", "memplan.predict/1");
	json_str(&j, "verdict", r->fits ? "fits" : "does_not_fit");
	json_uint(&j, "capacity_bytes", r->capacity);
	json_uint(&j, "limit_bytes", r->limit);
	json_open(&j, "model", '{');
	json_str(&j, "name", r->spec->model.name);
	json_uint(&j, "parameters", r->parameters);
	json_uint(&j, "trainable_parameters", r->trainable);
	json_close(&j, '}');
	put_peak(&j, r);
	put_classes(&j, r);
	put_tensors(&j, r, st);
	put_formula(&j, r, st);
	json_open(&j, "steps", '{');
	put_step(&j, r, "first", false);
	put_step(&j, r, "steady", true);
	json_close(&j, '}');
	put_lists(&j, r);
	json_str(&j, "advice", r->advice);
	json_close(&j, '}');
}
