/*
 * SparseKit: dynamic sparse training.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A *masking* keeps named layers sparse while somebody else trains them. It is called between
 * optimiser steps: `step` after every one, `update` now and then, which prunes the weakest weights
 * and grows as many elsewhere. RigL in short:
 *
 *     #include <sparsekit/training.h>
 *
 *     spk_schedule *schedule = NULL;      // removes 30 % at first, less and less, none after 1000
 *     spk_schedule_create_cosine(0.3, 1000, 0.0, -1, &schedule);
 *     spk_masking_options options = {.struct_size = sizeof options, .seed = 1};
 *     options.grow = SPK_GROW_GRADIENT;
 *     options.dense_gradients = 1;        // updates leave the gradients and the momentum alone
 *     spk_masking *masking = NULL;
 *     spk_masking_create(schedule, &options, &masking);
 *     spk_masking_add(masking, "conv1", view, NULL);      // and the other layers, in this order
 *
 *     spk_layer layers[1] = {{.struct_size = sizeof(spk_layer)}};
 *     layers[0].weight = (spk_buffer){weights, numel, SPK_F32, SPK_LAYOUT_VIEW, NULL};
 *     layers[0].gradient = (spk_buffer){gradients, numel, SPK_F32, SPK_LAYOUT_VIEW, NULL};
 *     layers[0].mask = (spk_buffer){mask, numel, SPK_U8, SPK_LAYOUT_CONTIGUOUS, NULL};
 *     spk_init_options init = {.struct_size = sizeof init, .density = 0.1};
 *     init.mode = SPK_INIT_ERDOS_RENYI_KERNEL;            // the default leaves the first layer dense
 *     spk_masking_initialise(NULL, masking, layers, 1, &init);
 *     for (int64_t t = 1; t <= steps; ++t) {
 *       ...                                               // backward pass, optimiser step
 *       if (t % 100 == 0) spk_masking_update(NULL, masking, layers, 1, NULL);
 *       spk_masking_step(NULL, masking, layers, 1);
 *     }
 *
 * bindings/c/sparse_training.c is a whole program.
 *
 * The tour:
 *
 *     1. Schedules        which share of the weights an update removes
 *     2. Layers           what the caller brings for each layer
 *     3. Masking          modes, layers, callbacks
 *     4. Initialisation   the first masks
 *     5. Training         apply, step, update, and what they did
 *     6. Save and restore
 *
 * Rules of sparsekit.h hold here too. Further:
 *   - A schedule and a masking change as they are used: one call at a time for each, from any
 *     thread. (Views, blocks and scopes are immutable; these are not.)
 *   - All buffers are the caller's, and are brought with every call; the masking keeps counts,
 *     never pointers.
 *   - A layer's *nonzeros* are the ones of its keep mask, whatever values the weights have.
 *   - Where positions compete (pruned, grown, drawn), equal ones are settled by position, row-major
 *     in the shape of the view: the lower one is kept, or grown, first. NaN weights are kept, NaN
 *     gradients never grown.
 *   - A *kernel* is what the dimensions after the first two hold: (out, in) of them in a
 *     convolution's weights (out, in, kh, kw). Of a layer of rank 1 or 2 every element is one.
 *   - Where a rate meets a count, floor is taken of x (1 + 2^-50), ceil of x (1 - 2^-50), and
 *     rounding is half up.
 *   - Masks are the same for every thread count, executor and instruction set, and random ones on
 *     every machine: Philox 4x32-10 (Salmon et al., SC 2011) keyed by the seed, its counter being
 *     (layer, purpose, draw, index): the purpose is 0 at initialisation, 1 in growth; draws of a
 *     layer are counted from 0; places with the smallest first 64 bits of output are taken.
 */
#ifndef SPARSEKIT_TRAINING_H_
#define SPARSEKIT_TRAINING_H_

#include "sparsekit/sparsekit.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------
 * 1. Schedules
 * ------------------------------------------------------------------------------------------ */

/* A prune rate that changes with its position t, a number of steps. */
typedef struct spk_schedule spk_schedule;

/* eta_min + (prune_rate - eta_min) (1 + cos(pi t / t_max)) / 2 up to t_max, eta_min from there on.
 *   prune_rate   at t = 0; in [0, 1], and so is eta_min
 *   t_max        >= 1
 *   last_epoch   >= -1; the position starts at last_epoch + 1 */
SPK_API spk_status spk_schedule_create_cosine(double prune_rate, int64_t t_max, double eta_min,
                                              int64_t last_epoch, spk_schedule **out);
/* prune_rate (1 - t / t_max), never below 0. The position starts at 0. */
SPK_API spk_status spk_schedule_create_linear(double prune_rate, int64_t t_max, spk_schedule **out);
/* Gradual magnitude pruning (Zhu and Gupta, 2017): the sparsity to have reached at t is
 *     s(t) = final + (initial - final) (1 - (t - t_start) / (t_max - t_start))^3
 * from t_start to t_max, initial before, final after. The rate is max(0, s(t) - s(t - interval)).
 * A masking uses its own sparsity in place of s(t - interval), and its rate is a share of *all*
 * weights: what it prunes in total brings it to s(t) exactly. It goes with SPK_GROW_NONE; other
 * growth brings back what was pruned.
 *   initial, final   sparsities in [0, 1]
 *   t_start          >= 0, < t_max
 *   interval         >= 1: steps from one update to the next
 * The position starts at 0. */
SPK_API spk_status spk_schedule_create_magnitude(double initial, double final, int64_t t_max,
                                                 int64_t t_start, int64_t interval,
                                                 spk_schedule **out);
/* The caller's own: sets *rate, in [0, 1], for position t. Non-zero return cancels the call that
 * asked. */
typedef int32_t (*spk_schedule_fn)(void *user, int64_t t, double *rate);
SPK_API spk_status spk_schedule_create_custom(spk_schedule_fn fn, void *user, spk_schedule **out);

SPK_API void spk_schedule_retain(spk_schedule *schedule);
SPK_API void spk_schedule_release(spk_schedule *schedule);

/* Moves the position on by one; or to t >= 0. */
SPK_API spk_status spk_schedule_step(spk_schedule *schedule);
SPK_API spk_status spk_schedule_step_to(spk_schedule *schedule, int64_t t);
/* The position; -1 for NULL. */
SPK_API int64_t spk_schedule_position(const spk_schedule *schedule);
/* The rate at the position. */
SPK_API spk_status spk_schedule_rate(const spk_schedule *schedule, double *rate);
/* Magnitude only: the rate if the sparsity is `current` (in [0, 1]), max(0, s(position) - current);
 * and s(t) for any t. */
SPK_API spk_status spk_schedule_rate_from(const spk_schedule *schedule, double current,
                                          double *rate);
SPK_API spk_status spk_schedule_cumulative_sparsity(const spk_schedule *schedule, int64_t t,
                                                    double *sparsity);

/* ------------------------------------------------------------------------------------------
 * 2. Layers
 * ------------------------------------------------------------------------------------------ */

/* What the caller brings for one layer. A buffer whose `data` is NULL is not given; zeroed fields
 * mean that.
 *   weight         the layer's dtype; laid out as the view says, or otherwise (SPK_LAYOUT_...)
 *   mask           keep mask, SPK_U8, contiguous in the shape of the view
 *   gradient       any float dtype, as the last backward pass left it
 *   momentum       SGD's momentum buffer, any float dtype; or
 *   adam_m1, m2    Adam's first and second moments, both or none; the momentum is then
 *                  m1 / (sqrt(m2) + 1e-8), in double; not besides `momentum` where it is read
 * Gradient, momentum and moments may have layouts of their own, as values have. No two buffers of a
 * call may share bytes. */
typedef struct spk_layer {
  size_t struct_size; /* sizeof(spk_layer) */
  spk_buffer weight;
  spk_buffer mask;
  spk_buffer gradient;
  spk_buffer momentum;
  spk_buffer adam_m1;
  spk_buffer adam_m2;
} spk_layer;

/* Every call that takes `layers` takes one for each id that spk_masking_add gave, in that order:
 * `nlayers` = spk_masking_layer_count. Those of removed layers are ignored and may be zeroed. Layers
 * of equal shape that are brought in another order cannot be told apart. */

/* ------------------------------------------------------------------------------------------
 * 3. Masking
 * ------------------------------------------------------------------------------------------ */

typedef struct spk_masking spk_masking;

/* Which weights an update removes, of a layer with rate r and z nonzeros. */
#define SPK_PRUNE_MAGNITUDE 0             /* ceil(r z) smallest |w| of the layer */
#define SPK_PRUNE_GLOBAL_MAGNITUDE 1      /* ceil(r baseline) smallest |w| of all layers together */
#define SPK_PRUNE_STRUCT_MAGNITUDE_MEAN 2 /* ceil(r z / kernel) kernels, smallest |mean w| */
#define SPK_PRUNE_STRUCT_MAGNITUDE_MAX 3  /* ..., smallest |max w| */
#define SPK_PRUNE_STRUCT_MAGNITUDE_MIN 4  /* ..., smallest |min w| */
#define SPK_PRUNE_STRUCT_CRITERION 5      /* ..., smallest |prune_criterion(w)| */
#define SPK_PRUNE_CALLBACK 6              /* what prune_fn clears in the mask */

/* How the places that became free are shared among layers: in proportion to a statistic. */
#define SPK_REDISTRIBUTE_NONE 0     /* each layer regrows what it lost */
#define SPK_REDISTRIBUTE_NONZERO 1  /* the same; the statistic, nonzeros, is told */
#define SPK_REDISTRIBUTE_MOMENTUM 2 /* mean |momentum| over active weights */
#define SPK_REDISTRIBUTE_GRADIENT 3 /* mean |gradient| over active weights */
#define SPK_REDISTRIBUTE_CALLBACK 4 /* what statistic_fn says */

/* Which of the inactive places grow; new weights start at 0. */
#define SPK_GROW_NONE 0                 /* none is asked for */
#define SPK_GROW_RANDOM 1               /* uniform */
#define SPK_GROW_GRADIENT 2             /* largest |gradient| */
#define SPK_GROW_MOMENTUM 3             /* largest |momentum|; needs dense_gradients */
#define SPK_GROW_STRUCT_GRADIENT_MEAN 4 /* whole kernels, largest |mean gradient| */
#define SPK_GROW_STRUCT_GRADIENT_MAX 5  /* ..., largest |max gradient| */
#define SPK_GROW_STRUCT_GRADIENT_MIN 6  /* ..., largest |min gradient| */
#define SPK_GROW_STRUCT_CRITERION 7     /* ..., largest |grow_criterion(gradient)| */
#define SPK_GROW_CALLBACK 8             /* what grow_fn sets in the mask */

/* The caller's modes. `layers` is what the call was given; `layer` is an id. They may read the
 * masking, but not change it. A non-zero return cancels the update: masks stay as far as they came,
 * the masking's counts follow them, and no statistic of the update is kept. */

/* Clears mask bytes of one layer: `requested` = ceil(rate z) of them, or as many as it likes. */
typedef int32_t (*spk_prune_fn)(void *user, const spk_masking *masking, const spk_layer *layers,
                                int32_t layer, double rate, int64_t requested);
/* Sets mask bytes of one layer, `requested` of them or as many as it likes; may set the weights
 * there, which are 0. */
typedef int32_t (*spk_grow_fn)(void *user, const spk_masking *masking, const spk_layer *layers,
                               int32_t layer, int64_t requested);
/* Sets *statistic of one layer: finite and >= 0, else the update is refused. */
typedef int32_t (*spk_statistic_fn)(void *user, const spk_masking *masking, const spk_layer *layers,
                                    int32_t layer, double *statistic);
/* Criteria of kernels are spk_reduce_fn: block_index counts kernels, row-major in (out, in). */

/* Zeroed fields mean the default. Functions belong to the modes that name them, and are refused
 * with others. */
typedef struct spk_masking_options {
  size_t struct_size; /* sizeof(spk_masking_options) */
  uint64_t seed;
  int32_t prune;           /* SPK_PRUNE_... */
  int32_t redistribute;    /* SPK_REDISTRIBUTE_... */
  int32_t grow;            /* SPK_GROW_... */
  int32_t dense_gradients; /* 1: momentum, moments and gradients are never masked. 0 zeroes them
                              where the mask is 0, in steps (momentum and moments) and in updates
                              (gradients too): for optimisers that must not move dead weights */
  spk_prune_fn prune_fn;
  void *prune_user;
  spk_reduce_fn prune_criterion;
  void *prune_criterion_user;
  spk_statistic_fn statistic_fn;
  void *statistic_user;
  spk_grow_fn grow_fn;
  void *grow_user;
  spk_reduce_fn grow_criterion;
  void *grow_criterion_user;
} spk_masking_options;

/* Creates a masking without layers. It retains `schedule`, and moves it on in every step.
 *   options   may be NULL: magnitude, none, none, that is pruning only */
SPK_API spk_status spk_masking_create(spk_schedule *schedule, const spk_masking_options *options,
                                      spk_masking **out);
SPK_API void spk_masking_retain(spk_masking *masking);
SPK_API void spk_masking_release(spk_masking *masking);

/* Adds a layer, before initialisation. The view is kept alive.
 *   name   copied; unique among all ever added, not empty
 *   id     0, 1, 2, ... in the order of adding; an id is never used again. May be NULL */
SPK_API spk_status spk_masking_add(spk_masking *masking, const char *name, const spk_view *view,
                                   int32_t *id);
/* Removes the layer of this name; or all whose names contain `part`, which is not empty. Their masks
 * are left alone.
 * The baseline becomes the nonzeros that the remaining layers had when last counted.
 *   removed   may be NULL; how many. None is an error */
SPK_API spk_status spk_masking_remove(spk_masking *masking, const char *name);
SPK_API spk_status spk_masking_remove_matching(spk_masking *masking, const char *part,
                                               int32_t *removed);

/* Facts. Layers ever added; the id of a layer (-1 if there is none of this name); its name and view
 * (borrowed; NULL if there is no such id); 1 while it belongs to the masking, 0 after it left. */
SPK_API int32_t spk_masking_layer_count(const spk_masking *masking);
SPK_API int32_t spk_masking_find(const spk_masking *masking, const char *name);
SPK_API const char *spk_masking_layer_name(const spk_masking *masking, int32_t layer);
SPK_API const spk_view *spk_masking_layer_view(const spk_masking *masking, int32_t layer);
SPK_API int32_t spk_masking_has_layer(const spk_masking *masking, int32_t layer);
/* The schedule, borrowed. */
SPK_API spk_schedule *spk_masking_schedule(const spk_masking *masking);

/* ------------------------------------------------------------------------------------------
 * 4. Initialisation
 * ------------------------------------------------------------------------------------------ */

/* n_l are the elements of layer l. */
#define SPK_INIT_RANDOM 0      /* the density in every layer but the first, which leaves, dense */
#define SPK_INIT_ERDOS_RENYI 1 /* density ~ (n_out + n_in) / (n_out n_in) (Mocanu, 2018) */
#define SPK_INIT_ERDOS_RENYI_KERNEL 2 /* density ~ sum of dims / product of dims (Evci, 2020) */
#define SPK_INIT_STRUCT_RANDOM 3      /* as RANDOM, ERDOS_RENYI, ...: whole kernels, */
#define SPK_INIT_STRUCT_ERDOS_RENYI 4 /* in layers of rank > 2; those of rank 2 leave, dense, and */
#define SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL 5 /* the others make up for it */
#define SPK_INIT_RESUME 6                    /* mask = (weight != 0) */
#define SPK_INIT_LOTTERY_TICKET 7            /* masks as the caller set them */
#define SPK_INIT_LOTTERY_TICKET_DIST 8       /* given counts, positions drawn */

#define SPK_DRAW_EXACT 0     /* round(density n_l) ones; round(density kernels) kernels */
#define SPK_DRAW_BERNOULLI 1 /* each place with this probability */

/* Erdos-Renyi densities are eps p_l, where p_l is the raw density above and
 *     eps = (sum over sparse l of floor(density n_l) - sum over dense l of floor((1-density) n_l))
 *           / sum over sparse l of p_l n_l;
 * while eps max p_l > 1, the layers with the largest p_l become dense and eps is solved again; if
 * none is left, all are dense. Rank < 2 is refused. The structured modes give layers of rank > 2 the
 * density (density (n_conv + n_fc) - n_fc) / n_conv, n_conv being their elements and n_fc those of
 * the layers that leave (the first only if its rank is 2); an unreachable one is refused, and so is
 * rank < 2. Layers that left at an earlier initialisation stay out, and count as if they left now.
 *
 * Zeroed fields mean the default. */
typedef struct spk_init_options {
  size_t struct_size;    /* sizeof(spk_init_options) */
  double density;        /* in [0, 1]; no default: 0 zeroes the weights. Not read by RESUME and
                            LOTTERY_TICKET... */
  int32_t mode;          /* SPK_INIT_... */
  int32_t draw;          /* SPK_DRAW_...; modes that draw */
  const int64_t *counts; /* LOTTERY_TICKET_DIST: ones of each id's layer */
  int64_t ncounts;       /* = spk_masking_layer_count */
} spk_init_options;

/* Writes the masks (of layers that leave too: all ones), applies them to the weights, and takes the
 * nonzeros as the baseline. May be called again, which draws afresh.
 * Layers of removed ids are ignored. */
SPK_API spk_status spk_masking_initialise(spk_context *context, spk_masking *masking,
                                          const spk_layer *layers, int32_t nlayers,
                                          const spk_init_options *options);

/* The densities that initialisation would give, without masks: for views of the layers alone.
 *   densities   one per id; 1 for layers that would leave, 0 for those that left before
 * Modes that draw by density only. */
SPK_API spk_status spk_masking_densities(const spk_masking *masking,
                                         const spk_init_options *options, double *densities,
                                         int32_t ndensities);

/* ------------------------------------------------------------------------------------------
 * 5. Training
 * ------------------------------------------------------------------------------------------ */

#define SPK_APPLY_WEIGHTS 1
#define SPK_APPLY_MOMENTUM 2  /* momentum and moments, where given */
#define SPK_APPLY_GRADIENTS 4 /* where given */

/* Zeroes what the masks forbid, in the buffers that `what` names (the sum of SPK_APPLY_...). */
SPK_API spk_status spk_masking_apply(spk_context *context, const spk_masking *masking,
                                     const spk_layer *layers, int32_t nlayers, int32_t what);

/* After an optimiser step: applies the masks to weights and, unless dense_gradients, to momentum and
 * moments; moves the schedule on. An update before the k-th step therefore reads the schedule at
 * position k - 1, and the last update should not come before the schedule's t_max. */
SPK_API spk_status spk_masking_step(spk_context *context, spk_masking *masking,
                                    const spk_layer *layers, int32_t nlayers);

/* What an update did, all layers together. Set struct_size first; may be NULL. Counts are elements;
 * requests of whole kernels are kernels times their size. */
typedef struct spk_update_report {
  size_t struct_size;
  double rate; /* of the schedule; a magnitude schedule's is of all weights */
  int64_t requested_removed;
  int64_t removed;
  int64_t
      requested_grown; /* removed + round(adjusted growth), or what redistribution could place */
  int64_t grown;
  int64_t nonzeros; /* now */
  int64_t residual; /* baseline - nonzeros */
} spk_update_report;

/* Prunes and grows.
 *
 * 1. The statistic of each layer, normalised over layers; 0 for one that is empty or has none.
 * 2. Rates: the schedule's. A layer with sparsity < 0.2 whose statistic is above 1 / layers takes
 *    min(sparsity, rate); not with a magnitude schedule.
 * 3. Prune. With a magnitude schedule ceil(rate n) of all n weights, in proportion to the layers'
 *    sizes, none losing more than it has (with GLOBAL_MAGNITUDE, by the one selection).
 * 4. Redistribute: T = max(0, removed + round(adjusted growth)) places, s_l T each, none above
 *    floor(0.99 inactive); what is over goes in equal shares to layers below their cap, fractions by
 *    largest remainder, lower id first: the total is exact. In whole kernels where growth is, and
 *    as many as fit. Each layer regrows what it lost if no layer has a statistic.
 * 5. Grow, from places that are inactive then, those just pruned included.
 * 6. Masks are applied: to weights, and unless dense_gradients to momentum and gradients.
 * 7. residual = baseline - nonzeros; adjusted growth <- adjusted growth / 4 + 3/4 residual + mean of
 *    all residuals so far.
 *
 * Buffers that a mode reads must be given for every layer, else SPK_INVALID_ARGUMENT names the first
 * that is missing. Scores are kept for one layer at a time (as many bytes as its weights or
 * gradients, 8 per element for random growth and Adam's momentum; for GLOBAL_MAGNITUDE those of all
 * layers, 8 per element if their dtypes differ). */
SPK_API spk_status spk_masking_update(spk_context *context, spk_masking *masking,
                                      const spk_layer *layers, int32_t nlayers,
                                      spk_update_report *report);

/* One layer, or all of them. Set struct_size first. Counts are those of the last call that counted:
 * initialisation, update or restore; before that all are nonzeros. */
typedef struct spk_layer_stats {
  size_t struct_size;
  int64_t numel;
  int64_t nonzeros;
  int64_t zeros;
  double density;            /* nonzeros / numel */
  double requested_density;  /* at initialisation; before it 1 */
  double statistic;          /* normalised, at the last update (the "variance" of SNFS) */
  double rate;               /* at the last update */
  int64_t requested_removed; /* at the last update */
  int64_t removed;
  int64_t requested_grown;
  int64_t grown;
} spk_layer_stats;

SPK_API spk_status spk_masking_layer_stats(const spk_masking *masking, int32_t layer,
                                           spk_layer_stats *stats);
/* Sums over the layers that belong; densities and rate are means, weighted by numel. */
SPK_API spk_status spk_masking_stats(const spk_masking *masking, spk_layer_stats *stats);
/* The nonzeros that growth aims for; those of initialisation, under gradual pruning too, where
 * residual and adjusted growth grow without meaning. */
SPK_API int64_t spk_masking_baseline(const spk_masking *masking);
/* What the next update adds to the places that it hands out; NaN for NULL. */
SPK_API double spk_masking_adjusted_growth(const spk_masking *masking);

/* ------------------------------------------------------------------------------------------
 * 6. Save and restore
 * ------------------------------------------------------------------------------------------ */

/* Writes the whole state: seed, modes, layers, counts, draws, growth, and the schedule's position.
 * Masks and weights are the caller's to save.
 *   blob       receives the bytes; NULL asks for the length only
 *   capacity   bytes at blob; too few is refused, and nothing is written
 *   length     may be NULL; the bytes needed
 * The same bytes on every machine. */
SPK_API spk_status spk_masking_save(const spk_masking *masking, void *blob, size_t capacity,
                                    size_t *length);

/* Takes up a saved state, so that training goes on bit for bit, given the same buffers. The masking
 * must have been made with the same modes and kind of schedule, and its layers must be those that
 * were added to the saved one: same names, dtypes and shapes, same order. Layers that had left leave.
 * A blob of another version, a damaged one or one that does not fit is refused, nothing changed. */
SPK_API spk_status spk_masking_restore(spk_masking *masking, const void *blob, size_t length);

#ifdef __cplusplus
}
#endif

#endif /* SPARSEKIT_TRAINING_H_ */
