/*
 * The typemaps of Perl: see sparsekit.i for what they mean, support.h for what they call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
%insert("header") "support.h"

%noexception sperl_busy;
%rename(busy) sperl_busy;
int32_t sperl_busy(void);

%exception {
  sperl_call call;
  sperl_begin(aTHX_ &call);
  $action
  sperl_end(aTHX_ &call);
}

%typemap(in) int {
  $1 = ($1_ltype)sperl_integer(aTHX_ $input, INT32_MIN, INT32_MAX);
}
%typemap(in) long long {
  $1 = ($1_ltype)sperl_integer(aTHX_ $input, INT64_MIN, INT64_MAX);
}
%typemap(in) double {
  $1 = sperl_number(aTHX_ $input);
}
%apply int { int32_t };
%apply long long { int64_t };

/* Handles are plain references: SparseKit.pm owns them. */
%typemap(out) SWIGTYPE * {
  $result = SWIG_NewPointerObj($1, $1_descriptor, 0);
  argvi++;
}
%typemap(in) SWIGTYPE *, SWIGTYPE *DISOWN {
  $1 = ($1_ltype)sperl_handle(aTHX_ $input, $descriptor);
}
%typemap(in) (const spk_buffer *READ, int32_t COUNT) (int read_only) {
  $1 = sperl_buffers(aTHX_ $input, SPERL_READ, &$2, &read_only);
}
%typemap(in) (const spk_buffer *WRITE, int32_t COUNT) (int read_only) {
  $1 = sperl_buffers(aTHX_ $input, SPERL_WRITE, &$2, &read_only);
}
%typemap(in) (const spk_buffer *INPLACE, int32_t COUNT) {
  $1 = sperl_buffers(aTHX_ $input, SPERL_INPLACE, &$2, &flat_read_only);
}
%typemap(in) (const int64_t *INTS, int32_t COUNT) {
  $1 = sperl_integers(aTHX_ $input, &$2);
}
%typemap(in) (spk_block *const *HANDLES, int32_t COUNT) {
  $1 = (spk_block **)sperl_handles(aTHX_ $input, $*1_descriptor, &$2);
}
%typemap(in) (spk_scope *const *HANDLES, int32_t COUNT) {
  $1 = (spk_scope **)sperl_handles(aTHX_ $input, $*1_descriptor, &$2);
}
%typemap(out) flat_ints {
  $result = sperl_integer_list(aTHX_ &$1);
  argvi++;
}
%typemap(out) flat_numbers {
  $result = sperl_number_list(aTHX_ &$1);
  argvi++;
}
%typemap(in) (flat_function FUNCTION, void *USER, flat_drop DROP) {
  $2 = sperl_function(aTHX_ $input);
  $1 = sperl_call_function;
  $3 = sperl_drop_function;
}
