/*
 * SparseKit: structured sparsity on float buffers that you own.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The ten-line example: prune a 64 x 128 matrix to 2:4 along its rows, in place.
 *
 *     #include <sparsekit/sparsekit.h>
 *
 *     int64_t shape[2] = {64, 128};
 *     spk_buffer weights = {data, 64 * 128, SPK_F32, SPK_LAYOUT_VIEW, NULL};
 *     spk_view *view = NULL;
 *     spk_status status = spk_view_create(SPK_F32, 2, shape, NULL, 0, &view);
 *     if (status == SPK_OK) status = spk_prune_nm(NULL, view, &weights, NULL, 1, 2, 4, NULL);
 *     if (status != SPK_OK) {
 *       char message[SPK_MESSAGE_SIZE];
 *       spk_last_error_copy(message, sizeof message, NULL);
 *       fprintf(stderr, "%s: %s\n", spk_status_string(status), message);
 *     }
 *     spk_view_release(view);
 *
 * The tour, in the order a newcomer needs it:
 *
 *     1. Status and messages      every call returns one, a failing call says why
 *     2. Buffers and dtypes       how your memory reaches a call
 *     3. Contexts                 executor, threads, allocator, progress; NULL is fine
 *     4. Views                    a strided window over a buffer
 *     5. Blocks and couplings     the atoms that live or die together
 *     6. Block operations         norms, masks, thresholds, rearrangements
 *     7. Scopes and couplings     the groups inside which blocks compete
 *     8. Scope operations         exact selection, thresholds, masks
 *     9. One-call conveniences    N:M, unstructured, block-wise soft threshold
 *    10. Version and build
 *
 * Words. A *view* says how elements lie in a buffer. A *block* cuts a view into a grid of
 * equal sub-tensors, the pruning units. A *coupling* makes block i of several specs one unit.
 * A *scope* cuts a grid of blocks into groups that compete; a *leaf* is one block spec inside a
 * block, coupling or scope, in order of construction. Method: the Structured Sparsity
 * Specification (S3, arXiv 2604.11315). Dynamic sparse training has a header of its own, training.h.
 *
 * Rules that hold everywhere, and are not repeated below:
 *   - Handles describe, calls bring data. Handles are immutable and may be used from many
 *     threads at once. No call keeps a data pointer after it returns.
 *   - Shapes, strides and offsets count elements, never bytes. Arrays of scores, thresholds and
 *     masks are row-major and contiguous in the shape that the function names.
 *   - A refused call (bad argument) has written nothing.
 *   - Norms of f32, f16 and bf16 data are float, of f64 data double; the *score dtype* of a block
 *     is SPK_F64 if any of its leaves is f64, else SPK_F32.
 *   - A block that is masked, pruned or multiplied by zero becomes exactly +0.0, whatever it held.
 *   - Results are bit-identical for every thread count, executor and instruction set.
 *   - Masks are bytes. A non-zero byte reads as 1; masks that the library writes hold 0 or 1.
 *     A *keep mask* has 1 = survives; a *prune mask* has 1 = is zeroed. Each function says which.
 */
#ifndef SPARSEKIT_SPARSEKIT_H_
#define SPARSEKIT_SPARSEKIT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SPK_STATIC)
#define SPK_API
#elif defined(_WIN32)
#if defined(SPK_BUILDING)
#define SPK_API __declspec(dllexport)
#else
#define SPK_API __declspec(dllimport)
#endif
#else
#define SPK_API __attribute__((visibility("default")))
#endif

/* ------------------------------------------------------------------------------------------
 * 1. Status and messages
 * ------------------------------------------------------------------------------------------ */

/* What a call returns: SPK_OK or one of the codes below. */
typedef int32_t spk_status;

#define SPK_OK 0
#define SPK_INVALID_ARGUMENT 1  /* a value outside its range, a NULL that must not be */
#define SPK_SHAPE_MISMATCH 2    /* shapes, lengths or counts that do not fit each other */
#define SPK_COUPLING 3          /* members whose grids do not agree */
#define SPK_OVERLAP 4           /* one element reached twice, or buffers that share bytes */
#define SPK_OUT_OF_BOUNDS 5     /* a view or an index that reaches outside */
#define SPK_UNSUPPORTED_DTYPE 6 /* a dtype that this argument cannot have */
#define SPK_OUT_OF_MEMORY 7     /* scratch or a handle could not be allocated */
#define SPK_NOT_CONVERGED 8     /* everything was written; some blocks ran out of steps */
#define SPK_CANCELLED 9         /* a callback asked to stop */
#define SPK_UNAVAILABLE 10      /* not in this build (an executor), or not on this device */
#define SPK_INTERNAL 11         /* a defect of the library: please report the message */

/* Name of a status, such as "SPK_OVERLAP"; "unknown status" for any other number. Never NULL;
 * static storage. */
SPK_API const char *spk_status_string(spk_status status);

/* A message never needs more bytes than this, its terminator included. */
#define SPK_MESSAGE_SIZE 512

/* Copies the message of the calling thread's most recent failing call: it names the argument,
 * what was given and what was expected. Successful calls and releases leave it alone.
 *   text      receives at most `capacity` bytes, always terminated; NULL asks for the length only
 *   length    may be NULL; receives the length of the whole message, without its terminator
 * Returns the status of that failing call, SPK_OK if there was none. */
SPK_API spk_status spk_last_error_copy(char *text, size_t capacity, size_t *length);

/* ------------------------------------------------------------------------------------------
 * 2. Buffers and dtypes
 * ------------------------------------------------------------------------------------------ */

/* A dtype is (DLPack type code << 8) | bits. f16 and bf16 are stored as 16-bit words. */
#define SPK_F32 0x220
#define SPK_F64 0x240
#define SPK_F16 0x210
#define SPK_BF16 0x410
#define SPK_U8 0x108  /* masks */
#define SPK_I64 0x040 /* counts */

/* How the elements of a leaf lie in the buffer that is brought for it. */
#define SPK_LAYOUT_VIEW 0       /* as the leaf's view says */
#define SPK_LAYOUT_CONTIGUOUS 1 /* row-major and contiguous in the shape of the leaf's view */
#define SPK_LAYOUT_OWN 2        /* as `view` says, whose shape must be that of the leaf's view */

typedef struct spk_view spk_view;

/* A borrowed piece of memory; only for the length of the call.
 *   data     first element; aligned to the element size, never NULL
 *   numel    how many elements the call may reach, counted from data: for leaves at least as many as
 *            the layout reaches, for score, threshold and mask arrays exactly their number
 *   dtype    SPK_F32 ...; must be what the function asks for
 *   layout   SPK_LAYOUT_...; score, threshold and mask arrays take VIEW or CONTIGUOUS, both of
 *            which mean contiguous there
 *   view     only with SPK_LAYOUT_OWN, else NULL */
typedef struct spk_buffer {
  void *data;
  int64_t numel;
  int32_t dtype;
  int32_t layout;
  const spk_view *view;
} spk_buffer;

/* Every function that takes `leaves` takes `nleaves` buffers, one per leaf of the handle, in leaf
 * order, each of its leaf's dtype. `values`, `conditioners` and `source` are arrays of the same
 * length whose buffers may have any float dtype of their own; norms of f64 values are rounded to
 * the score dtype of the handle. A function that writes leaves also takes `into`: NULL writes in
 * place; else `nleaves` buffers of the same dtypes that receive the result while `leaves` are only
 * read (for frameworks whose arrays are immutable). Elements of `into` that the view does not
 * reach are not touched. A buffer that is written may share bytes with another buffer of the
 * call only if both are one and the same buffer of the same leaf (same data, same layout); else
 * SPK_OVERLAP. */

/* ------------------------------------------------------------------------------------------
 * 3. Contexts
 * ------------------------------------------------------------------------------------------ */

/* How a call runs: executor, threads, allocator, progress. Every working call takes one first;
 * NULL is the process default (TBB if built in, else OpenMP, else serial; as many threads as the
 * process may use; malloc). A context may be used from several threads at once. */
typedef struct spk_context spk_context;

#define SPK_EXECUTOR_DEFAULT 0
#define SPK_EXECUTOR_SERIAL 1
#define SPK_EXECUTOR_TBB 2
#define SPK_EXECUTOR_OPENMP 3 /* its runtime ends the process if it cannot have a thread */
#define SPK_EXECUTOR_HOST 4   /* your own pool, see spk_host_executor */

/* One piece of a parallel loop; never throws, may be called on any thread. */
typedef void (*spk_task_fn)(void *task_data, int64_t index);

/* A host's own thread pool.
 *   concurrency    how many tasks can run at the same time; values < 1 read as 1
 *   parallel_for   calls task(task_data, i) exactly once for each i in [0, count), in any order, on
 *                  any threads, and returns when all are done; 0 = done. A non-zero return ends the
 *                  call with SPK_INTERNAL, and the leaves may then hold partial results. */
typedef struct spk_host_executor {
  size_t struct_size;
  void *user;
  int32_t (*concurrency)(void *user);
  int32_t (*parallel_for)(void *user, int64_t count, spk_task_fn task, void *task_data);
} spk_host_executor;

/* Where scratch memory comes from. Both functions are called from any thread. `allocate` returns
 * memory aligned to `alignment` (a power of two, at least 64) or NULL, which ends the call with
 * SPK_OUT_OF_MEMORY. */
typedef struct spk_allocator {
  size_t struct_size;
  void *user;
  void *(*allocate)(void *user, size_t bytes, size_t alignment);
  void (*deallocate)(void *user, void *memory, size_t bytes, size_t alignment);
} spk_allocator;

/* Called on the thread that made the call, now and then, with the share of work done (0 <= done
 * <= total). Non-zero cancels: the call returns SPK_CANCELLED, and every block is then either
 * untouched or finished. Like every callback, it may not make a call with the same context (which
 * is refused, NULL inside NULL too). */
typedef int32_t (*spk_progress_fn)(void *user, int64_t done, int64_t total);

/* Zeroed fields mean the default. The structs pointed to are copied; what their `user` points to
 * must outlive the context. */
typedef struct spk_context_options {
  size_t struct_size;             /* sizeof(spk_context_options) */
  int32_t executor;               /* SPK_EXECUTOR_... */
  int32_t threads;                /* 0: min(affinity mask, cgroup quota rounded up) */
  const spk_host_executor *host;  /* with SPK_EXECUTOR_HOST */
  const spk_allocator *allocator; /* NULL: aligned malloc */
  spk_progress_fn progress;       /* NULL: none */
  void *progress_user;
} spk_context_options;

/* Creates a context; `options` may be NULL. No thread starts before there is work for it.
 * Fails with SPK_UNAVAILABLE for an executor that is not built in. */
SPK_API spk_status spk_context_create(const spk_context_options *options, spk_context **out);
/* One more owner. NULL is ignored. Every retain and create is paired with one release. */
SPK_API void spk_context_retain(spk_context *context);
/* One owner less; the last one frees. NULL is ignored; any thread, any order, never fails. */
SPK_API void spk_context_release(spk_context *context);
/* The executor (SPK_EXECUTOR_...) and the threads that a call with this context uses. NULL = the
 * process default. */
SPK_API int32_t spk_context_executor(const spk_context *context);
SPK_API int32_t spk_context_threads(const spk_context *context);
/* Frees the scratch memory that idle calls left in the context for reuse. NULL = the process
 * default. */
SPK_API spk_status spk_context_trim(spk_context *context);

/* How many handles of any kind are alive in the process; 0 when all were released. The process
 * default context is not counted. */
SPK_API int64_t spk_live_handles(void);

/* ------------------------------------------------------------------------------------------
 * 4. Views
 * ------------------------------------------------------------------------------------------ */

#define SPK_MAX_NDIM 16

/* A strided window: element (i0, i1, ...) lies at offset + sum(i_d * stride_d) elements from the
 * start of the buffer. Holds no data. */

/* Creates a view.
 *   dtype    SPK_F32, SPK_F64, SPK_F16 or SPK_BF16
 *   ndim     1 to SPK_MAX_NDIM
 *   shape    ndim extents, each >= 1
 *   stride   ndim strides, negative ones allowed; NULL = row-major contiguous
 *   offset   of element (0, 0, ...), >= 0
 * Refused: a view that reaches below 0 (SPK_OUT_OF_BOUNDS), a product that overflows, and a layout
 * that maps two indices to one element (SPK_OVERLAP). That test is exact; a layout that a bounded
 * search cannot decide is refused too. */
SPK_API spk_status spk_view_create(int32_t dtype, int32_t ndim, const int64_t *shape,
                                   const int64_t *stride, int64_t offset, spk_view **out);

/* Creates a view from its text form, as in layout algebra: "(64,128):(128,1)" is shape:stride,
 * "(64,128):(128,1)+32" has an offset, "(64,128)" and "(64,128)+32" are contiguous. Blanks are
 * allowed. At most SPK_MAX_NDIM dimensions. */
SPK_API spk_status spk_view_parse(int32_t dtype, const char *text, spk_view **out);

/* Writes the text form, terminated. `length` (may be NULL) receives its length without terminator;
 * `text` may be NULL to ask for the length. A capacity that is too small writes nothing. */
SPK_API spk_status spk_view_format(const spk_view *view, char *text, size_t capacity,
                                   size_t *length);

/* The struct tags of dlpack.h; include that header yourself to fill them. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* Creates the view of a DLPack tensor and, if `buffer` is not NULL, the buffer that goes with it.
 * The tensor is borrowed: its deleter is never called, and `buffer` is valid as long as its data.
 * Refused: a device that is not CPU memory (SPK_UNAVAILABLE), a dtype that is not one of the four,
 * a data pointer that is not aligned to the element size. */
SPK_API spk_status spk_view_from_dlpack(const struct DLManagedTensor *tensor, spk_view **out,
                                        spk_buffer *buffer);
/* The same for DLPack 1.x. `writable` non-zero refuses a tensor that is flagged read-only. */
SPK_API spk_status spk_view_from_dlpack_versioned(const struct DLManagedTensorVersioned *tensor,
                                                  int32_t writable, spk_view **out,
                                                  spk_buffer *buffer);

SPK_API void spk_view_retain(spk_view *view);
SPK_API void spk_view_release(spk_view *view);

/* Facts. Arrays have ndim entries and live as long as the view. NULL view: -1 or NULL. */
SPK_API int32_t spk_view_dtype(const spk_view *view);
SPK_API int32_t spk_view_ndim(const spk_view *view);
SPK_API const int64_t *spk_view_shape(const spk_view *view);
SPK_API const int64_t *spk_view_stride(const spk_view *view);
SPK_API int64_t spk_view_offset(const spk_view *view);
/* Number of elements: the product of the shape. */
SPK_API int64_t spk_view_numel(const spk_view *view);
/* 1 + sum((shape_d - 1) * |stride_d|): the span of the layout; the offset is not part of it. */
SPK_API int64_t spk_view_cosize(const spk_view *view);

/* offset + sum(i_d * stride_d) for each of `count` index tuples.
 *   index   count x ndim, row-major; each 0 <= i_d < shape_d, else SPK_OUT_OF_BOUNDS
 *   out     count results */
SPK_API spk_status spk_view_linear_offset(const spk_view *view, const int64_t *index, int64_t count,
                                          int64_t *out);
/* Where those elements lie in a row-major matrix of `num_cols` columns (>= 1) that owns the buffer:
 * row = linear offset / num_cols, col = linear offset mod num_cols. */
SPK_API spk_status spk_view_to_param_rc(const spk_view *view, const int64_t *index, int64_t count,
                                        int64_t num_cols, int64_t *rows, int64_t *cols);

/* ------------------------------------------------------------------------------------------
 * 5. Blocks and couplings
 * ------------------------------------------------------------------------------------------ */

/* A block spec cuts one view into a grid of equal blocks; a block coupling joins several block
 * specs so that block i of each of them is one block. Both are an spk_block. */
typedef struct spk_block spk_block;

/* Creates a block spec over `view`, which it keeps alive.
 *   ndim    0 (every block is one element; shape may be NULL) or the view's ndim
 *   shape   extent of a block along each view dimension; <= 0 spans the dimension; each must divide
 *           the view's: grid_shape_d = view shape_d / shape_d
 *   name    copied, used in messages; NULL = "block" */
SPK_API spk_status spk_block_create(const spk_view *view, int32_t ndim, const int64_t *shape,
                                    const char *name, spk_block **out);

/* Couples blocks (specs or couplings): grids agree after a permutation each.
 *   members   `count` >= 1 blocks, kept alive
 *   orders    NULL = identity, else count x grid_ndim: row i is a permutation pi of the axes of
 *             member i's grid, and grid_shape[d] = member i grid_shape[pi[d]] must be the same for
 *             all members, else SPK_COUPLING
 *   name      NULL = "coupling"
 * The elements of a coupled block are member 0's, then member 1's, ...; its norm runs over all.
 * A coupling of couplings has the leaves of its members, in order; one of a single member only
 * permutes its grid. Grids need the same number of axes: view a bias of n elements as (n, 1) to
 * couple it with the rows of a matrix. */
SPK_API spk_status spk_block_couple(spk_block *const *members, int32_t count, const int32_t *orders,
                                    const char *name, spk_block **out);

SPK_API void spk_block_retain(spk_block *block);
SPK_API void spk_block_release(spk_block *block);

/* Facts. Arrays have grid_ndim entries and live as long as the block. NULL block: -1 or NULL. */
SPK_API const char *spk_block_name(const spk_block *block);
SPK_API int32_t spk_block_grid_ndim(const spk_block *block);
SPK_API const int64_t *spk_block_grid_shape(const spk_block *block);
/* Number of blocks: the product of the grid shape. */
SPK_API int64_t spk_block_numblk(const spk_block *block);
/* Elements of one block, over all leaves. */
SPK_API int64_t spk_block_numel_per_block(const spk_block *block);
/* numblk * numel_per_block. */
SPK_API int64_t spk_block_numel(const spk_block *block);
/* SPK_F64 if any leaf is f64, else SPK_F32. */
SPK_API int32_t spk_block_score_dtype(const spk_block *block);
SPK_API int32_t spk_block_leaf_count(const spk_block *block);
/* Leaf `index`: its view (the "parameter"), and the extent of its blocks along each dimension of
 * that view. Borrowed. NULL for an index out of range. */
SPK_API const spk_view *spk_block_leaf_view(const spk_block *block, int32_t index);
SPK_API const int64_t *spk_block_leaf_shape(const spk_block *block, int32_t index);
/* The block spec of leaf `index`, as it was created; a new owner, release it. */
SPK_API spk_status spk_block_leaf(const spk_block *block, int32_t index, spk_block **out);

/* ------------------------------------------------------------------------------------------
 * 6. Block operations
 * ------------------------------------------------------------------------------------------ */

/* --- measuring ---------------------------------------------------------------------------- */

/* One Lp norm per block.
 *   p     0 (count of non-zeros), 1, 2, +inf, -inf (smallest magnitude), or finite in [0.01, 1000];
 *         there is no default
 *   out   grid_shape, score dtype
 * NaN in a block gives NaN, but counts as a non-zero for p = 0. p in {0, 1, 2, inf}: within 1 ulp
 * of exact (f64: 2 ulp), never an overflow or underflow on the way; other p: relative error
 * (8 + 16/p) 2^-53 before rounding to the score dtype. */
SPK_API spk_status spk_block_norms(spk_context *context, const spk_block *block,
                                   const spk_buffer *leaves, int32_t nleaves, double p,
                                   const spk_buffer *out);

/* Smallest / largest signed element per block. NaN in a block gives NaN; zeros come out as +0.
 *   out   grid_shape, score dtype */
SPK_API spk_status spk_block_min(spk_context *context, const spk_block *block,
                                 const spk_buffer *leaves, int32_t nleaves, const spk_buffer *out);
SPK_API spk_status spk_block_max(spk_context *context, const spk_block *block,
                                 const spk_buffer *leaves, int32_t nleaves, const spk_buffer *out);

/* Counts elements with |x| > eps; NaN counts.
 *   eps         >= 0; researchers use SPK_NNZ_EPS
 *   per_block   NULL, or grid_shape of SPK_I64
 *   total       may be NULL if per_block is not */
#define SPK_NNZ_EPS 1e-8
SPK_API spk_status spk_block_nnz(spk_context *context, const spk_block *block,
                                 const spk_buffer *leaves, int32_t nleaves, double eps,
                                 const spk_buffer *per_block, int64_t *total);

/* A caller's function of one block.
 *   elements   `count` = numel_per_block values, converted exactly to double: leaf 0's elements
 *              row-major inside its block, then leaf 1's, ...; valid during the call
 *   result     what goes to out[block_index], rounded to the score dtype
 * Non-zero return cancels. */
typedef int32_t (*spk_reduce_fn)(void *user, int64_t block_index, const double *elements,
                                 int64_t count, double *result);

/* Calls `fn` for each block, row-major in the grid, on the calling thread. Allocates one block of
 * doubles. On SPK_CANCELLED `out` holds the results so far.
 *   out   grid_shape, score dtype */
SPK_API spk_status spk_block_reduce(spk_context *context, const spk_block *block,
                                    const spk_buffer *leaves, int32_t nleaves, spk_reduce_fn fn,
                                    void *user, const spk_buffer *out);

/* --- writing ------------------------------------------------------------------------------ */

/* What an operation did; may be NULL wherever it is asked for. Set struct_size first.
 * Counts are of blocks, over the whole call. */
typedef struct spk_report {
  size_t struct_size;    /* sizeof(spk_report) */
  int64_t total;         /* blocks that the call looked at */
  int64_t requested;     /* blocks it was asked to keep; -1 where thresholds decide */
  int64_t achieved;      /* blocks it kept */
  int64_t ties;          /* blocks whose score equals the last kept and the first pruned score of
                            their scope: position (or the tie policy) decided about them. NaN ties
                            with NaN, -0 with +0 */
  int64_t not_converged; /* conditioned soft thresholding: blocks that ran out of steps */
} spk_report;

/* Zeroes the blocks whose mask is not 0.
 *   prune_mask   grid_shape, SPK_U8, 1 (any byte but 0) = is zeroed */
SPK_API spk_status spk_block_apply_mask(spk_context *context, const spk_block *block,
                                        const spk_buffer *leaves, const spk_buffer *into,
                                        int32_t nleaves, const spk_buffer *prune_mask);

/* Zeroes the blocks whose mask is 0: with what spk_scope_get_masks and other keep masks give.
 *   keep_mask   grid_shape, SPK_U8, 1 (any byte but 0) = survives */
SPK_API spk_status spk_block_apply_keep_mask(spk_context *context, const spk_block *block,
                                             const spk_buffer *leaves, const spk_buffer *into,
                                             int32_t nleaves, const spk_buffer *keep_mask);

/* Scales each block; each product is rounded once. A multiplier of 0 gives +0.0 even for NaN and
 * infinity.
 *   multiplier   grid_shape, any of the four float dtypes */
SPK_API spk_status spk_block_apply_multiplier(spk_context *context, const spk_block *block,
                                              const spk_buffer *leaves, const spk_buffer *into,
                                              int32_t nleaves, const spk_buffer *multiplier);

typedef struct spk_hard_options {
  size_t struct_size;       /* sizeof(spk_hard_options) */
  const spk_buffer *values; /* NULL = the weights; else one buffer per leaf, whose norms decide */
} spk_hard_options;

/* Zeroes the blocks with norm < threshold: strict, a norm equal to its threshold survives, and so
 * does a NaN norm. Norms are Euclidean, rounded to the score dtype.
 *   thresholds   SPK_F32 or SPK_F64; grid_shape, or one number for all; NaN is refused
 *   options      may be NULL */
SPK_API spk_status spk_block_hard_threshold(spk_context *context, const spk_block *block,
                                            const spk_buffer *leaves, const spk_buffer *into,
                                            int32_t nleaves, const spk_buffer *thresholds,
                                            const spk_hard_options *options, spk_report *report);

/* Start from SPK_SOFT_OPTIONS_INIT, or set the fields as it does: a zeroed eps or atol is no
 * default here, but means none and as exact as can be. */
typedef struct spk_soft_options {
  size_t struct_size;             /* sizeof(spk_soft_options) */
  const spk_buffer *conditioners; /* NULL = Euclidean; else one buffer per leaf: h > 0, finite */
  double eps;                     /* Euclidean only; < 0 = machine epsilon of the handle's score
                                     dtype */
  double atol;                    /* conditioned only: relative tolerance; < 0 = 1e-8 */
  int32_t max_iter;               /* conditioned only: steps, 1 to 64; 0 = 20 */
  int32_t scale;                  /* 1 = multiply each threshold by sqrt(numel_per_block) */
} spk_soft_options;

#define SPK_SOFT_OPTIONS_INIT \
  { sizeof(spk_soft_options), NULL, -1.0, -1.0, 0, 0 }

/* Group soft thresholding, the proximal operator of sum_b t_b ||w_b||.
 *
 * Euclidean:    w <- w max(0, 1 - t / (||w||_2 + eps)); a block with ||w|| <= t becomes +0.0.
 * Conditioned:  the minimiser of 1/2 (x-w)' H (x-w) + t ||x||_2 for diagonal H = diag(h), as with
 *               Adam's sqrt(v)+eps: +0.0 when ||h.w|| <= t, else x = h.w / (h + mu) with mu the
 *               root of mu ||h.w / (h + mu)|| = t. eps plays no part.
 *
 * A NaN norm leaves a block unchanged, whatever t is; t = +inf zeroes it; ||w|| = +inf with finite
 * t leaves it unchanged; t = 0 and conditioned changes nothing. Norm, factor and product are
 * double, rounded once to the dtype; where no f64 takes part, mu is found to 2^-42, of which
 * f32 shows 2^-24, and a first step is not counted by max_iter. f64: weights and conditioners of
 * one block may each spread over 2^900; beyond that, elements at the lower end may be lost.
 *
 *   thresholds   SPK_F32 or SPK_F64; grid_shape, or one number for all; NaN or < 0 is refused
 *   options      may be NULL
 *
 * SPK_NOT_CONVERGED: all was written; blocks that ran out of steps hold their best iterate, and the
 * report counts them. */
SPK_API spk_status spk_block_soft_threshold(spk_context *context, const spk_block *block,
                                            const spk_buffer *leaves, const spk_buffer *into,
                                            int32_t nleaves, const spk_buffer *thresholds,
                                            const spk_soft_options *options, spk_report *report);

/* Copies into the views.
 *   source   one buffer per leaf, any float dtype (rounded once); SPK_LAYOUT_VIEW reads it as the
 *            leaf's view does */
SPK_API spk_status spk_block_set_data(spk_context *context, const spk_block *block,
                                      const spk_buffer *leaves, int32_t nleaves,
                                      const spk_buffer *source);

/* --- rearranging -------------------------------------------------------------------------- */

/* The element mask of each leaf.
 *   block_mask   grid_shape, SPK_U8, keep mask (a prune mask gives prune masks: bytes are copied
 *                as 0 or 1)
 *   masks        one per leaf: SPK_U8, contiguous in the shape of the leaf's view */
SPK_API spk_status spk_block_get_masks(spk_context *context, const spk_block *block,
                                       const spk_buffer *block_mask, const spk_buffer *masks,
                                       int32_t nleaves);

/* The blocks as a view of the same memory, no copy. For a view of shape B x b in each dimension:
 *   reorder = 0   (B0, b0, B1, b1, ...)
 *   reorder = 1   (B0, B1, ..., b0, b1, ...)
 * The result may have up to 2 * SPK_MAX_NDIM dimensions, and then describes memory but takes no
 * blocks. Refused for a coupling of several leaves,
 * which lie in different buffers: use spk_block_block_view_merged. */
SPK_API spk_status spk_block_block_view(const spk_block *block, int32_t reorder, spk_view **out);

/* The blocks gathered, each in one piece.
 *   out   (grid_shape..., numel_per_block); the leaves' dtype if they agree, else the score dtype.
 *         Inside a block: leaf 0's elements row-major, then leaf 1's, ... */
SPK_API spk_status spk_block_block_view_merged(spk_context *context, const spk_block *block,
                                               const spk_buffer *leaves, int32_t nleaves,
                                               const spk_buffer *out);

/* Repeats each block's value over the elements of the block.
 *   values   grid_shape, any dtype
 *   out      one per leaf: the dtype of values, contiguous in the shape of the leaf's view */
SPK_API spk_status spk_block_broadcast_block_to_element(spk_context *context,
                                                        const spk_block *block,
                                                        const spk_buffer *values,
                                                        const spk_buffer *out, int32_t nleaves);

/* Descriptions of a contiguous grid array: in shape (B0, 1, B1, 1, ...), which broadcasts against
 * spk_block_block_view (the "fake" form of the broadcast), and in grid_shape. Views have float
 * dtypes only. */
SPK_API spk_status spk_block_broadcast_fake(const spk_block *block, int32_t dtype, spk_view **out);
SPK_API spk_status spk_block_expand_block_tensor(const spk_block *block, int32_t dtype,
                                                 spk_view **out);

/* The same helpers for a view alone: a block spec of `shape` is made for the call. ndim 0 = blocks
 * of one element. */
SPK_API spk_status spk_view_apply_mask(spk_context *context, const spk_view *view,
                                       const spk_buffer *leaf, const spk_buffer *into, int32_t ndim,
                                       const int64_t *shape, const spk_buffer *prune_mask);
SPK_API spk_status spk_view_apply_keep_mask(spk_context *context, const spk_view *view,
                                            const spk_buffer *leaf, const spk_buffer *into,
                                            int32_t ndim, const int64_t *shape,
                                            const spk_buffer *keep_mask);
SPK_API spk_status spk_view_apply_multiplier(spk_context *context, const spk_view *view,
                                             const spk_buffer *leaf, const spk_buffer *into,
                                             int32_t ndim, const int64_t *shape,
                                             const spk_buffer *multiplier);
SPK_API spk_status spk_view_block_view_of(const spk_view *view, int32_t ndim, const int64_t *shape,
                                          int32_t reorder, spk_view **out);
SPK_API spk_status spk_view_block_view_merged(spk_context *context, const spk_view *view,
                                              const spk_buffer *leaf, int32_t ndim,
                                              const int64_t *shape, const spk_buffer *out);
SPK_API spk_status spk_view_broadcast_block_to_element(spk_context *context, const spk_view *view,
                                                       int32_t ndim, const int64_t *shape,
                                                       const spk_buffer *values,
                                                       const spk_buffer *out);

/* ------------------------------------------------------------------------------------------
 * 7. Scopes and couplings
 * ------------------------------------------------------------------------------------------ */

/* A scope spec cuts the grid of a block into a grid of scopes; a scope coupling joins several scope
 * specs so that the blocks of scope i of every member compete together. Both are an spk_scope. */
typedef struct spk_scope spk_scope;

/* Creates a scope spec over `block`, which it keeps alive.
 *   ndim    0 to the block's grid_ndim; missing trailing dimensions span theirs, so
 *           spk_scope_create(block, 0, NULL, NULL, &scope) makes one scope of all blocks
 *   shape   blocks of a scope along each grid dimension; <= 0 spans the dimension; each must divide
 *           the grid's
 *   name    copied, used in messages; NULL = "scope" */
SPK_API spk_status spk_scope_create(const spk_block *block, int32_t ndim, const int64_t *shape,
                                    const char *name, spk_scope **out);

/* Couples scopes (specs or couplings, whose members join); `orders` as in spk_block_couple, on
 * scope grids. Members may have different numbers of blocks in a scope, and of elements in a block,
 * and may end with different densities. Scores are concatenated in member order. */
SPK_API spk_status spk_scope_couple(spk_scope *const *members, int32_t count, const int32_t *orders,
                                    const char *name, spk_scope **out);

SPK_API void spk_scope_retain(spk_scope *scope);
SPK_API void spk_scope_release(spk_scope *scope);

/* Facts. Arrays have grid_ndim entries and live as long as the scope. NULL scope: -1 or NULL. */
SPK_API const char *spk_scope_name(const spk_scope *scope);
SPK_API int32_t spk_scope_grid_ndim(const spk_scope *scope);
SPK_API const int64_t *spk_scope_grid_shape(const spk_scope *scope);
/* Number of scopes: the product of the grid shape. */
SPK_API int64_t spk_scope_numscope(const spk_scope *scope);
SPK_API int64_t spk_scope_numblk_per_scope(const spk_scope *scope);
SPK_API int64_t spk_scope_numel_per_scope(const spk_scope *scope);
SPK_API int32_t spk_scope_score_dtype(const spk_scope *scope);
/* Members of a coupling (1 for a scope spec), the block of member `index` (borrowed; NULL out of
 * range), and how many blocks it brings to a scope (-1 out of range). */
SPK_API int32_t spk_scope_member_count(const spk_scope *scope);
SPK_API const spk_block *spk_scope_member_block(const spk_scope *scope, int32_t index);
SPK_API int64_t spk_scope_member_numblk(const spk_scope *scope, int32_t index);
/* Leaves of all members, in order. */
SPK_API int32_t spk_scope_leaf_count(const spk_scope *scope);
SPK_API const spk_view *spk_scope_leaf_view(const spk_scope *scope, int32_t index);

/* n - floor(sparsity * n) for n = numblk_per_scope: blocks that stay at a sparsity in [0, 1]. Here
 * and wherever a rate meets a count, floor is taken of x (1 + 2^-50), so that 0.29 * 100 is 29. */
SPK_API spk_status spk_scope_sparsity_to_nnz(const spk_scope *scope, double sparsity, int64_t *nnz);

/* ------------------------------------------------------------------------------------------
 * 8. Scope operations
 * ------------------------------------------------------------------------------------------ */

/* Blocks are ranked by score, largest first; equal scores by position in the scope (row-major,
 * members in order), lower first; NaN ranks above +inf, so it is kept and never silently dropped.
 * A count of 0 zeroes the scope, a count of numblk_per_scope changes nothing. */

/* Lp norms of blocks, arranged by scope; p as in spk_block_norms.
 *   out   (grid_shape..., numblk_per_scope), score dtype; members concatenated on the last axis */
SPK_API spk_status spk_scope_block_norms(spk_context *context, const spk_scope *scope,
                                         const spk_buffer *leaves, int32_t nleaves, double p,
                                         const spk_buffer *out);

/* Arranges block arrays by scope.
 *   values   one per member: the grid_shape of its block, any one dtype
 *   out      (grid_shape..., numblk_per_scope), the same dtype */
SPK_API spk_status spk_scope_block_to_scope(spk_context *context, const spk_scope *scope,
                                            const spk_buffer *values, int32_t nmembers,
                                            const spk_buffer *out);
/* The same without a copy, as a view of a contiguous block-grid array of a float `dtype`: shapes as
 * in spk_block_block_view. Refused for a coupling of several members. */
SPK_API spk_status spk_scope_block_to_scope_view(const spk_scope *scope, int32_t dtype,
                                                 int32_t reorder, spk_view **out);

/* Repeats each scope's value over its blocks.
 *   values   grid_shape, any dtype
 *   out      one per member: the grid_shape of its block, the same dtype */
SPK_API spk_status spk_scope_scope_to_block(spk_context *context, const spk_scope *scope,
                                            const spk_buffer *values, const spk_buffer *out,
                                            int32_t nmembers);

/* Where scores come from; exactly one source. Zero the rest. */
typedef struct spk_score_source {
  size_t struct_size;           /* sizeof(spk_score_source) */
  const spk_buffer *values;     /* one per leaf, scored by the Euclidean norms of its blocks */
  const spk_buffer *scores;     /* or (grid_shape..., numblk_per_scope), score dtype */
  const spk_buffer *block_mask; /* or, for spk_scope_get_masks only, a keep mask of that shape */
} spk_score_source;

/* The k-th largest score of each scope, 1-based: k = 1 is the largest.
 *   source   values or scores, for `nleaves` leaves
 *   k        `nk` numbers in [1, numblk_per_scope]: one for all scopes, or one per scope
 *   out      grid_shape, score dtype */
SPK_API spk_status spk_scope_kth_largest(spk_context *context, const spk_scope *scope,
                                         const spk_score_source *source, int32_t nleaves,
                                         const int64_t *k, int64_t nk, const spk_buffer *out);

/* A threshold between the k-th and the next score: (k_weight v_k + v_(k+1)) / (k_weight + 1),
 * rounded so that v_(k+1) < mid <= v_k unless the two are equal: used as a threshold it keeps
 * exactly k. But for NaN: v_k = NaN gives +inf, which keeps every NaN and every +inf, unless v_(k+1)
 * is NaN too, which gives NaN, no threshold.
 *   k          in [1, numblk_per_scope - 1]
 *   k_weight   > 0 and finite; 1 is the middle */
SPK_API spk_status spk_scope_kth_mid(spk_context *context, const spk_scope *scope,
                                     const spk_score_source *source, int32_t nleaves,
                                     const int64_t *k, int64_t nk, double k_weight,
                                     const spk_buffer *out);

/* Zeroes the blocks with norm < threshold of their scope (strict).
 *   thresholds   SPK_F32 or SPK_F64; the scope's grid_shape, or one number for all; NaN is refused */
SPK_API spk_status spk_scope_hard_threshold(spk_context *context, const spk_scope *scope,
                                            const spk_buffer *leaves, const spk_buffer *into,
                                            int32_t nleaves, const spk_buffer *thresholds,
                                            const spk_hard_options *options, spk_report *report);

#define SPK_TIES_BY_POSITION 0 /* exactly the count; among equals the lower position is kept */
#define SPK_TIES_KEEP_ALL 1    /* every block tied with the last kept one is kept too */

/* Zeroed fields mean the default. */
typedef struct spk_select_options {
  size_t struct_size;       /* sizeof(spk_select_options) */
  const spk_buffer *values; /* scores are norms of these instead of the weights'; one per leaf */
  const spk_buffer *scores; /* or the scores themselves: (grid_shape..., numblk_per_scope) */
  int32_t ties;             /* SPK_TIES_... */
  int32_t reserved;         /* 0 */
} spk_select_options;

/* Keeps exactly `count` blocks of each scope, those of largest Euclidean norm, and zeroes the rest:
 * magnitude pruning with an exact budget.
 *   counts    `ncounts` numbers in [0, numblk_per_scope]: one for all scopes, or one per scope
 *   options   may be NULL */
SPK_API spk_status spk_scope_keep_top(spk_context *context, const spk_scope *scope,
                                      const spk_buffer *leaves, const spk_buffer *into,
                                      int32_t nleaves, const int64_t *counts, int64_t ncounts,
                                      const spk_select_options *options, spk_report *report);

/* The same selection as element masks; nothing is pruned.
 *   counts   as above; NULL and 0 when the source is a block mask
 *   source   values, scores or block_mask (whose ones are then both requested and achieved)
 *   ties     SPK_TIES_...
 *   masks    one keep mask per leaf: SPK_U8, contiguous in the shape of the leaf's view */
SPK_API spk_status spk_scope_get_masks(spk_context *context, const spk_scope *scope,
                                       const spk_score_source *source, const int64_t *counts,
                                       int64_t ncounts, int32_t ties, const spk_buffer *masks,
                                       int32_t nleaves, spk_report *report);

/* spk_block_soft_threshold with one threshold per scope; `scale` uses each member's own
 * numel_per_block.
 *   thresholds   the scope's grid_shape, or one number for all */
SPK_API spk_status spk_scope_soft_threshold(spk_context *context, const spk_scope *scope,
                                            const spk_buffer *leaves, const spk_buffer *into,
                                            int32_t nleaves, const spk_buffer *thresholds,
                                            const spk_soft_options *options, spk_report *report);

/* ------------------------------------------------------------------------------------------
 * 9. One-call conveniences
 * ------------------------------------------------------------------------------------------ */

/* N:M sparsity: of every m elements in a row along `axis`, keeps the n of largest magnitude. The
 * report counts elements, which are the blocks here.
 *   axis   0 <= axis < ndim, or negative to count from the end; its extent must be a multiple of m
 *   n      0 <= n <= m */
SPK_API spk_status spk_prune_nm(spk_context *context, const spk_view *view,
                                const spk_buffer *weights, const spk_buffer *into, int32_t axis,
                                int64_t n, int64_t m, spk_report *report);

/* Unstructured magnitude pruning of the whole view: exactly floor(sparsity * numel) elements become
 * zero.
 *   sparsity   in [0, 1] */
SPK_API spk_status spk_prune_unstructured(spk_context *context, const spk_view *view,
                                          const spk_buffer *weights, const spk_buffer *into,
                                          double sparsity, spk_report *report);

/* Euclidean soft thresholding of blocks of `shape` (as in spk_block_create) with one threshold. */
SPK_API spk_status spk_soft_threshold_blocks(spk_context *context, const spk_view *view,
                                             const spk_buffer *weights, const spk_buffer *into,
                                             int32_t ndim, const int64_t *shape, double threshold,
                                             spk_report *report);

/* ------------------------------------------------------------------------------------------
 * 10. Version and build
 * ------------------------------------------------------------------------------------------ */

#define SPK_VERSION_MAJOR 0
#define SPK_VERSION_MINOR 1
#define SPK_VERSION_PATCH 0
#define SPK_VERSION (SPK_VERSION_MAJOR * 10000 + SPK_VERSION_MINOR * 100 + SPK_VERSION_PATCH)

/* SPK_VERSION of the library that is loaded. */
SPK_API int32_t spk_version(void);
/* One line for a bug report: version, executors and SIMD targets built in, and the target in use,
 * such as "sparsekit 0.1.0; executors: serial tbb openmp host; simd: SSE4 AVX2 AVX3; using AVX3".
 * Static storage. */
SPK_API const char *spk_build_info(void);
/* 1 if contexts with this executor can be created, else 0. */
SPK_API int32_t spk_executor_available(int32_t executor);

#ifdef __cplusplus
}
#endif

#endif /* SPARSEKIT_SPARSEKIT_H_ */
