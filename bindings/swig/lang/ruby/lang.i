/*
 * Ruby's half of the wrapper: the module SparseKit::Flat, which the classes of SparseKit are made
 * of.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * An array is [object, dtype, layout]; nil is one that is missing. The object is a String of packed
 * numbers or an NArray, whose memory the library works on: neither moves nor is freed while a call
 * has its address, since the object is on the C stack, or in a buffer that is marked as if it were.
 */

%{
#ifdef HAVE_NARRAY_H
#include <narray.h>
#endif

/* How many calls of the library are under way, on all threads; the interpreter's lock is held. */
static int flat_ruby_calls;

/* How a block of the call that this thread has under way ended, if not by returning: an exception
 * or another jump, which goes on when the library has returned. */
static __thread int flat_ruby_jump;

/* --- failures ----------------------------------------------------------------------------- */

static void flat_ruby_raise(int32_t status, const char *message) {
  const VALUE error = rb_path2class("SparseKit::Error");
  rb_exc_raise(rb_funcall(error, rb_intern("of"), 2, INT2NUM(status), rb_str_new_cstr(message)));
}

static void flat_ruby_refuse(const char *what) {
  flat_ruby_raise(SPK_INVALID_ARGUMENT, what);
}

/* Ends a call. */
static void flat_ruby_end(void) {
  const int jump = flat_ruby_jump;
  flat_ruby_jump = 0;
  if (jump != 0) rb_jump_tag(jump);
  if (flat_error.status != SPK_OK) flat_ruby_raise(flat_error.status, flat_error.message);
}

/* --- arrays ------------------------------------------------------------------------------- */

enum { FLAT_READ, FLAT_WRITE, FLAT_INPLACE };

static void flat_ruby_string(VALUE string, int use, spk_buffer *buffer) {
  const long size = (buffer->dtype & 0xFF) / 8;
  /* A string may share its bytes with others until it is written. */
  if (use != FLAT_READ && !OBJ_FROZEN(string)) rb_str_modify(string);
  if (size == 0 || RSTRING_LEN(string) % size != 0)
    flat_ruby_refuse("array: got a String of odd length, expected a multiple of an element's");
  buffer->data = RSTRING_LEN(string) == 0 ? NULL : RSTRING_PTR(string);
  buffer->numel = RSTRING_LEN(string) / size;
}

#ifdef HAVE_NARRAY_H
static int flat_ruby_is_narray(VALUE object) {
  const ID name = rb_intern("NArray");
  return rb_const_defined(rb_cObject, name) &&
         RTEST(rb_obj_is_kind_of(object, rb_const_get(rb_cObject, name)));
}

static int flat_ruby_fits(int type, int32_t dtype) {
  switch (type) {
    case NA_BYTE: return dtype == SPK_U8;
    case NA_SINT: return dtype == SPK_F16 || dtype == SPK_BF16;
    case NA_SFLOAT: return dtype == SPK_F32;
    case NA_DFLOAT: return dtype == SPK_F64;
    default: return 0;
  }
}

static int flat_ruby_narray(VALUE object, spk_buffer *buffer) {
  struct NARRAY *array;
  if (!flat_ruby_is_narray(object)) return 0;
  GetNArray(object, array);
  if (!flat_ruby_fits(array->type, buffer->dtype))
    flat_ruby_raise(SPK_UNSUPPORTED_DTYPE, "array: got an NArray of another type than its dtype");
  buffer->data = array->ptr;
  buffer->numel = array->total;
  return 1;
}
#else
static int flat_ruby_narray(VALUE object, spk_buffer *buffer) {
  (void)object, (void)buffer;
  return 0;
}
#endif

/* Fills one buffer, and returns the object that it is of. */
static VALUE flat_ruby_buffer(VALUE entry, int use, spk_buffer *buffer) {
  memset(buffer, 0, sizeof *buffer);
  if (NIL_P(entry)) return Qnil;
  Check_Type(entry, T_ARRAY);
  const VALUE object = rb_ary_entry(entry, 0);
  buffer->dtype = NUM2INT(rb_ary_entry(entry, 1));
  buffer->layout = NUM2INT(rb_ary_entry(entry, 2));
  if (RB_TYPE_P(object, T_STRING))
    flat_ruby_string(object, use, buffer);
  else if (!flat_ruby_narray(object, buffer))
    flat_ruby_refuse("array: got another object, expected a String or an NArray");
  if (OBJ_FROZEN(object) && use == FLAT_WRITE)
    flat_ruby_refuse("array: got a read-only one (frozen), expected a writable one");
  if (OBJ_FROZEN(object) && use == FLAT_INPLACE) flat_read_only = 1;
  return object;
}

static void flat_ruby_buffers(VALUE list, int use, spk_buffer *buffers, int32_t count) {
  VALUE *objects = (VALUE *)(buffers + count);
  if (use == FLAT_INPLACE) flat_read_only = 0;
  for (int32_t i = 0; i < count; ++i) objects[i] = Qnil;
  for (int32_t i = 0; i < count; ++i)
    objects[i] = flat_ruby_buffer(rb_ary_entry(list, i), use, &buffers[i]);
}

static int32_t flat_ruby_count(VALUE list) {
  if (NIL_P(list)) return 0;
  Check_Type(list, T_ARRAY);
  return (int32_t)RARRAY_LEN(list);
}

/* --- blocks of Ruby's --------------------------------------------------------------------- */

typedef struct flat_ruby_block {
  VALUE block;
  const double *numbers;
  int64_t count;
  double *result;
  int stop;
} flat_ruby_block;

static VALUE flat_ruby_call(VALUE argument) {
  flat_ruby_block *call = (flat_ruby_block *)argument;
  const VALUE numbers = rb_ary_new_capa((long)call->count);
  for (int64_t i = 0; i < call->count; ++i) rb_ary_push(numbers, DBL2NUM(call->numbers[i]));
  const VALUE result = rb_funcall(call->block, rb_intern("call"), 1, numbers);
  call->stop = result == rb_const_get(rb_path2class("SparseKit"), rb_intern("STOP"));
  if (!call->stop) *call->result = NIL_P(result) ? 0 : NUM2DBL(result);
  return Qnil;
}

static int32_t flat_ruby_function(void *user, const double *numbers, int64_t count,
                                  double *result) {
  flat_ruby_block call = {(VALUE)user, numbers, count, result, 0};
  int jump = 0;
  rb_protect(flat_ruby_call, (VALUE)&call, &jump);
  if (jump != 0) flat_ruby_jump = jump;
  return jump != 0 || call.stop;
}

static void flat_ruby_drop(void *user) {
  (void)user;
}

/* Keeps the block alive, and in its place, as long as its Callback. */
static void flat_ruby_mark(void *callback) {
  rb_gc_mark((VALUE)((flat_callback *)callback)->user);
}

/* Releases a handle now, unless calls are under way that may use it: then the collector will. */
static VALUE flat_ruby_close(VALUE self, VALUE handle) {
  (void)self;
  if (flat_ruby_calls == 0 && RB_TYPE_P(handle, T_DATA) && DATA_PTR(handle) != NULL &&
      RDATA(handle)->dfree != NULL) {
    void *data = DATA_PTR(handle);
    DATA_PTR(handle) = NULL;
    RDATA(handle)->dfree(data);
  }
  return Qnil;
}
%}

%init %{
  rb_define_module_function(rb_path2class("SparseKit::Flat"), "close", flat_ruby_close, 1);
%}

%exception {
  flat_begin();
  ++flat_ruby_calls;
  $action
  --flat_ruby_calls;
  flat_ruby_end();
}

/* --- arguments ---------------------------------------------------------------------------- */

%define SPARSEKIT_RUBY_BUFFERS(NAME, USE)
%typemap(in) (const spk_buffer *NAME, int32_t COUNT) (VALUE held = 0) %{
  $2 = flat_ruby_count($input);
  $1 = (spk_buffer *)ALLOCV(held, (size_t)$2 * (sizeof(spk_buffer) + sizeof(VALUE)));
  flat_ruby_buffers($input, USE, $1, $2);
%}
%typemap(freearg) (const spk_buffer *NAME, int32_t COUNT) %{ RB_GC_GUARD(held$argnum); %}
%enddef
SPARSEKIT_RUBY_BUFFERS(READ, FLAT_READ)
SPARSEKIT_RUBY_BUFFERS(WRITE, FLAT_WRITE)
SPARSEKIT_RUBY_BUFFERS(INPLACE, FLAT_INPLACE)

%typemap(in) (const int64_t *INTS, int32_t COUNT) (VALUE held = 0) %{
  $2 = flat_ruby_count($input);
  $1 = (int64_t *)ALLOCV(held, (size_t)$2 * sizeof(int64_t));
  for (int32_t i = 0; i < $2; ++i) $1[i] = NUM2LL(rb_ary_entry($input, i));
%}

%define SPARSEKIT_RUBY_HANDLES(TYPE)
%typemap(in) (TYPE *const *HANDLES, int32_t COUNT) (VALUE held = 0) %{
  $2 = flat_ruby_count($input);
  $1 = (TYPE **)ALLOCV(held, (size_t)$2 * sizeof(TYPE *));
  for (int32_t i = 0; i < $2; ++i) {
    void *handle = NULL;
    if (!SWIG_IsOK(SWIG_ConvertPtr(rb_ary_entry($input, i), &handle, $descriptor(TYPE *), 0)))
      flat_ruby_refuse("members: got another object, expected handles");
    $1[i] = (TYPE *)handle;
  }
%}
%enddef
SPARSEKIT_RUBY_HANDLES(spk_block)
SPARSEKIT_RUBY_HANDLES(spk_scope)

%typemap(in) const char * %{ $1 = NIL_P($input) ? NULL : StringValueCStr($input); %}
%typemap(freearg) const char * ""

%typemap(in) (flat_function FUNCTION, void *USER, flat_drop DROP) %{
  $1 = flat_ruby_function;
  $2 = (void *)$input;
  $3 = flat_ruby_drop;
%}
%markfunc flat_callback "flat_ruby_mark";

/* --- results ------------------------------------------------------------------------------ */

%typemap(out) flat_ints %{
  $result = rb_ary_new_capa($1.count);
  for (int32_t i = 0; i < $1.count; ++i) rb_ary_push($result, LL2NUM($1.values[i]));
%}
%typemap(out) flat_numbers %{
  $result = rb_ary_new_capa($1.count);
  for (int32_t i = 0; i < $1.count; ++i) rb_ary_push($result, DBL2NUM($1.values[i]));
%}
