/*
 * How Python passes arrays, lists, functions and errors. The C side of it is memory.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */

%{
#define PY_SSIZE_T_CLEAN
#include "memory.h"

/* Set by the context of a call: such calls work, and let other threads of Python run meanwhile. */
static __thread int python_works;
%}

%init %{
  if (!python_add_types(m)) return NULL;
%}

%typemap(check) spk_context *context "python_works = 1;"

%exception {
  PyThreadState *python_thread = NULL;
  flat_begin();
  if (python_works) {
    python_works = 0;
    python_thread = PyEval_SaveThread();
  }
  $action
  if (python_thread != NULL) PyEval_RestoreThread(python_thread);
  if (python_rethrow()) SWIG_fail;
  if (flat_error.status != SPK_OK) {
    python_raise(flat_error.status, flat_error.message);
    SWIG_fail;
  }
}

/* --- arrays --- */

%typemap(in) (const spk_buffer *READ, int32_t COUNT) (python_arrays arrays = {0}),
             (const spk_buffer *WRITE, int32_t COUNT) (python_arrays arrays = {0}),
             (const spk_buffer *INPLACE, int32_t COUNT) (python_arrays arrays = {0}) {
  if (!python_take_arrays(&arrays, $input)) SWIG_fail;
  $1 = arrays.buffers;
  $2 = arrays.count;
}
%typemap(freearg) (const spk_buffer *READ, int32_t COUNT),
                  (const spk_buffer *WRITE, int32_t COUNT),
                  (const spk_buffer *INPLACE, int32_t COUNT) {
  python_free_arrays(&arrays$argnum);
}
%typemap(check) (const spk_buffer *WRITE, int32_t COUNT) {
  if (python_has_read_only(&arrays$argnum)) {
    python_works = 0;
    python_refuse(SPK_INVALID_ARGUMENT, "$1_name", "a read-only array", "a writable one");
    SWIG_fail;
  }
}
/* Here, after all arguments are converted: that may run code which calls the library, too. */
%typemap(check) (const spk_buffer *INPLACE, int32_t COUNT) {
  flat_read_only = python_has_read_only(&arrays$argnum);
}

/* --- lists of integers and of handles --- */

%typemap(in) (const int64_t *INTS, int32_t COUNT) (python_ints ints = {0}) {
  if (!python_take_ints(&ints, $input)) SWIG_fail;
  $1 = ints.values;
  $2 = ints.count;
}
%typemap(freearg) (const int64_t *INTS, int32_t COUNT) {
  python_free_ints(&ints$argnum);
}

%define PYTHON_HANDLES(TYPE)
%typemap(in) (TYPE *const *HANDLES, int32_t COUNT) (PyObject *list = NULL) {
  list = PySequence_Fast($input, "a list of handles is expected");
  if (list == NULL) SWIG_fail;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  $1 = (TYPE **)calloc((size_t)count + 1, sizeof *$1);
  if ($1 == NULL) {
    PyErr_NoMemory();
    SWIG_fail;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    void *handle = NULL;
    if (!SWIG_IsOK(SWIG_ConvertPtr(PySequence_Fast_GET_ITEM(list, i), &handle,
                                   $descriptor(TYPE *), 0))) {
      PyErr_SetString(PyExc_TypeError, "a handle of another kind");
      SWIG_fail;
    }
    ((TYPE **)$1)[i] = (TYPE *)handle;
  }
  $2 = (int32_t)count;
}
%typemap(freearg) (TYPE *const *HANDLES, int32_t COUNT) {
  free((void *)$1);
  Py_XDECREF(list$argnum);
}
%enddef
PYTHON_HANDLES(spk_block)
PYTHON_HANDLES(spk_scope)

/* --- results --- */

%typemap(out) flat_ints {
  $result = python_integers($1.values, $1.count);
}
%typemap(out) flat_numbers {
  $result = PyTuple_New($1.count);
  for (int i = 0; $result != NULL && i < $1.count; ++i) {
    PyTuple_SET_ITEM($result, i, PyFloat_FromDouble($1.values[i]));
  }
}

/* --- functions --- */

%typemap(in) (flat_function FUNCTION, void *USER, flat_drop DROP) {
  if (!PyCallable_Check($input)) {
    PyErr_SetString(PyExc_TypeError, "a function is expected");
    SWIG_fail;
  }
  Py_INCREF($input);
  $1 = python_call;
  $2 = $input;
  $3 = python_drop;
}
