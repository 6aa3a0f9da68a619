/*
 * What the Perl wrapper needs besides SWIG: errors, arrays (packed strings, PDL), lists, functions.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Whatever refuses throws at once: scratch is mortal, pins are on Perl's save stack.
 */
#ifndef SPARSEKIT_BINDINGS_PERL_SUPPORT_H_
#define SPARSEKIT_BINDINGS_PERL_SUPPORT_H_

#include "flat.h"

#ifdef SPERL_PDL
#include <pdl.h>
#include <pdlcore.h>
#endif

/* --- errors ------------------------------------------------------------------------------- */

/* Dies with an object of the class of this status; SparseKit.pm makes it. */
static void sperl_throw(pTHX_ spk_status status, const char *message) {
  dSP;
  ENTER;
  SAVETMPS;
  PUSHMARK(SP);
  mXPUSHi(status);
  mXPUSHs(newSVpv(spk_status_string(status), 0));
  mXPUSHs(newSVpv(message, 0));
  PUTBACK;
  call_pv("SparseKit::Error::_throw", G_VOID | G_DISCARD);
}

static void sperl_refuse(pTHX_ spk_status status, const char *what, const char *got,
                         const char *expected) {
  flat_begin();
  flat_refuse(status, what, got, expected);
  sperl_throw(aTHX_ status, flat_error.message);
}

/* What SWIG says of an argument of the wrong type. */
#undef SWIG_Error
#define SWIG_Error(code, text) sperl_throw(aTHX_ SPK_INVALID_ARGUMENT, text)

/* For messages. */
static const char *sperl_kind(SV *value) {
  if (!SvOK(value)) return "undef";
  if (sv_isobject(value)) return sv_reftype(SvRV(value), 1);
  return SvROK(value) ? sv_reftype(SvRV(value), 0) : "a plain scalar";
}

/* --- arrays ------------------------------------------------------------------------------- */

/* What a call does to an array. Those that are written in place may be read-only: it is told. */
enum sperl_use { SPERL_READ, SPERL_WRITE, SPERL_INPLACE };

/* While a call is under way, a function of the caller's may change the scalar whose string the
 * library works on. Without a length, as far as Perl knows, the memory is not Perl's to move or to
 * free: elements can be set, and what needs other memory gets it. */
typedef struct sperl_pin {
  SV *scalar;
  char *memory;
  STRLEN length;
} sperl_pin;

static void sperl_unpin(pTHX_ void *data) {
  sperl_pin *pin = (sperl_pin *)data;
  if (SvTYPE(pin->scalar) >= SVt_PV && SvPVX(pin->scalar) == pin->memory) {
    SvLEN_set(pin->scalar, pin->length);
  } else {
    Safefree(pin->memory);
  }
  SvREFCNT_dec(pin->scalar);
  Safefree(pin);
}

/* A string without a length of its own is pinned already, or somebody else's memory. */
static void sperl_pin_string(pTHX_ SV *scalar) {
  sperl_pin *pin;
  sv_2mortal(SvREFCNT_inc(scalar));
  if (SvLEN(scalar) == 0 || SvIsCOW(scalar) || SvREADONLY(scalar)) return;
  Newx(pin, 1, sperl_pin);
  pin->scalar = SvREFCNT_inc(scalar);
  pin->memory = SvPVX(scalar);
  pin->length = SvLEN(scalar);
  SvLEN_set(scalar, 0);
  SAVEDESTRUCTOR_X(sperl_unpin, pin);
}

static int64_t sperl_element_size(int32_t dtype) {
  return (dtype & 0xff) / 8;
}

static int sperl_aligned(SV *scalar, int64_t size) {
  return (UV)SvPVX(scalar) % (UV)size == 0;
}

/* The string becomes the scalar's own: not shared with copies, at the beginning of its memory. */
static void sperl_own_string(pTHX_ SV *scalar) {
  (void)SvPV_force_nolen(scalar);
  (void)SvOOK_off(scalar);
  SvPOK_only(scalar);
}

/* Another owner of a string that is shared among copies: it stays as long as one has it. */
static SV *sperl_share(pTHX_ SV *scalar) {
  SV *owner = sv_newmortal();
  sv_setsv_flags(owner, scalar, SV_NOSTEAL | SV_COW_SHARED_HASH_KEYS | SV_COW_OTHER_PVS);
  return owner;
}

static spk_buffer sperl_string(pTHX_ SV *scalar, int32_t dtype, enum sperl_use use,
                               int *read_only) {
  const int64_t size = sperl_element_size(dtype);
  const int constant = SvREADONLY(scalar) != 0;
  if (SvGMAGICAL(scalar)) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "array", "a tied scalar", "a packed string");
  }
  if (!SvPOK(scalar) || (SvUTF8(scalar) && (constant || !sv_utf8_downgrade(scalar, TRUE)))) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "array",
                 SvPOK(scalar) ? "a string of characters" : sperl_kind(scalar), "a packed string");
  }
  *read_only |= constant;
  if (!constant && (use != SPERL_READ || !sperl_aligned(scalar, size))) {
    sperl_own_string(aTHX_ scalar);
  }
  if (!sperl_aligned(scalar, size)) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "array", "memory that is not aligned",
                 "a packed string of its own");
  }
  if ((int64_t)SvCUR(scalar) % size != 0) {
    sperl_refuse(aTHX_ SPK_SHAPE_MISMATCH, "packed string", "a piece of an element",
                 "whole elements");
  }
  SV *holder = SvIsCOW(scalar) ? sperl_share(aTHX_ scalar) : scalar;
  sperl_pin_string(aTHX_ holder);
  const spk_buffer buffer = {SvPVX(holder), (int64_t)SvCUR(holder) / size, dtype, SPK_LAYOUT_VIEW,
                             NULL};
  return buffer;
}

#ifdef SPERL_PDL

static Core *sperl_core(pTHX) {
  SV *shared = get_sv("PDL::SHARE", 0);
  Core *core = shared == NULL ? NULL : INT2PTR(Core *, SvIV(shared));
  if (core == NULL || core->Version != PDL_CORE_VERSION) {
    sperl_refuse(aTHX_ SPK_UNAVAILABLE, "array", "an ndarray of another version of PDL",
                 "the version that SparseKit was built with");
  }
  return core;
}

/* 0 if the ndarray's type is not `dtype`, or with dtype 0 none of SparseKit's. */
static int32_t sperl_pdl_dtype(const pdl *ndarray, int32_t dtype) {
  int32_t own = 0;
  switch (ndarray->datatype) {
    case PDL_B:
      own = SPK_U8;
      break;
    case PDL_F:
      own = SPK_F32;
      break;
    case PDL_D:
      own = SPK_F64;
      break;
    case PDL_LL:
    case PDL_IND:
      own = SPK_I64;
      break;
    case PDL_US:
      own = dtype == SPK_F16 || dtype == SPK_BF16 ? dtype : 0;
      break;
    default:
      break;
  }
  return dtype == 0 || dtype == own ? own : 0;
}

/* Tells the ndarrays that follow this one that it has changed. */
static void sperl_changed(pTHX_ void *data) {
  SV *ndarray = (SV *)data;
  SV *reference = newRV_noinc(ndarray);
  Core *core = sperl_core(aTHX);
  core->changed(core->SvPDLV(reference), PDL_PARENTDATACHANGED, 0);
  SvREFCNT_dec(reference);
}

/* A slice shows other memory than its own: it counts as read-only. */
static spk_buffer sperl_pdl(pTHX_ SV *value, int32_t dtype, enum sperl_use use, int *read_only) {
  Core *core = sperl_core(aTHX);
  pdl *ndarray = core->SvPDLV(value);
  const int32_t own = sperl_pdl_dtype(ndarray, dtype);
  if (own == 0) {
    sperl_refuse(aTHX_ SPK_UNSUPPORTED_DTYPE, "array", "an ndarray of another type",
                 "float, double, byte, longlong, or ushort with f16 or bf16 said");
  }
  core->barf_if_error(core->make_physical(ndarray));
  *read_only |= ndarray->trans_parent != NULL;
  sv_2mortal(SvREFCNT_inc(SvRV(value)));
  if (ndarray->datasv != NULL) sperl_pin_string(aTHX_(SV *) ndarray->datasv);
  if (use != SPERL_READ && ndarray->trans_parent == NULL && ndarray->sv != NULL) {
    SAVEDESTRUCTOR_X(sperl_changed, SvREFCNT_inc(SvRV(value)));
  }
  const spk_buffer buffer = {ndarray->data, (int64_t)ndarray->nvals, own, SPK_LAYOUT_VIEW, NULL};
  return buffer;
}

#else

static spk_buffer sperl_pdl(pTHX_ SV *value, int32_t dtype, enum sperl_use use, int *read_only) {
  const spk_buffer none = {NULL, 0, dtype, SPK_LAYOUT_VIEW, NULL};
  PERL_UNUSED_VAR(value);
  PERL_UNUSED_VAR(use);
  PERL_UNUSED_VAR(read_only);
  sperl_refuse(aTHX_ SPK_UNAVAILABLE, "array", "an ndarray",
               "a packed string: SparseKit was built without PDL");
  return none;
}

#endif

/* An array is an ndarray, or a SparseKit::Array: [dtype, reference to a string or ndarray]. */
static spk_buffer sperl_buffer(pTHX_ SV *value, enum sperl_use use, int *read_only) {
  const spk_buffer none = {NULL, 0, 0, SPK_LAYOUT_VIEW, NULL};
  int own_read_only = 0;
  int32_t dtype = 0;
  if (!SvOK(value)) return none;
  if (sv_isobject(value) && sv_derived_from(value, "SparseKit::Array")) {
    AV *pair = (AV *)SvRV(value);
    dtype = (int32_t)SvIV(*av_fetch(pair, 0, 0));
    value = *av_fetch(pair, 1, 0);
  } else if (!sv_isobject(value) || !sv_derived_from(value, "PDL")) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "array", sperl_kind(value),
                 "a SparseKit::Array or an ndarray");
  }
  const spk_buffer buffer = sv_isobject(value)
                                ? sperl_pdl(aTHX_ value, dtype, use, &own_read_only)
                                : sperl_string(aTHX_ SvRV(value), dtype, use, &own_read_only);
  if (use == SPERL_WRITE && own_read_only) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "array", "a read-only one", "a writable one");
  }
  *read_only |= own_read_only;
  return buffer;
}

/* --- numbers ------------------------------------------------------------------------------ */

static double sperl_number(pTHX_ SV *value) {
  if (SvROK(value) || !looks_like_number(value)) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "number",
                 SvPOK(value) ? SvPV_nolen(value) : sperl_kind(value), "a number");
  }
  return SvNV(value);
}

static int64_t sperl_integer(pTHX_ SV *value, int64_t low, int64_t high) {
  const double number = sperl_number(aTHX_ value);
  const IV integer = SvIV(value);
  if (number != (double)integer || integer < low || integer > high) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "integer", SvPV_nolen(value), "an integer in range");
  }
  return integer;
}

/* --- lists -------------------------------------------------------------------------------- */

/* Scratch for `count` items that lives until the caller's statement ends. */
static void *sperl_scratch(pTHX_ int32_t count, size_t size) {
  return SvPVX(sv_2mortal(newSV(((size_t)count + 1) * size)));
}

/* NULL for undef. */
static AV *sperl_list(pTHX_ SV *value, const char *what, int32_t *count) {
  *count = 0;
  if (!SvOK(value)) return NULL;
  if (!SvROK(value) || sv_isobject(value) || SvTYPE(SvRV(value)) != SVt_PVAV) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, what, sperl_kind(value), "a reference to a list");
  }
  *count = (int32_t)(av_len((AV *)SvRV(value)) + 1);
  return (AV *)SvRV(value);
}

static SV *sperl_item(pTHX_ AV *list, int32_t i) {
  SV **item = av_fetch(list, i, 0);
  return item == NULL ? &PL_sv_undef : *item;
}

static spk_buffer *sperl_buffers(pTHX_ SV *value, enum sperl_use use, int32_t *count,
                                 int *read_only) {
  AV *list = sperl_list(aTHX_ value, "arrays", count);
  spk_buffer *buffers = (spk_buffer *)sperl_scratch(aTHX_ * count, sizeof *buffers);
  *read_only = 0;
  for (int32_t i = 0; i < *count; ++i) {
    buffers[i] = sperl_buffer(aTHX_ sperl_item(aTHX_ list, i), use, read_only);
  }
  return buffers;
}

/* NULL if there are none. */
static int64_t *sperl_integers(pTHX_ SV *value, int32_t *count) {
  AV *list = sperl_list(aTHX_ value, "integers", count);
  int64_t *values = (int64_t *)sperl_scratch(aTHX_ * count, sizeof *values);
  for (int32_t i = 0; i < *count; ++i) {
    SV *item = sperl_item(aTHX_ list, i);
    if (!looks_like_number(item) || SvNV(item) != (NV)SvIV(item)) {
      sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "integers", SvOK(item) ? SvPV_nolen(item) : "undef",
                   "integers");
    }
    values[i] = SvIV(item);
  }
  return *count == 0 ? NULL : values;
}

/* NULL for undef, and for what the end of the program has already taken apart. */
static void *sperl_handle(pTHX_ SV *value, swig_type_info *type) {
  void *handle = NULL;
  if (!SvOK(value) || (PL_dirty && !sv_isobject(value))) return NULL;
  if (!sv_isobject(value) || !SWIG_IsOK(SWIG_ConvertPtr(value, &handle, type, 0))) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "handle", sperl_kind(value), type->str);
  }
  return handle;
}

/* A list of handles of one type; undef stands for a closed one. */
static void **sperl_handles(pTHX_ SV *value, swig_type_info *type, int32_t *count) {
  AV *list = sperl_list(aTHX_ value, "members", count);
  void **handles = (void **)sperl_scratch(aTHX_ * count, sizeof *handles);
  for (int32_t i = 0; i < *count; ++i) {
    handles[i] = sperl_handle(aTHX_ sperl_item(aTHX_ list, i), type);
  }
  return handles;
}

static SV *sperl_integer_list(pTHX_ const flat_ints *list) {
  AV *values = newAV();
  for (int32_t i = 0; i < list->count; ++i) av_push(values, newSViv((IV)list->values[i]));
  return sv_2mortal(newRV_noinc((SV *)values));
}

static SV *sperl_number_list(pTHX_ const flat_numbers *list) {
  AV *values = newAV();
  for (int32_t i = 0; i < list->count; ++i) av_push(values, newSVnv(list->values[i]));
  return sv_2mortal(newRV_noinc((SV *)values));
}

/* --- functions ---------------------------------------------------------------------------- */

/* The wrapped call that is under way, and what a function of the caller's has thrown in it. */
typedef struct sperl_call {
  SV *thrown;
  struct sperl_call *outer;
} sperl_call;

static __thread sperl_call *sperl_current;

/* The phase of the program in which the outermost of them began. `exit` in a function of the caller's
 * leaves the library's calls behind on the C stack: then END blocks cannot make any. */
static __thread int sperl_phase;

/* Objects are not released while a call may still use them. */
static int32_t sperl_busy(void) {
  return sperl_current != NULL;
}

static void sperl_begin(pTHX_ sperl_call *call) {
  if (sperl_current == NULL) sperl_phase = (int)PL_phase;
  if (PL_phase == PERL_PHASE_END && sperl_phase != PERL_PHASE_END) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "call", "one after `exit` in a function of another",
                 "none");
  }
  call->thrown = NULL;
  call->outer = sperl_current;
  sperl_current = call;
  flat_begin();
}

static void sperl_end(pTHX_ sperl_call *call) {
  sperl_current = call->outer;
  if (call->thrown != NULL) croak_sv(sv_2mortal(call->thrown));
  if (flat_error.status != SPK_OK) sperl_throw(aTHX_ flat_error.status, flat_error.message);
}

/* Calls on a stack of Perl's of its own, so that no `last` or `next` gets out of it. */
static int32_t sperl_call_function(void *user, const double *numbers, int64_t count,
                                   double *result) {
  dTHX;
  sperl_call *call = sperl_current;
  int32_t stop = 1;
  if (call == NULL || call->thrown != NULL) return 1;
  dSP;
  PUSHSTACKi(PERLSI_UNKNOWN);
  ENTER;
  SAVETMPS;
  save_scalar(PL_errgv);
  PUSHMARK(SP);
  EXTEND(SP, (SSize_t)count);
  for (int64_t i = 0; i < count; ++i) mPUSHn(numbers[i]);
  PUTBACK;
  call_sv((SV *)user, G_SCALAR | G_EVAL);
  SPAGAIN;
  SV *value = POPs;
  PUTBACK;
  sperl_current = call;
  if (SvROK(ERRSV) || SvTRUE(ERRSV)) {
    call->thrown = newSVsv(ERRSV);
  } else if (!sv_isobject(value) || !sv_derived_from(value, "SparseKit::Cancel")) {
    *result = SvNV(value);
    stop = 0;
  }
  FREETMPS;
  LEAVE;
  POPSTACK;
  return stop;
}

static void sperl_drop_function(void *user) {
  dTHX;
  SvREFCNT_dec((SV *)user);
}

static SV *sperl_function(pTHX_ SV *value) {
  if (!SvROK(value) || SvTYPE(SvRV(value)) != SVt_PVCV) {
    sperl_refuse(aTHX_ SPK_INVALID_ARGUMENT, "function", sperl_kind(value),
                 "a reference to a function");
  }
  return newSVsv(value);
}

#endif /* SPARSEKIT_BINDINGS_PERL_SUPPORT_H_ */
