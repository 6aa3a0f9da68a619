/*
 * The C interface with flat arguments: the functions that SWIG wraps, in every language.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * sparsekit.h speaks of structs that point to arrays of structs, which each language would have to
 * take apart by itself. Here an argument is a number, a text, a handle, a list of integers or a list
 * of buffers, so that a language implements few typemaps, once each (see sparsekit.i). The meaning of
 * each function is that of its namesake in sparsekit.h and training.h.
 *
 *   - Results are returned. A call that fails leaves its status and message with flat_error, where
 *     the language's %exception finds it.
 *   - An optional list (values, into, conditioners, ...) is not given if its count is 0.
 *   - A conditioned soft threshold that ran out of steps is no failure: its report says so.
 */
#ifndef SPARSEKIT_BINDINGS_FLAT_H_
#define SPARSEKIT_BINDINGS_FLAT_H_

#include <sparsekit/training.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef SWIG

/* Status and message of the wrapped call that is under way on this thread. */
typedef struct flat_error_state {
  spk_status status;
  char message[SPK_MESSAGE_SIZE];
} flat_error_state;

static __thread flat_error_state flat_error;

static void flat_begin(void) {
  flat_error.status = SPK_OK;
}

/* Remembers the first failure: what the library says of it is lost with the next. */
static int flat_ok(spk_status status) {
  if (status == SPK_OK || flat_error.status != SPK_OK) return status == SPK_OK;
  flat_error.status = status;
  spk_last_error_copy(flat_error.message, sizeof flat_error.message, NULL);
  return 0;
}

static int flat_refuse(spk_status status, const char *what, const char *got, const char *expected) {
  if (flat_error.status != SPK_OK) return 0;
  flat_error.status = status;
  snprintf(flat_error.message, sizeof flat_error.message, "%s: got %s, expected %s", what, got,
           expected);
  return 0;
}

/* Facts of the library have no status; those of a closed handle are refused here. */
static int flat_open(const void *handle, const char *what) {
  return handle != NULL ||
         flat_refuse(SPK_INVALID_ARGUMENT, what, "a closed one", "an open handle");
}

/* Whether so many were given as are needed. */
static int flat_as_many(const char *what, const char *unit, int32_t given, int32_t expected) {
  char got[32];
  char wanted[32];
  if (given == expected) return 1;
  snprintf(got, sizeof got, "%d %s", (int)given, unit);
  snprintf(wanted, sizeof wanted, "%d", (int)expected);
  return flat_refuse(SPK_SHAPE_MISMATCH, what, got, wanted);
}

static int flat_count(const char *what, int32_t given, int32_t expected) {
  return flat_as_many(what, "buffers", given, expected);
}

/* Whether an index is one of `count`; with a closed handle, which has none, nothing is said of it. */
static int flat_index(const char *what, int32_t index, int32_t count) {
  char got[32];
  char wanted[32];
  if (count < 0 || (index >= 0 && index < count)) return 1;
  snprintf(got, sizeof got, "%d", (int)index);
  snprintf(wanted, sizeof wanted, "0 to %d", (int)count - 1);
  return flat_refuse(SPK_OUT_OF_BOUNDS, what, got, wanted);
}

/* An optional list needs none or as many as there are leaves, members or layers. */
static int flat_optional(const char *what, int32_t given, int32_t expected) {
  return given == 0 || flat_count(what, given, expected);
}

/* Set by the typemap of `weights`, which are written in place unless `into` is given: whether one of
 * them is read-only. */
static __thread int flat_read_only;

static int flat_into(int32_t ninto, int32_t nweights) {
  const int read_only = flat_read_only;
  flat_read_only = 0;
  if (ninto == 0 && read_only)
    return flat_refuse(SPK_INVALID_ARGUMENT, "weights", "a read-only array",
                       "a writable one, or another to write into");
  return flat_optional("into", ninto, nweights);
}

static const spk_buffer *flat_given(const spk_buffer *buffers, int32_t count) {
  return count == 0 ? NULL : buffers;
}

#endif /* SWIG */

/* Lists of integers and of numbers that are returned. */
typedef struct flat_ints {
  int32_t count;
  int64_t values[2 * SPK_MAX_NDIM];
} flat_ints;

typedef struct flat_numbers {
  int32_t count;
  double values[16];
} flat_numbers;

/* A function of the caller's language: numbers in, one number out; non-zero cancels. `drop` gives
 * back what `user` holds, on any thread. All callbacks of the library are brought to this form:
 *     reduce, kernel criteria   the block's elements -> its number
 *     progress                  (done, total) -> non-zero to cancel
 *     schedule                  (t) -> rate
 *     prune                     (layer, rate, requested) -> ignored
 *     grow                      (layer, requested) -> ignored
 *     statistic                 (layer) -> statistic
 * The library borrows it: it must live as long as the context, schedule or masking that has it is
 * used. */
typedef int32_t (*flat_function)(void *user, const double *numbers, int64_t count, double *result);
typedef void (*flat_drop)(void *user);

typedef struct flat_callback {
#ifndef SWIG
  flat_function function;
  void *user;
  flat_drop drop;
#endif
} flat_callback;

#ifndef SWIG

/* Calls of the library that the function makes, and their failures, are its own: the call that is
 * under way has not failed by them. */
static int32_t flat_call(void *user, const double *numbers, int64_t count, double *result) {
  const flat_callback *callback = (const flat_callback *)user;
  const spk_status status = flat_error.status;
  const int32_t stop = callback->function(callback->user, numbers, count, result);
  flat_error.status = status;
  return stop;
}

static int32_t flat_call_reduce(void *user, int64_t block_index, const double *elements,
                                int64_t count, double *result) {
  (void)block_index;
  return flat_call(user, elements, count, result);
}

static int32_t flat_call_progress(void *user, int64_t done, int64_t total) {
  const double numbers[2] = {(double)done, (double)total};
  double stop = 0;
  return flat_call(user, numbers, 2, &stop) != 0 || stop != 0;
}

static int32_t flat_call_schedule(void *user, int64_t t, double *rate) {
  const double number = (double)t;
  return flat_call(user, &number, 1, rate);
}

static int32_t flat_call_prune(void *user, const spk_masking *masking, const spk_layer *layers,
                               int32_t layer, double rate, int64_t requested) {
  const double numbers[3] = {(double)layer, rate, (double)requested};
  double ignored = 0;
  (void)masking, (void)layers;
  return flat_call(user, numbers, 3, &ignored);
}

static int32_t flat_call_grow(void *user, const spk_masking *masking, const spk_layer *layers,
                              int32_t layer, int64_t requested) {
  const double numbers[2] = {(double)layer, (double)requested};
  double ignored = 0;
  (void)masking, (void)layers;
  return flat_call(user, numbers, 2, &ignored);
}

static int32_t flat_call_statistic(void *user, const spk_masking *masking, const spk_layer *layers,
                                   int32_t layer, double *statistic) {
  const double number = layer;
  (void)masking, (void)layers;
  return flat_call(user, &number, 1, statistic);
}

/* Orders as the library takes them; NULL if there are none. The caller frees. */
static int32_t *flat_axes(const int64_t *orders, int32_t norders) {
  int32_t *axes = norders == 0 ? NULL : (int32_t *)malloc((size_t)norders * sizeof *axes);
  if (norders != 0 && axes == NULL) flat_refuse(SPK_OUT_OF_MEMORY, "orders", "no memory", "some");
  for (int32_t i = 0; axes != NULL && i < norders; ++i)
    axes[i] = orders[i] < 0 || orders[i] > SPK_MAX_NDIM ? -1 : (int32_t)orders[i];
  return axes;
}

static flat_ints flat_list(const int64_t *values, int32_t count) {
  flat_ints list = {0, {0}};
  if (values == NULL || count < 0) return list;
  list.count = count;
  memcpy(list.values, values, (size_t)count * sizeof *values);
  return list;
}

/* total, requested, achieved, ties, not_converged */
static flat_ints flat_report(const spk_report *report) {
  const int64_t values[5] = {report->total, report->requested, report->achieved, report->ties,
                             report->not_converged};
  return flat_list(values, 5);
}

#define FLAT_REPORT \
  { sizeof(spk_report), 0, -1, 0, 0, 0 }

#endif /* SWIG */

/* --- library ------------------------------------------------------------------------------ */

static int32_t flat_version(void) {
  return spk_version();
}
static const char *flat_build_info(void) {
  return spk_build_info();
}
static int32_t flat_executor_available(int32_t executor) {
  return spk_executor_available(executor);
}
static int64_t flat_live_handles(void) {
  return spk_live_handles();
}
static const char *flat_status_string(int32_t status) {
  return spk_status_string(status);
}

/* Where the library finds an array's first element: bindings show with it that they do not copy. */
static int64_t flat_address(const spk_buffer *leaves, int32_t nleaves) {
  return flat_count("array", nleaves, 1) ? (int64_t)(intptr_t)leaves->data : 0;
}

/* --- contexts ----------------------------------------------------------------------------- */

static spk_context *flat_context_create(int32_t executor, int32_t threads,
                                        flat_callback *progress) {
  spk_context_options options = {sizeof options, executor, threads, NULL, NULL, NULL, NULL};
  spk_context *context = NULL;
  if (progress != NULL) {
    options.progress = flat_call_progress;
    options.progress_user = progress;
  }
  flat_ok(spk_context_create(&options, &context));
  return context;
}
static int32_t flat_context_executor(spk_context *context) {
  return spk_context_executor(context);
}
static int32_t flat_context_threads(spk_context *context) {
  return spk_context_threads(context);
}
static void flat_context_trim(spk_context *context) {
  flat_ok(spk_context_trim(context));
}

/* --- views -------------------------------------------------------------------------------- */

static spk_view *flat_view_create(int32_t dtype, const int64_t *shape, int32_t nshape,
                                  const int64_t *stride, int32_t nstride, int64_t offset) {
  spk_view *view = NULL;
  if (nstride != 0 && !flat_as_many("view stride", "numbers", nstride, nshape)) return NULL;
  flat_ok(spk_view_create(dtype, nshape, shape, nstride == 0 ? NULL : stride, offset, &view));
  return view;
}
static spk_view *flat_view_parse(int32_t dtype, const char *text) {
  spk_view *view = NULL;
  flat_ok(spk_view_parse(dtype, text, &view));
  return view;
}
static const char *flat_view_format(spk_view *view) {
  static __thread char text[2048];
  text[0] = 0;
  flat_ok(spk_view_format(view, text, sizeof text, NULL));
  return text;
}
static int32_t flat_view_dtype(spk_view *view) {
  flat_open(view, "view");
  return spk_view_dtype(view);
}
static flat_ints flat_view_shape(spk_view *view) {
  flat_open(view, "view");
  return flat_list(spk_view_shape(view), spk_view_ndim(view));
}
static flat_ints flat_view_stride(spk_view *view) {
  flat_open(view, "view");
  return flat_list(spk_view_stride(view), spk_view_ndim(view));
}
static int64_t flat_view_offset(spk_view *view) {
  flat_open(view, "view");
  return spk_view_offset(view);
}
static int64_t flat_view_numel(spk_view *view) {
  flat_open(view, "view");
  return spk_view_numel(view);
}
static int64_t flat_view_cosize(spk_view *view) {
  flat_open(view, "view");
  return spk_view_cosize(view);
}
/* `index` lists index tuples one after the other. */
static int64_t flat_view_linear_offset(spk_view *view, const int64_t *index, int32_t nindex) {
  int64_t offset = 0;
  if (!flat_open(view, "view")) return 0;
  if (!flat_as_many("index", "numbers", nindex, spk_view_ndim(view))) return 0;
  flat_ok(spk_view_linear_offset(view, index, 1, &offset));
  return offset;
}
/* row, col */
static flat_ints flat_view_to_param_rc(spk_view *view, const int64_t *index, int32_t nindex,
                                       int64_t num_cols) {
  int64_t at[2] = {0, 0};
  if (!flat_open(view, "view")) return flat_list(at, 2);
  if (flat_as_many("index", "numbers", nindex, spk_view_ndim(view)))
    flat_ok(spk_view_to_param_rc(view, index, 1, num_cols, &at[0], &at[1]));
  return flat_list(at, 2);
}
static spk_view *flat_view_block_view_of(spk_view *view, const int64_t *shape, int32_t nshape,
                                         int32_t reorder) {
  spk_view *result = NULL;
  flat_ok(spk_view_block_view_of(view, nshape, shape, reorder, &result));
  return result;
}
static void flat_view_block_view_merged(spk_context *context, spk_view *view,
                                        const spk_buffer *leaves, int32_t nleaves,
                                        const int64_t *shape, int32_t nshape, const spk_buffer *out,
                                        int32_t nout) {
  if (flat_count("leaf", nleaves, 1) && flat_count("out", nout, 1))
    flat_ok(spk_view_block_view_merged(context, view, leaves, nshape, shape, out));
}
static void flat_view_broadcast_block_to_element(spk_context *context, spk_view *view,
                                                 const int64_t *shape, int32_t nshape,
                                                 const spk_buffer *values, int32_t nvalues,
                                                 const spk_buffer *out, int32_t nout) {
  if (flat_count("values", nvalues, 1) && flat_count("out", nout, 1))
    flat_ok(spk_view_broadcast_block_to_element(context, view, nshape, shape, values, out));
}
static void flat_view_apply_mask(spk_context *context, spk_view *view, const spk_buffer *weights,
                                 int32_t nweights, const spk_buffer *into, int32_t ninto,
                                 const int64_t *shape, int32_t nshape, const spk_buffer *prune_mask,
                                 int32_t nprune_mask) {
  if (flat_count("weights", nweights, 1) && flat_into(ninto, nweights) &&
      flat_count("prune mask", nprune_mask, 1))
    flat_ok(spk_view_apply_mask(context, view, weights, flat_given(into, ninto), nshape, shape,
                                prune_mask));
}
static void flat_view_apply_keep_mask(spk_context *context, spk_view *view,
                                      const spk_buffer *weights, int32_t nweights,
                                      const spk_buffer *into, int32_t ninto, const int64_t *shape,
                                      int32_t nshape, const spk_buffer *keep_mask,
                                      int32_t nkeep_mask) {
  if (flat_count("weights", nweights, 1) && flat_into(ninto, nweights) &&
      flat_count("keep mask", nkeep_mask, 1))
    flat_ok(spk_view_apply_keep_mask(context, view, weights, flat_given(into, ninto), nshape, shape,
                                     keep_mask));
}
static void flat_view_apply_multiplier(spk_context *context, spk_view *view,
                                       const spk_buffer *weights, int32_t nweights,
                                       const spk_buffer *into, int32_t ninto, const int64_t *shape,
                                       int32_t nshape, const spk_buffer *multiplier,
                                       int32_t nmultiplier) {
  if (flat_count("weights", nweights, 1) && flat_into(ninto, nweights) &&
      flat_count("multiplier", nmultiplier, 1))
    flat_ok(spk_view_apply_multiplier(context, view, weights, flat_given(into, ninto), nshape,
                                      shape, multiplier));
}

/* --- blocks ------------------------------------------------------------------------------- */

static spk_block *flat_block_create(spk_view *view, const int64_t *shape, int32_t nshape,
                                    const char *name) {
  spk_block *block = NULL;
  flat_ok(spk_block_create(view, nshape, shape, name, &block));
  return block;
}
/* `orders` lists a permutation per member, one after the other; none = identities. */
static spk_block *flat_block_couple(spk_block *const *members, int32_t nmembers,
                                    const int64_t *orders, int32_t norders, const char *name) {
  spk_block *block = NULL;
  const int32_t ndim = nmembers > 0 ? spk_block_grid_ndim(members[0]) : 0;
  /* Without a first member, or with a closed one, the members are refused. */
  if (norders != 0 && ndim > 0 && !flat_as_many("orders", "axes", norders, nmembers * ndim))
    return NULL;
  int32_t *axes = flat_axes(orders, norders);
  if (flat_error.status == SPK_OK) flat_ok(spk_block_couple(members, nmembers, axes, name, &block));
  free(axes);
  return block;
}
static const char *flat_block_name(spk_block *block) {
  return flat_open(block, "block") ? spk_block_name(block) : "";
}
static flat_ints flat_block_grid_shape(spk_block *block) {
  flat_open(block, "block");
  return flat_list(spk_block_grid_shape(block), spk_block_grid_ndim(block));
}
static int64_t flat_block_numblk(spk_block *block) {
  flat_open(block, "block");
  return spk_block_numblk(block);
}
static int64_t flat_block_numel_per_block(spk_block *block) {
  flat_open(block, "block");
  return spk_block_numel_per_block(block);
}
static int64_t flat_block_numel(spk_block *block) {
  flat_open(block, "block");
  return spk_block_numel(block);
}
static int32_t flat_block_score_dtype(spk_block *block) {
  flat_open(block, "block");
  return spk_block_score_dtype(block);
}
static int32_t flat_block_leaf_count(spk_block *block) {
  flat_open(block, "block");
  return spk_block_leaf_count(block);
}
static spk_block *flat_block_leaf(spk_block *block, int32_t index) {
  spk_block *leaf = NULL;
  flat_ok(spk_block_leaf(block, index, &leaf));
  return leaf;
}
static flat_ints flat_block_leaf_shape(spk_block *block, int32_t index) {
  const int64_t *shape = spk_block_leaf_shape(block, index);
  if (flat_open(block, "block")) flat_index("leaf index", index, spk_block_leaf_count(block));
  return flat_list(shape, shape == NULL ? 0 : spk_view_ndim(spk_block_leaf_view(block, index)));
}
/* The view of a leaf; a new owner. */
static spk_view *flat_block_leaf_view(spk_block *block, int32_t index) {
  spk_view *view = (spk_view *)spk_block_leaf_view(block, index);
  if (flat_open(block, "block")) flat_index("leaf index", index, spk_block_leaf_count(block));
  spk_view_retain(view);
  return view;
}

static void flat_block_norms(spk_context *context, spk_block *block, const spk_buffer *leaves,
                             int32_t nleaves, double p, const spk_buffer *out, int32_t nout) {
  if (flat_count("out", nout, 1)) flat_ok(spk_block_norms(context, block, leaves, nleaves, p, out));
}
static void flat_block_min(spk_context *context, spk_block *block, const spk_buffer *leaves,
                           int32_t nleaves, const spk_buffer *out, int32_t nout) {
  if (flat_count("out", nout, 1)) flat_ok(spk_block_min(context, block, leaves, nleaves, out));
}
static void flat_block_max(spk_context *context, spk_block *block, const spk_buffer *leaves,
                           int32_t nleaves, const spk_buffer *out, int32_t nout) {
  if (flat_count("out", nout, 1)) flat_ok(spk_block_max(context, block, leaves, nleaves, out));
}
/* The total; `out` receives the counts per block, if given. */
static int64_t flat_block_nnz(spk_context *context, spk_block *block, const spk_buffer *leaves,
                              int32_t nleaves, double eps, const spk_buffer *out, int32_t nout) {
  int64_t total = 0;
  if (flat_optional("out", nout, 1))
    flat_ok(spk_block_nnz(context, block, leaves, nleaves, eps, flat_given(out, nout), &total));
  return total;
}
static void flat_block_reduce(spk_context *context, spk_block *block, const spk_buffer *leaves,
                              int32_t nleaves, flat_callback *callback, const spk_buffer *out,
                              int32_t nout) {
  if (flat_open(callback, "function") && flat_count("out", nout, 1))
    flat_ok(spk_block_reduce(context, block, leaves, nleaves, flat_call_reduce, callback, out));
}
static void flat_block_apply_mask(spk_context *context, spk_block *block, const spk_buffer *weights,
                                  int32_t nweights, const spk_buffer *into, int32_t ninto,
                                  const spk_buffer *prune_mask, int32_t nprune_mask) {
  if (flat_into(ninto, nweights) && flat_count("prune mask", nprune_mask, 1))
    flat_ok(spk_block_apply_mask(context, block, weights, flat_given(into, ninto), nweights,
                                 prune_mask));
}
static void flat_block_apply_keep_mask(spk_context *context, spk_block *block,
                                       const spk_buffer *weights, int32_t nweights,
                                       const spk_buffer *into, int32_t ninto,
                                       const spk_buffer *keep_mask, int32_t nkeep_mask) {
  if (flat_into(ninto, nweights) && flat_count("keep mask", nkeep_mask, 1))
    flat_ok(spk_block_apply_keep_mask(context, block, weights, flat_given(into, ninto), nweights,
                                      keep_mask));
}
static void flat_block_apply_multiplier(spk_context *context, spk_block *block,
                                        const spk_buffer *weights, int32_t nweights,
                                        const spk_buffer *into, int32_t ninto,
                                        const spk_buffer *multiplier, int32_t nmultiplier) {
  if (flat_into(ninto, nweights) && flat_count("multiplier", nmultiplier, 1))
    flat_ok(spk_block_apply_multiplier(context, block, weights, flat_given(into, ninto), nweights,
                                       multiplier));
}
/* Returns total, requested, achieved, ties, not_converged, as do all that threshold or select. */
static flat_ints flat_block_hard_threshold(spk_context *context, spk_block *block,
                                           const spk_buffer *weights, int32_t nweights,
                                           const spk_buffer *into, int32_t ninto,
                                           const spk_buffer *thresholds, int32_t nthresholds,
                                           const spk_buffer *values, int32_t nvalues) {
  spk_report report = FLAT_REPORT;
  const spk_hard_options options = {sizeof options, flat_given(values, nvalues)};
  if (flat_into(ninto, nweights) && flat_count("thresholds", nthresholds, 1) &&
      flat_optional("values", nvalues, nweights))
    flat_ok(spk_block_hard_threshold(context, block, weights, flat_given(into, ninto), nweights,
                                     thresholds, &options, &report));
  return flat_report(&report);
}
/* max_iter 0, atol < 0 and eps < 0 are the defaults. */
static flat_ints flat_block_soft_threshold(spk_context *context, spk_block *block,
                                           const spk_buffer *weights, int32_t nweights,
                                           const spk_buffer *into, int32_t ninto,
                                           const spk_buffer *thresholds, int32_t nthresholds,
                                           const spk_buffer *conditioners, int32_t nconditioners,
                                           double eps, double atol, int32_t max_iter,
                                           int32_t scale) {
  spk_report report = FLAT_REPORT;
  const spk_soft_options options = {
      sizeof options, flat_given(conditioners, nconditioners), eps, atol, max_iter, scale};
  if (flat_into(ninto, nweights) && flat_count("thresholds", nthresholds, 1) &&
      flat_optional("conditioners", nconditioners, nweights)) {
    const spk_status status = spk_block_soft_threshold(
        context, block, weights, flat_given(into, ninto), nweights, thresholds, &options, &report);
    if (status != SPK_NOT_CONVERGED) flat_ok(status);
  }
  return flat_report(&report);
}
static void flat_block_set_data(spk_context *context, spk_block *block, const spk_buffer *target,
                                int32_t ntarget, const spk_buffer *source, int32_t nsource) {
  if (flat_count("source", nsource, ntarget))
    flat_ok(spk_block_set_data(context, block, target, ntarget, source));
}
static void flat_block_get_masks(spk_context *context, spk_block *block,
                                 const spk_buffer *block_mask, int32_t nblock_mask,
                                 const spk_buffer *out, int32_t nout) {
  if (flat_count("block mask", nblock_mask, 1))
    flat_ok(spk_block_get_masks(context, block, block_mask, out, nout));
}
static spk_view *flat_block_block_view(spk_block *block, int32_t reorder) {
  spk_view *view = NULL;
  flat_ok(spk_block_block_view(block, reorder, &view));
  return view;
}
static void flat_block_block_view_merged(spk_context *context, spk_block *block,
                                         const spk_buffer *leaves, int32_t nleaves,
                                         const spk_buffer *out, int32_t nout) {
  if (flat_count("out", nout, 1))
    flat_ok(spk_block_block_view_merged(context, block, leaves, nleaves, out));
}
static void flat_block_broadcast_block_to_element(spk_context *context, spk_block *block,
                                                  const spk_buffer *values, int32_t nvalues,
                                                  const spk_buffer *out, int32_t nout) {
  if (flat_count("values", nvalues, 1))
    flat_ok(spk_block_broadcast_block_to_element(context, block, values, out, nout));
}
static spk_view *flat_block_broadcast_fake(spk_block *block, int32_t dtype) {
  spk_view *view = NULL;
  flat_ok(spk_block_broadcast_fake(block, dtype, &view));
  return view;
}
static spk_view *flat_block_expand_block_tensor(spk_block *block, int32_t dtype) {
  spk_view *view = NULL;
  flat_ok(spk_block_expand_block_tensor(block, dtype, &view));
  return view;
}

/* --- scopes ------------------------------------------------------------------------------- */

static spk_scope *flat_scope_create(spk_block *block, const int64_t *shape, int32_t nshape,
                                    const char *name) {
  spk_scope *scope = NULL;
  flat_ok(spk_scope_create(block, nshape, shape, name, &scope));
  return scope;
}
static spk_scope *flat_scope_couple(spk_scope *const *members, int32_t nmembers,
                                    const int64_t *orders, int32_t norders, const char *name) {
  spk_scope *scope = NULL;
  const int32_t ndim = nmembers > 0 ? spk_scope_grid_ndim(members[0]) : 0;
  /* Without a first member, or with a closed one, the members are refused. */
  if (norders != 0 && ndim > 0 && !flat_as_many("orders", "axes", norders, nmembers * ndim))
    return NULL;
  int32_t *axes = flat_axes(orders, norders);
  if (flat_error.status == SPK_OK) flat_ok(spk_scope_couple(members, nmembers, axes, name, &scope));
  free(axes);
  return scope;
}
static const char *flat_scope_name(spk_scope *scope) {
  return flat_open(scope, "scope") ? spk_scope_name(scope) : "";
}
static flat_ints flat_scope_grid_shape(spk_scope *scope) {
  flat_open(scope, "scope");
  return flat_list(spk_scope_grid_shape(scope), spk_scope_grid_ndim(scope));
}
static int64_t flat_scope_numscope(spk_scope *scope) {
  flat_open(scope, "scope");
  return spk_scope_numscope(scope);
}
static int64_t flat_scope_numblk_per_scope(spk_scope *scope) {
  flat_open(scope, "scope");
  return spk_scope_numblk_per_scope(scope);
}
static int64_t flat_scope_numel_per_scope(spk_scope *scope) {
  flat_open(scope, "scope");
  return spk_scope_numel_per_scope(scope);
}
static int32_t flat_scope_score_dtype(spk_scope *scope) {
  flat_open(scope, "scope");
  return spk_scope_score_dtype(scope);
}
static int32_t flat_scope_member_count(spk_scope *scope) {
  flat_open(scope, "scope");
  return spk_scope_member_count(scope);
}
/* The block of a member; a new owner. */
static spk_block *flat_scope_member_block(spk_scope *scope, int32_t index) {
  spk_block *block = (spk_block *)spk_scope_member_block(scope, index);
  if (flat_open(scope, "scope")) flat_index("member index", index, spk_scope_member_count(scope));
  spk_block_retain(block);
  return block;
}
static int64_t flat_scope_member_numblk(spk_scope *scope, int32_t index) {
  const int64_t numblk = spk_scope_member_numblk(scope, index);
  if (flat_open(scope, "scope")) flat_index("member index", index, spk_scope_member_count(scope));
  return numblk;
}
static int32_t flat_scope_leaf_count(spk_scope *scope) {
  flat_open(scope, "scope");
  return spk_scope_leaf_count(scope);
}
/* The view of a leaf; a new owner. */
static spk_view *flat_scope_leaf_view(spk_scope *scope, int32_t index) {
  spk_view *view = (spk_view *)spk_scope_leaf_view(scope, index);
  if (flat_open(scope, "scope")) flat_index("leaf index", index, spk_scope_leaf_count(scope));
  spk_view_retain(view);
  return view;
}
static int64_t flat_scope_sparsity_to_nnz(spk_scope *scope, double sparsity) {
  int64_t nnz = 0;
  flat_ok(spk_scope_sparsity_to_nnz(scope, sparsity, &nnz));
  return nnz;
}
static void flat_scope_block_norms(spk_context *context, spk_scope *scope, const spk_buffer *leaves,
                                   int32_t nleaves, double p, const spk_buffer *out, int32_t nout) {
  if (flat_count("out", nout, 1))
    flat_ok(spk_scope_block_norms(context, scope, leaves, nleaves, p, out));
}
static void flat_scope_block_to_scope(spk_context *context, spk_scope *scope,
                                      const spk_buffer *values, int32_t nvalues,
                                      const spk_buffer *out, int32_t nout) {
  if (flat_count("out", nout, 1))
    flat_ok(spk_scope_block_to_scope(context, scope, values, nvalues, out));
}
static spk_view *flat_scope_block_to_scope_view(spk_scope *scope, int32_t dtype, int32_t reorder) {
  spk_view *view = NULL;
  flat_ok(spk_scope_block_to_scope_view(scope, dtype, reorder, &view));
  return view;
}
static void flat_scope_scope_to_block(spk_context *context, spk_scope *scope,
                                      const spk_buffer *values, int32_t nvalues,
                                      const spk_buffer *out, int32_t nout) {
  if (flat_count("values", nvalues, 1))
    flat_ok(spk_scope_scope_to_block(context, scope, values, out, nout));
}

#ifndef SWIG
static int flat_source(spk_scope *scope, const spk_buffer *values, int32_t nvalues,
                       const spk_buffer *scores, int32_t nscores, const spk_buffer *block_mask,
                       int32_t nblock_mask, spk_score_source *source) {
  source->struct_size = sizeof *source;
  source->values = flat_given(values, nvalues);
  source->scores = flat_given(scores, nscores);
  source->block_mask = flat_given(block_mask, nblock_mask);
  return flat_open(scope, "scope") &&
         flat_optional("values", nvalues, spk_scope_leaf_count(scope)) &&
         flat_optional("scores", nscores, 1) && flat_optional("block mask", nblock_mask, 1);
}
#endif

/* Either values, one per leaf, or scores. */
static void flat_scope_kth_largest(spk_context *context, spk_scope *scope, const spk_buffer *values,
                                   int32_t nvalues, const spk_buffer *scores, int32_t nscores,
                                   const int64_t *k, int32_t nk, const spk_buffer *out,
                                   int32_t nout) {
  spk_score_source source;
  if (flat_source(scope, values, nvalues, scores, nscores, NULL, 0, &source) &&
      flat_count("out", nout, 1))
    flat_ok(
        spk_scope_kth_largest(context, scope, &source, spk_scope_leaf_count(scope), k, nk, out));
}
static void flat_scope_kth_mid(spk_context *context, spk_scope *scope, const spk_buffer *values,
                               int32_t nvalues, const spk_buffer *scores, int32_t nscores,
                               const int64_t *k, int32_t nk, double k_weight, const spk_buffer *out,
                               int32_t nout) {
  spk_score_source source;
  if (flat_source(scope, values, nvalues, scores, nscores, NULL, 0, &source) &&
      flat_count("out", nout, 1))
    flat_ok(spk_scope_kth_mid(context, scope, &source, spk_scope_leaf_count(scope), k, nk, k_weight,
                              out));
}
static flat_ints flat_scope_hard_threshold(spk_context *context, spk_scope *scope,
                                           const spk_buffer *weights, int32_t nweights,
                                           const spk_buffer *into, int32_t ninto,
                                           const spk_buffer *thresholds, int32_t nthresholds,
                                           const spk_buffer *values, int32_t nvalues) {
  spk_report report = FLAT_REPORT;
  const spk_hard_options options = {sizeof options, flat_given(values, nvalues)};
  if (flat_into(ninto, nweights) && flat_count("thresholds", nthresholds, 1) &&
      flat_optional("values", nvalues, nweights))
    flat_ok(spk_scope_hard_threshold(context, scope, weights, flat_given(into, ninto), nweights,
                                     thresholds, &options, &report));
  return flat_report(&report);
}
static flat_ints flat_scope_keep_top(spk_context *context, spk_scope *scope,
                                     const spk_buffer *weights, int32_t nweights,
                                     const spk_buffer *into, int32_t ninto, const int64_t *counts,
                                     int32_t ncounts, const spk_buffer *values, int32_t nvalues,
                                     const spk_buffer *scores, int32_t nscores, int32_t ties) {
  spk_report report = FLAT_REPORT;
  const spk_select_options options = {sizeof options, flat_given(values, nvalues),
                                      flat_given(scores, nscores), ties, 0};
  if (flat_into(ninto, nweights) && flat_optional("values", nvalues, nweights) &&
      flat_optional("scores", nscores, 1))
    flat_ok(spk_scope_keep_top(context, scope, weights, flat_given(into, ninto), nweights, counts,
                               ncounts, &options, &report));
  return flat_report(&report);
}
/* Exactly one of values, scores and block_mask; no counts with a block mask. */
static flat_ints flat_scope_get_masks(spk_context *context, spk_scope *scope,
                                      const spk_buffer *values, int32_t nvalues,
                                      const spk_buffer *scores, int32_t nscores,
                                      const spk_buffer *block_mask, int32_t nblock_mask,
                                      const int64_t *counts, int32_t ncounts, int32_t ties,
                                      const spk_buffer *out, int32_t nout) {
  spk_report report = FLAT_REPORT;
  spk_score_source source;
  if (flat_source(scope, values, nvalues, scores, nscores, block_mask, nblock_mask, &source))
    flat_ok(spk_scope_get_masks(context, scope, &source, ncounts == 0 ? NULL : counts, ncounts,
                                ties, out, nout, &report));
  return flat_report(&report);
}
static flat_ints flat_scope_soft_threshold(spk_context *context, spk_scope *scope,
                                           const spk_buffer *weights, int32_t nweights,
                                           const spk_buffer *into, int32_t ninto,
                                           const spk_buffer *thresholds, int32_t nthresholds,
                                           const spk_buffer *conditioners, int32_t nconditioners,
                                           double eps, double atol, int32_t max_iter,
                                           int32_t scale) {
  spk_report report = FLAT_REPORT;
  const spk_soft_options options = {
      sizeof options, flat_given(conditioners, nconditioners), eps, atol, max_iter, scale};
  if (flat_into(ninto, nweights) && flat_count("thresholds", nthresholds, 1) &&
      flat_optional("conditioners", nconditioners, nweights)) {
    const spk_status status = spk_scope_soft_threshold(
        context, scope, weights, flat_given(into, ninto), nweights, thresholds, &options, &report);
    if (status != SPK_NOT_CONVERGED) flat_ok(status);
  }
  return flat_report(&report);
}

/* --- conveniences ------------------------------------------------------------------------- */

static flat_ints flat_prune_nm(spk_context *context, spk_view *view, const spk_buffer *weights,
                               int32_t nweights, const spk_buffer *into, int32_t ninto,
                               int32_t axis, int64_t n, int64_t m) {
  spk_report report = FLAT_REPORT;
  if (flat_count("weights", nweights, 1) && flat_into(ninto, nweights))
    flat_ok(spk_prune_nm(context, view, weights, flat_given(into, ninto), axis, n, m, &report));
  return flat_report(&report);
}
static flat_ints flat_prune_unstructured(spk_context *context, spk_view *view,
                                         const spk_buffer *weights, int32_t nweights,
                                         const spk_buffer *into, int32_t ninto, double sparsity) {
  spk_report report = FLAT_REPORT;
  if (flat_count("weights", nweights, 1) && flat_into(ninto, nweights))
    flat_ok(
        spk_prune_unstructured(context, view, weights, flat_given(into, ninto), sparsity, &report));
  return flat_report(&report);
}
static flat_ints flat_soft_threshold_blocks(spk_context *context, spk_view *view,
                                            const spk_buffer *weights, int32_t nweights,
                                            const spk_buffer *into, int32_t ninto,
                                            const int64_t *shape, int32_t nshape,
                                            double threshold) {
  spk_report report = FLAT_REPORT;
  if (flat_count("weights", nweights, 1) && flat_into(ninto, nweights))
    flat_ok(spk_soft_threshold_blocks(context, view, weights, flat_given(into, ninto), nshape,
                                      shape, threshold, &report));
  return flat_report(&report);
}

/* --- schedules ---------------------------------------------------------------------------- */

static spk_schedule *flat_schedule_create_cosine(double prune_rate, int64_t t_max, double eta_min,
                                                 int64_t last_epoch) {
  spk_schedule *schedule = NULL;
  flat_ok(spk_schedule_create_cosine(prune_rate, t_max, eta_min, last_epoch, &schedule));
  return schedule;
}
static spk_schedule *flat_schedule_create_linear(double prune_rate, int64_t t_max) {
  spk_schedule *schedule = NULL;
  flat_ok(spk_schedule_create_linear(prune_rate, t_max, &schedule));
  return schedule;
}
static spk_schedule *flat_schedule_create_magnitude(double initial, double final, int64_t t_max,
                                                    int64_t t_start, int64_t interval) {
  spk_schedule *schedule = NULL;
  flat_ok(spk_schedule_create_magnitude(initial, final, t_max, t_start, interval, &schedule));
  return schedule;
}
static spk_schedule *flat_schedule_create_custom(flat_callback *callback) {
  spk_schedule *schedule = NULL;
  if (flat_open(callback, "function"))
    flat_ok(spk_schedule_create_custom(flat_call_schedule, callback, &schedule));
  return schedule;
}
static void flat_schedule_step(spk_schedule *schedule) {
  flat_ok(spk_schedule_step(schedule));
}
static void flat_schedule_step_to(spk_schedule *schedule, int64_t t) {
  flat_ok(spk_schedule_step_to(schedule, t));
}
static int64_t flat_schedule_position(spk_schedule *schedule) {
  flat_open(schedule, "schedule");
  return spk_schedule_position(schedule);
}
static double flat_schedule_rate(spk_schedule *schedule) {
  double rate = 0;
  flat_ok(spk_schedule_rate(schedule, &rate));
  return rate;
}
static double flat_schedule_rate_from(spk_schedule *schedule, double current) {
  double rate = 0;
  flat_ok(spk_schedule_rate_from(schedule, current, &rate));
  return rate;
}
static double flat_schedule_cumulative_sparsity(spk_schedule *schedule, int64_t t) {
  double sparsity = 0;
  flat_ok(spk_schedule_cumulative_sparsity(schedule, t, &sparsity));
  return sparsity;
}

/* --- maskings ----------------------------------------------------------------------------- */

/* Functions are given with the modes that name them, else NULL. */
static spk_masking *flat_masking_create(spk_schedule *schedule, int64_t seed, int32_t prune,
                                        int32_t redistribute, int32_t grow, int32_t dense_gradients,
                                        flat_callback *prune_fn, flat_callback *prune_criterion,
                                        flat_callback *statistic_fn, flat_callback *grow_fn,
                                        flat_callback *grow_criterion) {
  spk_masking *masking = NULL;
  spk_masking_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.seed = (uint64_t)seed;
  options.prune = prune;
  options.redistribute = redistribute;
  options.grow = grow;
  options.dense_gradients = dense_gradients;
  options.prune_fn = prune_fn == NULL ? NULL : flat_call_prune;
  options.prune_user = prune_fn;
  options.prune_criterion = prune_criterion == NULL ? NULL : flat_call_reduce;
  options.prune_criterion_user = prune_criterion;
  options.statistic_fn = statistic_fn == NULL ? NULL : flat_call_statistic;
  options.statistic_user = statistic_fn;
  options.grow_fn = grow_fn == NULL ? NULL : flat_call_grow;
  options.grow_user = grow_fn;
  options.grow_criterion = grow_criterion == NULL ? NULL : flat_call_reduce;
  options.grow_criterion_user = grow_criterion;
  flat_ok(spk_masking_create(schedule, &options, &masking));
  return masking;
}
static int32_t flat_masking_add(spk_masking *masking, const char *name, spk_view *view) {
  int32_t id = -1;
  flat_ok(spk_masking_add(masking, name, view, &id));
  return id;
}
static void flat_masking_remove(spk_masking *masking, const char *name) {
  flat_ok(spk_masking_remove(masking, name));
}
static int32_t flat_masking_remove_matching(spk_masking *masking, const char *part) {
  int32_t removed = 0;
  flat_ok(spk_masking_remove_matching(masking, part, &removed));
  return removed;
}
static int32_t flat_masking_layer_count(spk_masking *masking) {
  flat_open(masking, "masking");
  return spk_masking_layer_count(masking);
}
static int32_t flat_masking_find(spk_masking *masking, const char *name) {
  flat_open(masking, "masking");
  return spk_masking_find(masking, name);
}
static const char *flat_masking_layer_name(spk_masking *masking, int32_t layer) {
  const char *name = spk_masking_layer_name(masking, layer);
  if (flat_open(masking, "masking")) flat_index("layer", layer, spk_masking_layer_count(masking));
  return name == NULL ? "" : name;
}
static int32_t flat_masking_has_layer(spk_masking *masking, int32_t layer) {
  flat_open(masking, "masking");
  return spk_masking_has_layer(masking, layer);
}

#ifndef SWIG
static spk_buffer flat_nth(const spk_buffer *buffers, int32_t count, int32_t index) {
  static const spk_buffer none = {NULL, 0, 0, 0, NULL};
  return index < count ? buffers[index] : none;
}

/* One spk_layer per id; NULL, and a failure, if counts differ. The caller frees. */
static spk_layer *flat_layers(const spk_buffer *weights, int32_t nweights, const spk_buffer *masks,
                              int32_t nmasks, const spk_buffer *gradients, int32_t ngradients,
                              const spk_buffer *momenta, int32_t nmomenta,
                              const spk_buffer *adam_m1, int32_t nadam_m1,
                              const spk_buffer *adam_m2, int32_t nadam_m2) {
  if (!flat_into(0, nweights) || !flat_optional("masks", nmasks, nweights) ||
      !flat_optional("gradients", ngradients, nweights) ||
      !flat_optional("momenta", nmomenta, nweights) ||
      !flat_optional("adam_m1", nadam_m1, nweights) ||
      !flat_optional("adam_m2", nadam_m2, nweights))
    return NULL;
  spk_layer *layers = (spk_layer *)calloc((size_t)nweights + 1, sizeof *layers);
  if (layers == NULL) {
    flat_refuse(SPK_OUT_OF_MEMORY, "layers", "no memory", "some");
    return NULL;
  }
  for (int32_t i = 0; i < nweights; ++i) {
    layers[i].struct_size = sizeof layers[i];
    layers[i].weight = weights[i];
    layers[i].mask = flat_nth(masks, nmasks, i);
    layers[i].gradient = flat_nth(gradients, ngradients, i);
    layers[i].momentum = flat_nth(momenta, nmomenta, i);
    layers[i].adam_m1 = flat_nth(adam_m1, nadam_m1, i);
    layers[i].adam_m2 = flat_nth(adam_m2, nadam_m2, i);
  }
  return layers;
}
#endif

/* Lists of layers have one entry per id; gradients, momenta and moments may be left out, whole or
 * one by one. */
static void flat_masking_initialise(spk_context *context, spk_masking *masking,
                                    const spk_buffer *weights, int32_t nweights,
                                    const spk_buffer *masks, int32_t nmasks, double density,
                                    int32_t mode, int32_t draw, const int64_t *counts,
                                    int32_t ncounts) {
  const spk_init_options options = {
      sizeof options, density, mode, draw, ncounts == 0 ? NULL : counts, ncounts};
  spk_layer *layers =
      flat_layers(weights, nweights, masks, nmasks, NULL, 0, NULL, 0, NULL, 0, NULL, 0);
  if (layers != NULL) flat_ok(spk_masking_initialise(context, masking, layers, nweights, &options));
  free(layers);
}
/* `out` receives one double per id. */
static void flat_masking_densities(spk_masking *masking, double density, int32_t mode,
                                   const spk_buffer *out, int32_t nout) {
  const spk_init_options options = {sizeof options, density, mode, SPK_DRAW_EXACT, NULL, 0};
  if (!flat_count("out", nout, 1)) return;
  if (out->dtype != SPK_F64 || out->numel > INT32_MAX) {
    flat_refuse(SPK_UNSUPPORTED_DTYPE, "out", "another array", "one of double, one per layer");
    return;
  }
  flat_ok(spk_masking_densities(masking, &options, (double *)out->data, (int32_t)out->numel));
}
static void flat_masking_apply(spk_context *context, spk_masking *masking,
                               const spk_buffer *weights, int32_t nweights, const spk_buffer *masks,
                               int32_t nmasks, const spk_buffer *gradients, int32_t ngradients,
                               const spk_buffer *momenta, int32_t nmomenta,
                               const spk_buffer *adam_m1, int32_t nadam_m1,
                               const spk_buffer *adam_m2, int32_t nadam_m2, int32_t what) {
  spk_layer *layers = flat_layers(weights, nweights, masks, nmasks, gradients, ngradients, momenta,
                                  nmomenta, adam_m1, nadam_m1, adam_m2, nadam_m2);
  if (layers != NULL) flat_ok(spk_masking_apply(context, masking, layers, nweights, what));
  free(layers);
}
static void flat_masking_step(spk_context *context, spk_masking *masking, const spk_buffer *weights,
                              int32_t nweights, const spk_buffer *masks, int32_t nmasks,
                              const spk_buffer *gradients, int32_t ngradients,
                              const spk_buffer *momenta, int32_t nmomenta,
                              const spk_buffer *adam_m1, int32_t nadam_m1,
                              const spk_buffer *adam_m2, int32_t nadam_m2) {
  spk_layer *layers = flat_layers(weights, nweights, masks, nmasks, gradients, ngradients, momenta,
                                  nmomenta, adam_m1, nadam_m1, adam_m2, nadam_m2);
  if (layers != NULL) flat_ok(spk_masking_step(context, masking, layers, nweights));
  free(layers);
}
/* rate, requested_removed, removed, requested_grown, grown, nonzeros, residual */
static flat_numbers flat_masking_update(spk_context *context, spk_masking *masking,
                                        const spk_buffer *weights, int32_t nweights,
                                        const spk_buffer *masks, int32_t nmasks,
                                        const spk_buffer *gradients, int32_t ngradients,
                                        const spk_buffer *momenta, int32_t nmomenta,
                                        const spk_buffer *adam_m1, int32_t nadam_m1,
                                        const spk_buffer *adam_m2, int32_t nadam_m2) {
  spk_update_report report = {sizeof report, 0, 0, 0, 0, 0, 0, 0};
  spk_layer *layers = flat_layers(weights, nweights, masks, nmasks, gradients, ngradients, momenta,
                                  nmomenta, adam_m1, nadam_m1, adam_m2, nadam_m2);
  if (layers != NULL) flat_ok(spk_masking_update(context, masking, layers, nweights, &report));
  free(layers);
  const flat_numbers numbers = {
      7,
      {report.rate, (double)report.requested_removed, (double)report.removed,
       (double)report.requested_grown, (double)report.grown, (double)report.nonzeros,
       (double)report.residual}};
  return numbers;
}
/* numel, nonzeros, zeros, density, requested_density, statistic, rate, requested_removed, removed,
 * requested_grown, grown; of one layer, or with layer -1 of all. */
static flat_numbers flat_masking_stats(spk_masking *masking, int32_t layer) {
  spk_layer_stats stats = {sizeof stats, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  flat_ok(layer == -1 ? spk_masking_stats(masking, &stats)
                      : spk_masking_layer_stats(masking, layer, &stats));
  const flat_numbers numbers = {
      11,
      {(double)stats.numel, (double)stats.nonzeros, (double)stats.zeros, stats.density,
       stats.requested_density, stats.statistic, stats.rate, (double)stats.requested_removed,
       (double)stats.removed, (double)stats.requested_grown, (double)stats.grown}};
  return numbers;
}
static int64_t flat_masking_baseline(spk_masking *masking) {
  flat_open(masking, "masking");
  return spk_masking_baseline(masking);
}
static double flat_masking_adjusted_growth(spk_masking *masking) {
  flat_open(masking, "masking");
  return spk_masking_adjusted_growth(masking);
}
/* How many bytes flat_masking_save writes to `out`, an array of bytes of exactly that length. */
static int64_t flat_masking_save_size(spk_masking *masking) {
  size_t length = 0;
  flat_ok(spk_masking_save(masking, NULL, 0, &length));
  return (int64_t)length;
}
static void flat_masking_save(spk_masking *masking, const spk_buffer *out, int32_t nout) {
  if (!flat_count("blob", nout, 1)) return;
  if (out->dtype != SPK_U8) {
    flat_refuse(SPK_UNSUPPORTED_DTYPE, "blob", "another array", "one of bytes");
    return;
  }
  flat_ok(spk_masking_save(masking, out->data, (size_t)out->numel, NULL));
}
static void flat_masking_restore(spk_masking *masking, const spk_buffer *blob, int32_t nblob) {
  if (!flat_count("blob", nblob, 1)) return;
  if (blob->dtype != SPK_U8) {
    flat_refuse(SPK_UNSUPPORTED_DTYPE, "blob", "another array", "one of bytes");
    return;
  }
  flat_ok(spk_masking_restore(masking, blob->data, (size_t)blob->numel));
}

#endif /* SPARSEKIT_BINDINGS_FLAT_H_ */
