/*
 * Ruby's half of the wrapper: the module SparseKit::Flat, which the classes of SparseKit are made
 * of.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * An array is [object, dtype, layout]; nil is one that is missing. The object is a String of packed
 * numbers or an NArray, whose memory the library works on: neither moves nor is freed while a call
 * has its address, since the object is on the C stack, or in a buffer that is marked as if it were,
 * and since Strings are locked, lest a block of Ruby's, or another thread while one runs, gives them
 * other memory.
 *
 * Arguments are converted without a call of Ruby's methods, so that nothing changes in between.
 * Only when all are (the typemaps `check`) Strings are locked and addresses taken; from there until
 * flat_ruby_end there is one way out, unless it unlocks.
 */

%{
#include <ruby/encoding.h>
#include <ruby/st.h>
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

static void flat_ruby_refuse_class(VALUE object) {
  char message[256];
  snprintf(message, sizeof message, "array: got %s, expected a String or an NArray",
           rb_obj_classname(object));
  flat_ruby_refuse(message);
}

/* --- locks -------------------------------------------------------------------------------- */

/* A String that a call has locked; as often as the call was given it. */
typedef struct flat_ruby_hold {
  struct flat_ruby_hold *next;
  VALUE string;
  const void *call; /* an address that is the call's own */
} flat_ruby_hold;

/* Those of all calls under way, also of other threads and fibers; and how many each String has. */
static flat_ruby_hold *flat_ruby_holds;
static st_table *flat_ruby_locks;

/* A block that runs, with the thread and the fiber that it was called in: it may leave that for
 * another fiber, but the calls of a thread must end in the opposite order of their beginning. */
typedef struct flat_ruby_run {
  struct flat_ruby_run *next;
  VALUE thread; /* one that has ended may have left its native one to another */
  VALUE fiber;
} flat_ruby_run;

/* Those of all threads; and the innermost of this one. */
static flat_ruby_run *flat_ruby_runs;
static __thread flat_ruby_run *flat_ruby_innermost;

/* A call in a fiber that is given up never ends: its Strings stay, and so does its stack. */
static void flat_ruby_mark_holds(void *unused) {
  (void)unused;
  for (flat_ruby_hold *hold = flat_ruby_holds; hold != NULL; hold = hold->next)
    rb_gc_mark(hold->string);
  for (flat_ruby_run *run = flat_ruby_runs; run != NULL; run = run->next) {
    rb_gc_mark(run->thread);
    rb_gc_mark(run->fiber);
  }
}

static const rb_data_type_t flat_ruby_holder = {
    "SparseKit::Flat strings in use", {flat_ruby_mark_holds, NULL, NULL}, NULL, NULL, 0};

static int flat_ruby_held(VALUE string) {
  return st_lookup(flat_ruby_locks, (st_data_t)string, NULL);
}

/* Unlocks what the call has locked, unless another call has it too. */
static void flat_ruby_release(const void *call) {
  flat_ruby_hold **at = &flat_ruby_holds;
  while (*at != NULL) {
    flat_ruby_hold *hold = *at;
    st_data_t key = (st_data_t)hold->string;
    st_data_t count = 0;
    if (hold->call != call) {
      at = &hold->next;
      continue;
    }
    *at = hold->next;
    free(hold);
    st_lookup(flat_ruby_locks, key, &count);
    if (count > 1) {
      st_insert(flat_ruby_locks, key, count - 1);
    } else {
      st_delete(flat_ruby_locks, &key, NULL);
      rb_str_unlocktmp((VALUE)key);
      ENC_CODERANGE_CLEAR((VALUE)key); /* a block may have looked before the bytes changed */
    }
  }
}

/* Returns a jump to go on with, 0 if there is none: the String may be locked by somebody else. */
static int flat_ruby_lock(VALUE string, const void *call) {
  st_data_t count = 0;
  int jump = 0;
  flat_ruby_hold *hold = (flat_ruby_hold *)malloc(sizeof *hold);
  if (hold == NULL) {
    flat_ruby_release(call);
    rb_memerror();
  }
  if (!st_lookup(flat_ruby_locks, (st_data_t)string, &count))
    rb_protect(rb_str_locktmp, string, &jump);
  if (jump != 0) {
    free(hold);
    return jump;
  }
  st_insert(flat_ruby_locks, (st_data_t)string, count + 1);
  hold->string = string;
  hold->call = call;
  hold->next = flat_ruby_holds;
  flat_ruby_holds = hold;
  return 0;
}

/* Begins a call. */
static void flat_ruby_begin(const void *call) {
  const flat_ruby_run *run = flat_ruby_innermost;
  if (run != NULL && run->thread == rb_thread_current() && run->fiber != rb_fiber_current()) {
    flat_ruby_release(call);
    flat_ruby_refuse("call: got one in another Fiber than that of the block that this thread runs, "
                     "expected one in the same, or after the block has ended");
  }
  flat_begin();
}

/* Ends a call. */
static void flat_ruby_end(const void *call) {
  flat_ruby_release(call);
  const int jump = flat_ruby_jump;
  flat_ruby_jump = 0;
  if (jump != 0) rb_jump_tag(jump);
  if (flat_error.status != SPK_OK) flat_ruby_raise(flat_error.status, flat_error.message);
}

/* --- arrays ------------------------------------------------------------------------------- */

enum { FLAT_READ, FLAT_WRITE, FLAT_INPLACE };

static void flat_ruby_string(VALUE string, int use, spk_buffer *buffer) {
  const long size = (buffer->dtype & 0xFF) / 8;
  /* A string may share its bytes with others until it is written. One that is held does not, or
   * with copies that were made since. */
  if (use != FLAT_READ && !OBJ_FROZEN(string) && !flat_ruby_held(string)) rb_str_modify(string);
  if (size == 0 || RSTRING_LEN(string) % size != 0)
    flat_ruby_refuse("array: got a String of odd length, expected a multiple of an element's");
}

/* The last step, when all arguments are converted. */
static void flat_ruby_address(VALUE string, spk_buffer *buffer, const void *call) {
  const int jump = OBJ_FROZEN(string) ? 0 : flat_ruby_lock(string, call);
  if (jump != 0) {
    flat_ruby_release(call);
    rb_jump_tag(jump);
  }
  buffer->data = RSTRING_LEN(string) == 0 ? NULL : RSTRING_PTR(string);
  buffer->numel = RSTRING_LEN(string) / ((buffer->dtype & 0xFF) / 8);
}

/* Writes bytes over those of a String, which may be in use by a call: then Ruby's own methods are
 * refused, since they might give it other memory. */
static VALUE flat_ruby_write(VALUE self, VALUE string, VALUE at, VALUE bytes) {
  (void)self;
  Check_Type(string, T_STRING);
  Check_Type(bytes, T_STRING);
  const long start = NUM2LONG(at);
  if (OBJ_FROZEN(string))
    flat_ruby_refuse("string: got a read-only one (frozen), expected a writable one");
  if (start < 0 || start > RSTRING_LEN(string) - RSTRING_LEN(bytes))
    flat_ruby_raise(SPK_OUT_OF_BOUNDS, "at: got bytes that reach outside the String, expected ones "
                                       "inside, since its length stays");
  if (!flat_ruby_held(string)) rb_str_modify(string);
  ENC_CODERANGE_CLEAR(string);
  memmove(RSTRING_PTR(string) + start, RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes));
  return string;
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
    flat_ruby_refuse_class(object);
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

static void flat_ruby_lock_all(spk_buffer *buffers, int32_t count, const void *call) {
  const VALUE *objects = (const VALUE *)(buffers + count);
  for (int32_t i = 0; i < count; ++i)
    if (RB_TYPE_P(objects[i], T_STRING)) flat_ruby_address(objects[i], &buffers[i], call);
}

static int32_t flat_ruby_count(VALUE list) {
  if (NIL_P(list)) return 0;
  Check_Type(list, T_ARRAY);
  return (int32_t)RARRAY_LEN(list);
}

static int64_t flat_ruby_integer(VALUE value) {
  if (!RB_INTEGER_TYPE_P(value))
    rb_raise(rb_eTypeError, "integers: got %" PRIsVALUE ", expected Integers", rb_obj_class(value));
  return NUM2LL(value);
}

static const char *flat_ruby_text(VALUE value) {
  if (NIL_P(value)) return NULL;
  Check_Type(value, T_STRING);
  return StringValueCStr(value);
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
  if (!call->stop) *call->result = NUM2DBL(result);
  return Qnil;
}

static int32_t flat_ruby_function(void *user, const double *numbers, int64_t count,
                                  double *result) {
  flat_ruby_block call = {(VALUE)user, numbers, count, result, 0};
  int jump = 0;
  flat_ruby_run *outer = flat_ruby_innermost;
  flat_ruby_run *run = (flat_ruby_run *)malloc(sizeof *run);
  flat_ruby_run **at = &flat_ruby_runs;
  if (run == NULL) return 1;
  run->thread = rb_thread_current();
  run->fiber = rb_fiber_current();
  run->next = flat_ruby_runs;
  flat_ruby_runs = flat_ruby_innermost = run;
  rb_protect(flat_ruby_call, (VALUE)&call, &jump);
  flat_ruby_innermost = outer;
  while (*at != run) at = &(*at)->next;
  *at = run->next;
  free(run);
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
  flat_ruby_locks = st_init_numtable();
  rb_gc_register_mark_object(TypedData_Wrap_Struct(rb_cObject, &flat_ruby_holder, &flat_ruby_holds));
  rb_define_module_function(rb_path2class("SparseKit::Flat"), "close", flat_ruby_close, 1);
  rb_define_module_function(rb_path2class("SparseKit::Flat"), "write", flat_ruby_write, 3);
%}

%exception {
  flat_ruby_begin(&self);
  ++flat_ruby_calls;
  $action
  --flat_ruby_calls;
  flat_ruby_end(&self);
}

/* --- arguments ---------------------------------------------------------------------------- */

%define SPARSEKIT_RUBY_BUFFERS(NAME, USE)
%typemap(in) (const spk_buffer *NAME, int32_t COUNT) (VALUE held = 0) %{
  $2 = flat_ruby_count($input);
  $1 = (spk_buffer *)ALLOCV(held, (size_t)$2 * (sizeof(spk_buffer) + sizeof(VALUE)));
  flat_ruby_buffers($input, USE, $1, $2);
%}
%typemap(check) (const spk_buffer *NAME, int32_t COUNT) %{ flat_ruby_lock_all($1, $2, &self); %}
%typemap(freearg) (const spk_buffer *NAME, int32_t COUNT) %{ RB_GC_GUARD(held$argnum); %}
%enddef
SPARSEKIT_RUBY_BUFFERS(READ, FLAT_READ)
SPARSEKIT_RUBY_BUFFERS(WRITE, FLAT_WRITE)
SPARSEKIT_RUBY_BUFFERS(INPLACE, FLAT_INPLACE)

%typemap(in) (const int64_t *INTS, int32_t COUNT) (VALUE held = 0) %{
  $2 = flat_ruby_count($input);
  $1 = (int64_t *)ALLOCV(held, (size_t)$2 * sizeof(int64_t));
  for (int32_t i = 0; i < $2; ++i) $1[i] = flat_ruby_integer(rb_ary_entry($input, i));
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

%typemap(in) const char * %{ $1 = (char *)flat_ruby_text($input); %}
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
