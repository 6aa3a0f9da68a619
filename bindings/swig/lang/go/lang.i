/*
 * Go's half of the wrapper: what is generated here is the package internal/flat, which the package
 * sparsekit is made of.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing here panics. A call that fails leaves its failure with its thread, where last_status,
 * last_message and take_failure find it; the caller keeps its goroutine on that thread until then.
 */

/* --- failures ----------------------------------------------------------------------------- */

%{
/* Go's handle of the error with which a function of the call that is under way ended; 0 = none. */
static __thread uintptr_t flat_go_failure;

/* Exported by functions.go: 0 goes on, -1 stops, any other number is Go's handle of an error. */
extern intptr_t sparsekitGoCall(uintptr_t function, double *numbers, int64_t count, double *result);

static int32_t flat_go_function(void *user, const double *numbers, int64_t count, double *result) {
  const intptr_t ended = sparsekitGoCall((uintptr_t)user, (double *)numbers, count, result);
  if (ended > 0) flat_go_failure = (uintptr_t)ended;
  return ended != 0;
}
/* `user` is a number of Go's: there is nothing to give back. */
static void flat_go_drop(void *user) {
  (void)user;
}
%}

%exception last_status { $action }
%exception last_message { $action }
%exception take_failure { $action }
%inline %{
/* The status of this thread's last call, and its message. */
static int32_t last_status(void) {
  return flat_error.status;
}
static const char *last_message(void) {
  return flat_error.message;
}
/* Go's handle of the error with which a function of the call ended, which is then forgotten. */
static unsigned long take_failure(void) {
  const uintptr_t failure = flat_go_failure;
  flat_go_failure = 0;
  return (unsigned long)failure;
}
%}

%exception {
  flat_begin();
  $action
}

/* --- handles: numbers, 0 being a closed one ----------------------------------------------- */

%define SPARSEKIT_GO_NUMBER(TYPE)
%typemap(gotype) TYPE * "uintptr"
%typemap(in) TYPE * %{ $1 = (TYPE *)$input; %}
%typemap(out) TYPE * %{ $result = (uintptr_t)$1; %}
%typemap(goout) TYPE * ""
%enddef
SPARSEKIT_GO_NUMBER(spk_context)
SPARSEKIT_GO_NUMBER(spk_view)
SPARSEKIT_GO_NUMBER(spk_block)
SPARSEKIT_GO_NUMBER(spk_scope)
SPARSEKIT_GO_NUMBER(spk_schedule)
SPARSEKIT_GO_NUMBER(spk_masking)
SPARSEKIT_GO_NUMBER(flat_callback)

/* --- lists -------------------------------------------------------------------------------- */

/* Buffer has the layout of spk_buffer; see buffer.go. */
%typemap(gotype) (const spk_buffer *READ, int32_t COUNT), (const spk_buffer *WRITE, int32_t COUNT),
                 (const spk_buffer *INPLACE, int32_t COUNT) "[]Buffer"
%typemap(in) (const spk_buffer *READ, int32_t COUNT), (const spk_buffer *WRITE, int32_t COUNT) %{
  $1 = (spk_buffer *)$input.array;
  $2 = (int32_t)$input.len;
%}
/* Go has no arrays that are read-only. */
%typemap(in) (const spk_buffer *INPLACE, int32_t COUNT) %{
  $1 = (spk_buffer *)$input.array;
  $2 = (int32_t)$input.len;
  flat_read_only = 0;
%}

%typemap(gotype) (const int64_t *INTS, int32_t COUNT) "[]int64"
%typemap(gotype) (spk_block *const *HANDLES, int32_t COUNT),
                 (spk_scope *const *HANDLES, int32_t COUNT) "[]uintptr"
%typemap(in) (const int64_t *INTS, int32_t COUNT), (spk_block *const *HANDLES, int32_t COUNT),
             (spk_scope *const *HANDLES, int32_t COUNT) %{
  $1 = ($1_ltype)$input.array;
  $2 = (int32_t)$input.len;
%}

/* --- results ------------------------------------------------------------------------------ */

/* The list stays with its thread until the next call: Go copies it at once. */
%define SPARSEKIT_GO_LIST(TYPE, GOTYPE, LIST)
%typemap(gotype) TYPE "[]GOTYPE"
%typemap(imtype) TYPE "uint64"
%typemap(out) TYPE {
  static __thread TYPE list;
  list = $1;
  $result = (long long)(intptr_t)&list;
}
%typemap(goout) TYPE %{ $result = (*(*LIST)(unsafe.Pointer(uintptr($1)))).list() %}
%enddef
SPARSEKIT_GO_LIST(flat_ints, int64, ints)
SPARSEKIT_GO_LIST(flat_numbers, float64, numbers)

/* --- texts: an empty one is none ---------------------------------------------------------- */

%typemap(in) const char *name %{
  $1 = $input.n == 0 ? NULL : (char *)malloc($input.n + 1);
  if ($1 != NULL) {
    memcpy($1, $input.p, $input.n);
    $1[$input.n] = '\0';
  }
%}

/* --- functions ---------------------------------------------------------------------------- */

%typemap(gotype) (flat_function FUNCTION, void *USER, flat_drop DROP) "uintptr"
%typemap(in) (flat_function FUNCTION, void *USER, flat_drop DROP) %{
  $1 = flat_go_function;
  $2 = (void *)$input;
  $3 = flat_go_drop;
%}
