/*
 * The typemaps of Lua: see sparsekit.i for what they mean, support.h for what they call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
%insert("header") "support.h"

%init %{
  slua_open(L);
%}

%native(array_new) int slua_array_new(lua_State *L);
%native(array_of_bytes) int slua_array_of_bytes(lua_State *L);
%native(array_borrow) int slua_array_borrow(lua_State *L);
%native(array_is) int slua_array_is(lua_State *L);
%native(array_dtype) int slua_array_dtype(lua_State *L);
%native(array_pointer) int slua_array_pointer(lua_State *L);
%native(close) int slua_close(lua_State *L);

%exception {
  slua_call call = {L, 0, slua_current};
  slua_current = &call;
  flat_begin();
  $action
  slua_current = call.outer;
  if (call.thrown != 0) {
    lua_pushvalue(L, call.thrown);
    SWIG_fail;
  }
  if (flat_error.status != SPK_OK) {
    slua_push_failure(L);
    SWIG_fail;
  }
}

/* Integers are integers where Lua has them. */
%typemap(in) int (int64_t number) {
  if (!slua_integer(L, $input, INT32_MIN, INT32_MAX, &number)) SWIG_fail;
  $1 = ($1_ltype)number;
}
%typemap(in) long long (int64_t number) {
  if (!slua_integer(L, $input, INT64_MIN, INT64_MAX, &number)) SWIG_fail;
  $1 = ($1_ltype)number;
}
%typemap(out) int, long long {
  slua_push_integer(L, $1);
  SWIG_arg++;
}
%apply int { int32_t };
%apply long long { int64_t };

%typemap(in) (const spk_buffer *READ, int32_t COUNT) (int read_only) {
  if (!slua_buffers(L, $input, &$1, &$2, &read_only)) SWIG_fail;
}
%typemap(in) (const spk_buffer *WRITE, int32_t COUNT) {
  if (!slua_writable_buffers(L, $input, &$1, &$2)) SWIG_fail;
}
%typemap(in) (const spk_buffer *INPLACE, int32_t COUNT) {
  if (!slua_buffers(L, $input, &$1, &$2, &flat_read_only)) SWIG_fail;
}
%typemap(in) (const int64_t *INTS, int32_t COUNT) {
  if (!slua_integers(L, $input, &$1, &$2)) SWIG_fail;
}
%typemap(in) (spk_block *const *HANDLES, int32_t COUNT) {
  if (!slua_handles(L, $input, $*1_descriptor, (void ***)&$1, &$2)) SWIG_fail;
}
%typemap(in) (spk_scope *const *HANDLES, int32_t COUNT) {
  if (!slua_handles(L, $input, $*1_descriptor, (void ***)&$1, &$2)) SWIG_fail;
}
%typemap(out) flat_ints {
  slua_push_integers(L, &$1);
  SWIG_arg++;
}
%typemap(out) flat_numbers {
  slua_push_numbers(L, $1.values, $1.count);
  SWIG_arg++;
}
%typemap(in) (flat_function FUNCTION, void *USER, flat_drop DROP) {
  if (!slua_function_of(L, $input, &$2)) SWIG_fail;
  $1 = slua_call_function;
  $3 = slua_drop_function;
}
