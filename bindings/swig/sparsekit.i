/*
 * The shared half of every wrapper: handles, errors, constants, and the names of the typemaps that
 * each language implements in lang/<x>/lang.i.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A language implements, once each:
 *
 *   %exception                                    raises flat_error in the language's way; a stashed
 *                                                 exception of a callback goes first
 *   (const spk_buffer *READ, int32_t COUNT)       a list of arrays that are read; none = not given;
 *                                                 an entry of it may be missing: data = NULL
 *   (const spk_buffer *WRITE, int32_t COUNT)      the same, written: read-only arrays are refused
 *   (const spk_buffer *INPLACE, int32_t COUNT)    written unless `into` is given: sets
 *                                                 flat_read_only to 1 if one is read-only, else to 0
 *   (const int64_t *INTS, int32_t COUNT)          a list of integers; none = NULL, 0
 *   (spk_block *const *HANDLES, int32_t COUNT)    a list of handles; the same for spk_scope
 *   flat_ints, flat_numbers   (out)               a list of integers, of numbers
 *   (flat_function FUNCTION, void *USER, flat_drop DROP)   a function of the language
 *
 * An array carries its data, its length in elements and its dtype (SPK_F32 ... SPK_U8, SPK_I64); a
 * language whose arrays do not know their dtype pairs them with one. It may carry a view of its own
 * (SPK_LAYOUT_OWN) where the language has strided arrays. Nothing is copied: the address that the
 * library sees is the array's own.
 */
%module sparsekit

%{
#define SWIG_FILE_WITH_INIT
#include "flat.h"
%}

/* <stdint.i> would make Java truncate to 32 bits. */
%apply int { int32_t };
%apply long long { int64_t };

%nodefaultctor;
%nodefaultdtor;

/* Handles. Closing one twice, or in any order, is the library's own reference counting; it never
 * fails. */
%define SPARSEKIT_HANDLE(NAME, TYPE)
%noexception TYPE::~TYPE;
%rename(NAME) TYPE;
typedef struct TYPE {
  %extend {
    ~TYPE() { TYPE##_release($self); }
  }
} TYPE;
%enddef

%newobject flat_context_create;
%newobject flat_view_create;
%newobject flat_view_parse;
%newobject flat_view_block_view_of;
%newobject flat_block_create;
%newobject flat_block_couple;
%newobject flat_block_leaf;
%newobject flat_block_leaf_view;
%newobject flat_block_block_view;
%newobject flat_block_broadcast_fake;
%newobject flat_block_expand_block_tensor;
%newobject flat_scope_create;
%newobject flat_scope_couple;
%newobject flat_scope_member_block;
%newobject flat_scope_leaf_view;
%newobject flat_scope_block_to_scope_view;
%newobject flat_schedule_create_cosine;
%newobject flat_schedule_create_linear;
%newobject flat_schedule_create_magnitude;
%newobject flat_schedule_create_custom;
%newobject flat_masking_create;

/* lang/<x>/lang.i, found through SWIG's include path. */
%include "lang.i"

SPARSEKIT_HANDLE(ContextHandle, spk_context)
SPARSEKIT_HANDLE(ViewHandle, spk_view)
SPARSEKIT_HANDLE(BlockHandle, spk_block)
SPARSEKIT_HANDLE(ScopeHandle, spk_scope)
SPARSEKIT_HANDLE(ScheduleHandle, spk_schedule)
SPARSEKIT_HANDLE(MaskingHandle, spk_masking)

%apply (const spk_buffer *READ, int32_t COUNT) {
  (const spk_buffer *leaves, int32_t nleaves),
  (const spk_buffer *values, int32_t nvalues),
  (const spk_buffer *scores, int32_t nscores),
  (const spk_buffer *thresholds, int32_t nthresholds),
  (const spk_buffer *conditioners, int32_t nconditioners),
  (const spk_buffer *prune_mask, int32_t nprune_mask),
  (const spk_buffer *keep_mask, int32_t nkeep_mask),
  (const spk_buffer *block_mask, int32_t nblock_mask),
  (const spk_buffer *multiplier, int32_t nmultiplier),
  (const spk_buffer *source, int32_t nsource),
  (const spk_buffer *blob, int32_t nblob)
};
%apply (const spk_buffer *WRITE, int32_t COUNT) {
  (const spk_buffer *into, int32_t ninto),
  (const spk_buffer *out, int32_t nout),
  (const spk_buffer *target, int32_t ntarget),
  (const spk_buffer *masks, int32_t nmasks),
  (const spk_buffer *gradients, int32_t ngradients),
  (const spk_buffer *momenta, int32_t nmomenta),
  (const spk_buffer *adam_m1, int32_t nadam_m1),
  (const spk_buffer *adam_m2, int32_t nadam_m2)
};
%apply (const spk_buffer *INPLACE, int32_t COUNT) {
  (const spk_buffer *weights, int32_t nweights)
};
%apply (const int64_t *INTS, int32_t COUNT) {
  (const int64_t *shape, int32_t nshape),
  (const int64_t *stride, int32_t nstride),
  (const int64_t *index, int32_t nindex),
  (const int64_t *orders, int32_t norders),
  (const int64_t *counts, int32_t ncounts),
  (const int64_t *k, int32_t nk)
};
%apply (spk_block *const *HANDLES, int32_t COUNT) {
  (spk_block *const *members, int32_t nmembers)
};
%apply (spk_scope *const *HANDLES, int32_t COUNT) {
  (spk_scope *const *members, int32_t nmembers)
};
%apply (flat_function FUNCTION, void *USER, flat_drop DROP) {
  (flat_function function, void *user, flat_drop drop)
};

/* A function of the language, kept alive until its handle is closed. */
%rename(Callback) flat_callback;
%ignore flat_function;
%ignore flat_drop;
%ignore flat_ints;
%ignore flat_numbers;
%extend flat_callback {
  flat_callback(flat_function function, void *user, flat_drop drop) {
    flat_callback *callback = (flat_callback *)malloc(sizeof *callback);
    if (callback == NULL) {
      drop(user);
      flat_refuse(SPK_OUT_OF_MEMORY, "function", "no memory", "some");
      return NULL;
    }
    callback->function = function;
    callback->user = user;
    callback->drop = drop;
    return callback;
  }
  ~flat_callback() {
    if ($self == NULL) return;
    $self->drop($self->user);
    free($self);
  }
}

%rename("%(regex:/^flat_(.*)/\\1/)s", %$isfunction) "";
%include "flat.h"

/* The constants of the headers, without SPK_: of the rest, flat.h has made use. */
%rename("%(regex:/^SPK_(.*)/\\1/)s", %$isconstant) "";
%rename("$ignore", %$isfunction, regexmatch$name="^spk_") "";
%ignore spk_buffer;
%ignore spk_host_executor;
%ignore spk_allocator;
%ignore spk_context_options;
%ignore spk_report;
%ignore spk_hard_options;
%ignore spk_soft_options;
%ignore spk_score_source;
%ignore spk_select_options;
%ignore spk_layer;
%ignore spk_masking_options;
%ignore spk_init_options;
%ignore spk_update_report;
%ignore spk_layer_stats;
%ignore SPK_SOFT_OPTIONS_INIT;
#define SPK_STATIC
%include "sparsekit/sparsekit.h"
%include "sparsekit/training.h"
