/*
 * Python's arrays for the library: the extension type Memory, and lists of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A Memory is the address, dtype and layout of somebody else's array, which it keeps alive. It is
 * made from an object with the buffer protocol, from an address (__array_interface__), or from a
 * DLPack capsule. Nothing is copied.
 */
#ifndef SPARSEKIT_PYTHON_MEMORY_H_
#define SPARSEKIT_PYTHON_MEMORY_H_

/* --- errors ------------------------------------------------------------------------------- */

/* (status, message) -> an exception; the package sets it. */
static PyObject *python_error_factory;

static void python_raise(int32_t status, const char *message) {
  PyObject *error = python_error_factory == NULL
                        ? NULL
                        : PyObject_CallFunction(python_error_factory, "is", (int)status, message);
  if (error != NULL) {
    PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
  } else if (!PyErr_Occurred()) {
    PyErr_SetString(PyExc_RuntimeError, message);
  }
}

/* --- dtypes ------------------------------------------------------------------------------- */

static int64_t python_itemsize(int32_t dtype) {
  return (dtype & 0xff) / 8;
}

static int python_is_words(int32_t dtype) {
  return dtype == SPK_F16 || dtype == SPK_BF16;
}

/* The dtype of a struct-module format with items of this size; `words` is what 16-bit words are. */
static int32_t python_format_dtype(const char *format, Py_ssize_t itemsize, int32_t words) {
  if (format == NULL) return SPK_U8;
  if (*format == '@' || *format == '=' || (*format == '<' && PY_LITTLE_ENDIAN)) ++format;
  if (format[0] == 0 || format[1] != 0) return 0;
  switch (format[0]) {
    case 'f':
      return SPK_F32;
    case 'd':
      return SPK_F64;
    case 'e':
      return SPK_F16;
    case 'h':
    case 'H':
      return python_is_words(words) ? words : 0;
    case '?':
    case 'B':
      return SPK_U8;
    case 'l':
    case 'q':
      return itemsize == 8 ? SPK_I64 : 0;
    default:
      return 0;
  }
}

/* --- Memory ------------------------------------------------------------------------------- */

#define PYTHON_MAX_NDIM (2 * SPK_MAX_NDIM)

typedef struct Memory {
  PyObject ob_base;
  Py_buffer held;    /* its `obj` is NULL if there is none */
  PyObject *owner;   /* what else keeps the data alive */
  spk_buffer buffer; /* from the lowest address, as far as the array reaches */
  int read_only;     /* from the beginning */
  int ndim;
  int64_t shape[PYTHON_MAX_NDIM];
  int64_t stride[PYTHON_MAX_NDIM]; /* in elements */
  int64_t offset;                  /* of element (0, 0, ...) */
  spk_view *own;                   /* with SPK_LAYOUT_OWN */
} Memory;

static PyTypeObject *python_memory_type;

static Memory *memory_new(PyTypeObject *type) {
  return (Memory *)type->tp_alloc(type, 0);
}

static void memory_dealloc(PyObject *object) {
  Memory *self = (Memory *)object;
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  spk_view_release(self->own);
  if (self->held.obj != NULL) PyBuffer_Release(&self->held);
  Py_XDECREF(self->owner);
  type->tp_free(object);
  Py_DECREF(type);
}

/* An array may refer to a view of itself. Who refers to the Memory is cleared, and then it dies. */
static int memory_traverse(PyObject *object, visitproc visit, void *arg) {
  Memory *self = (Memory *)object;
  Py_VISIT(self->owner);
  Py_VISIT(self->held.obj);
  Py_VISIT(Py_TYPE(object));
  return 0;
}

static int python_refuse(int32_t status, const char *what, const char *got, const char *expected) {
  char message[SPK_MESSAGE_SIZE];
  snprintf(message, sizeof message, "%s: got %s, expected %s", what, got, expected);
  python_raise(status, message);
  return 0;
}

static int memory_refuse(int32_t status, const char *got, const char *expected) {
  return python_refuse(status, "array", got, expected);
}

static int memory_refuse_dtype(const char *format) {
  char got[64];
  const int swapped =
      format != NULL && (*format == '!' || *format == (PY_LITTLE_ENDIAN ? '>' : '<'));
  snprintf(got, sizeof got, "%s of format '%.32s'", swapped ? "byte-swapped elements" : "elements",
           format == NULL ? "" : format);
  return memory_refuse(SPK_UNSUPPORTED_DTYPE, got,
                       "native float32, float64, float16, bfloat16, uint8, bool or int64");
}

/* Takes up where the elements lie. `strides` are bytes; NULL is row-major. */
static int memory_lay(Memory *self, void *data, int32_t dtype, int ndim, const Py_ssize_t *shape,
                      const Py_ssize_t *strides) {
  const int64_t size = python_itemsize(dtype);
  int64_t reach = 1;
  int64_t run = 1;
  int empty = 0;
  if (ndim > PYTHON_MAX_NDIM)
    return memory_refuse(SPK_INVALID_ARGUMENT, "too many dimensions", "at most 32");
  self->ndim = ndim;
  for (int d = ndim - 1; d >= 0; --d) {
    if (strides != NULL && shape[d] > 1 && strides[d] % size != 0)
      return memory_refuse(SPK_INVALID_ARGUMENT, "strides inside an element",
                           "multiples of the element size");
    self->shape[d] = shape[d];
    self->stride[d] = strides == NULL || shape[d] <= 1 ? run : strides[d] / size;
    run *= shape[d];
    empty = empty || shape[d] == 0;
  }
  for (int d = 0; d < ndim && !empty; ++d) {
    const int64_t span = (self->shape[d] - 1) * self->stride[d];
    reach += span < 0 ? -span : span;
    self->offset -= span < 0 ? span : 0;
  }
  if ((uintptr_t)data % (uintptr_t)size != 0)
    return memory_refuse(SPK_INVALID_ARGUMENT, "a misaligned array",
                         "data aligned to the element size");
  self->buffer.data = (char *)data - self->offset * size;
  self->buffer.numel = empty ? 0 : reach;
  self->buffer.dtype = dtype;
  self->buffer.layout = SPK_LAYOUT_VIEW;
  return 1;
}

/* Memory of an object with the buffer protocol. `words`: what 16-bit integers are, or 0. */
static Memory *memory_of_buffer(PyObject *object, int32_t words) {
  Memory *self = memory_new(python_memory_type);
  if (self == NULL) return NULL;
  if (PyObject_GetBuffer(object, &self->held, PyBUF_STRIDES | PyBUF_FORMAT) == 0) {
    const Py_buffer *held = &self->held;
    const int32_t dtype = python_format_dtype(held->format, held->itemsize, words);
    self->read_only = held->readonly;
    if (dtype == 0 || python_itemsize(dtype) != held->itemsize)
      memory_refuse_dtype(held->format);
    else if (memory_lay(self, held->buf, dtype, held->ndim, held->shape, held->strides))
      return self;
  }
  Py_DECREF(self);
  return NULL;
}

static PyObject *memory_create(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  PyObject *object;
  int words = 0;
  (void)type;
  if (keywords != NULL && PyDict_Size(keywords) != 0) {
    PyErr_SetString(PyExc_TypeError, "Memory takes no keyword arguments");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "O|i", &object, &words)) return NULL;
  return (PyObject *)memory_of_buffer(object, words);
}

/* Reads a tuple of integers; the caller has room for PYTHON_MAX_NDIM. -1: failed. */
static int python_extents(PyObject *tuple, Py_ssize_t *extents) {
  const Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : -1;
  if (count < 0 || count > PYTHON_MAX_NDIM) {
    PyErr_SetString(PyExc_ValueError, "array: a shape or strides that are no tuple of up to 32");
    return -1;
  }
  for (Py_ssize_t d = 0; d < count; ++d) {
    extents[d] = PyLong_AsSsize_t(PyTuple_GetItem(tuple, d));
    if (extents[d] == -1 && PyErr_Occurred()) return -1;
  }
  return (int)count;
}

/* Memory.at(owner, address, read_only, dtype, shape, strides or None): strides in bytes. */
static PyObject *memory_at(PyObject *type, PyObject *args) {
  PyObject *owner, *address, *shape_tuple, *strides_tuple;
  Py_ssize_t shape[PYTHON_MAX_NDIM];
  Py_ssize_t strides[PYTHON_MAX_NDIM];
  int read_only, dtype;
  if (!PyArg_ParseTuple(args, "OOpiOO", &owner, &address, &read_only, &dtype, &shape_tuple,
                        &strides_tuple))
    return NULL;
  void *data = PyLong_AsVoidPtr(address);
  const int ndim = PyErr_Occurred() ? -1 : python_extents(shape_tuple, shape);
  const int nstrides =
      ndim < 0 || strides_tuple == Py_None ? ndim : python_extents(strides_tuple, strides);
  if (ndim < 0 || nstrides < 0) return NULL;
  if (nstrides != ndim) {
    PyErr_SetString(PyExc_ValueError, "array: strides of another number of dimensions");
    return NULL;
  }
  Memory *self = memory_new((PyTypeObject *)type);
  if (self == NULL) return NULL;
  Py_INCREF(owner);
  self->owner = owner;
  self->read_only = read_only;
  if (memory_lay(self, data, dtype, ndim, shape, strides_tuple == Py_None ? NULL : strides))
    return (PyObject *)self;
  Py_DECREF(self);
  return NULL;
}

/* The structs of DLPack's C ABI, as far as they are read. */
typedef struct python_dl_tensor {
  void *data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL is row-major */
  uint64_t byte_offset;
} python_dl_tensor;

typedef struct python_dl_versioned {
  uint32_t major;
  uint32_t minor;
  void *manager;
  void (*deleter)(void *);
  uint64_t flags; /* bit 0: read-only */
  python_dl_tensor tensor;
} python_dl_versioned;

static int32_t python_dl_dtype(const python_dl_tensor *tensor) {
  const int32_t dtype = tensor->code << 8 | tensor->bits;
  if (tensor->lanes != 1) return 0;
  switch (dtype) {
    case SPK_F32:
    case SPK_F64:
    case SPK_F16:
    case SPK_BF16:
    case SPK_U8:
    case SPK_I64:
      return dtype;
    case 0x608:
      return SPK_U8; /* bool */
    default:
      return 0;
  }
}

static int memory_lay_tensor(Memory *self, const python_dl_tensor *tensor) {
  Py_ssize_t shape[PYTHON_MAX_NDIM];
  Py_ssize_t strides[PYTHON_MAX_NDIM];
  const int32_t dtype = python_dl_dtype(tensor);
  const int has_strides = tensor->strides != NULL;
  if (tensor->device_type != 1 && tensor->device_type != 3) /* kDLCPU, kDLCUDAHost */
    return memory_refuse(SPK_UNAVAILABLE, "memory of another device", "CPU memory");
  if (dtype == 0) {
    char format[32];
    snprintf(format, sizeof format, "DLPack %d:%d", tensor->code, tensor->bits);
    return memory_refuse_dtype(format);
  }
  if (tensor->ndim > PYTHON_MAX_NDIM)
    return memory_refuse(SPK_INVALID_ARGUMENT, "too many dimensions", "at most 32");
  for (int d = 0; d < tensor->ndim; ++d) {
    shape[d] = (Py_ssize_t)tensor->shape[d];
    strides[d] = has_strides ? (Py_ssize_t)(tensor->strides[d] * python_itemsize(dtype)) : 0;
  }
  return memory_lay(self, (char *)tensor->data + tensor->byte_offset, dtype, tensor->ndim, shape,
                    has_strides ? strides : NULL);
}

/* Memory.of_dlpack(capsule, read_only). The capsule is not consumed but kept: its own destructor
 * gives the tensor back. */
static PyObject *memory_of_dlpack(PyObject *type, PyObject *args) {
  PyObject *capsule;
  int read_only;
  const python_dl_tensor *tensor;
  if (!PyArg_ParseTuple(args, "Op", &capsule, &read_only)) return NULL;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    const python_dl_versioned *managed =
        (const python_dl_versioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (managed->major != 1) {
      memory_refuse(SPK_UNAVAILABLE, "another major version of DLPack", "version 1");
      return NULL;
    }
    read_only |= (int)(managed->flags & 1);
    tensor = &managed->tensor;
  } else {
    /* DLManagedTensor begins with its DLTensor. */
    tensor = (const python_dl_tensor *)PyCapsule_GetPointer(capsule, "dltensor");
    if (tensor == NULL) return NULL;
  }
  Memory *self = memory_new((PyTypeObject *)type);
  if (self == NULL) return NULL;
  Py_INCREF(capsule);
  self->owner = capsule;
  self->read_only = read_only;
  if (memory_lay_tensor(self, tensor)) return (PyObject *)self;
  Py_DECREF(self);
  return NULL;
}

static int memory_is_dense(const Memory *self) {
  int64_t run = 1;
  for (int d = self->ndim - 1; d >= 0; --d) {
    if (self->shape[d] > 1 && self->stride[d] != run) return 0;
    run *= self->shape[d];
  }
  return 1;
}

/* The same array, its elements going with those of a view of the same shape, wherever they lie. */
static PyObject *memory_own_layout(PyObject *object, PyObject *unused) {
  const Memory *self = (const Memory *)object;
  Memory *result = memory_new(python_memory_type);
  (void)unused;
  if (result == NULL) return NULL;
  result->owner = object;
  Py_INCREF(object);
  result->buffer = self->buffer;
  result->buffer.layout = SPK_LAYOUT_CONTIGUOUS;
  result->read_only = self->read_only;
  result->ndim = self->ndim;
  result->offset = self->offset;
  memcpy(result->shape, self->shape, sizeof self->shape);
  memcpy(result->stride, self->stride, sizeof self->stride);
  if (memory_is_dense(self)) return (PyObject *)result;
  flat_begin();
  if (!flat_ok(spk_view_create(self->buffer.dtype, self->ndim, self->shape, self->stride,
                               self->offset, &result->own))) {
    python_raise(flat_error.status, flat_error.message);
    Py_DECREF(result);
    return NULL;
  }
  result->buffer.layout = SPK_LAYOUT_OWN;
  result->buffer.view = result->own;
  return (PyObject *)result;
}

/* Asks anew: an array may have become read-only. */
static int memory_is_read_only(const Memory *self) {
  Py_buffer now;
  if (self->read_only) return 1;
  if (self->owner != NULL && Py_TYPE(self->owner) == python_memory_type)
    return memory_is_read_only((const Memory *)self->owner);
  if (self->held.obj == NULL) return 0;
  if (PyObject_GetBuffer(self->held.obj, &now, PyBUF_RECORDS) != 0) {
    PyErr_Clear();
    return 1;
  }
  PyBuffer_Release(&now);
  return 0;
}

static PyObject *python_integers(const int64_t *values, int count) {
  PyObject *tuple = PyTuple_New(count);
  for (int i = 0; tuple != NULL && i < count; ++i) {
    PyObject *number = PyLong_FromLongLong(values[i]);
    if (number == NULL)
      Py_CLEAR(tuple);
    else
      PyTuple_SET_ITEM(tuple, i, number);
  }
  return tuple;
}

static PyObject *memory_get_shape(PyObject *self, void *unused) {
  (void)unused;
  return python_integers(((Memory *)self)->shape, ((Memory *)self)->ndim);
}
static PyObject *memory_get_stride(PyObject *self, void *unused) {
  (void)unused;
  return python_integers(((Memory *)self)->stride, ((Memory *)self)->ndim);
}
static PyObject *memory_get_offset(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLongLong(((Memory *)self)->offset);
}
static PyObject *memory_get_numel(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLongLong(((Memory *)self)->buffer.numel);
}
static PyObject *memory_get_dtype(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromLong(((Memory *)self)->buffer.dtype);
}
static PyObject *memory_get_read_only(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(memory_is_read_only((Memory *)self));
}
static PyObject *memory_get_dense(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(memory_is_dense((Memory *)self));
}
static PyObject *memory_get_has_own_layout(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(((Memory *)self)->buffer.layout != SPK_LAYOUT_VIEW);
}

/* The bytes from the lowest address on, for NumPy arrays of the same memory. */
static int memory_export(PyObject *object, Py_buffer *view, int flags) {
  Memory *self = (Memory *)object;
  return PyBuffer_FillInfo(view, object, self->buffer.data,
                           self->buffer.numel * python_itemsize(self->buffer.dtype),
                           self->read_only, flags);
}

static PyMethodDef memory_methods[] = {
    {"at", memory_at, METH_VARARGS | METH_CLASS, NULL},
    {"of_dlpack", memory_of_dlpack, METH_VARARGS | METH_CLASS, NULL},
    {"own_layout", memory_own_layout, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyGetSetDef memory_getters[] = {
    {"shape", memory_get_shape, NULL, NULL, NULL},
    {"stride", memory_get_stride, NULL, NULL, NULL},
    {"offset", memory_get_offset, NULL, NULL, NULL},
    {"numel", memory_get_numel, NULL, NULL, NULL},
    {"dtype", memory_get_dtype, NULL, NULL, NULL},
    {"read_only", memory_get_read_only, NULL, NULL, NULL},
    {"dense", memory_get_dense, NULL, NULL, NULL},
    {"has_own_layout", memory_get_has_own_layout, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot memory_slots[] = {{Py_tp_new, (void *)memory_create},
                                     {Py_tp_dealloc, (void *)memory_dealloc},
                                     {Py_tp_traverse, (void *)memory_traverse},
                                     {Py_bf_getbuffer, (void *)memory_export},
                                     {Py_tp_methods, memory_methods},
                                     {Py_tp_getset, memory_getters},
                                     {0, NULL}};
static PyType_Spec memory_spec = {"sparsekit._native.Memory", sizeof(Memory), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, memory_slots};

/* --- lists of arrays ---------------------------------------------------------------------- */

#define PYTHON_FEW 8

/* What a call is brought: buffers, and the objects that they belong to. */
typedef struct python_arrays {
  int32_t count;
  spk_buffer *buffers;
  PyObject **objects;
  spk_buffer few_buffers[PYTHON_FEW];
  PyObject *few_objects[PYTHON_FEW];
} python_arrays;

/* Room for count pointers-or-larger elements: `few` if that is enough. */
static void *python_room(void *few, Py_ssize_t capacity, Py_ssize_t count, size_t size) {
  if (count <= capacity) return few;
  void *room = calloc((size_t)count, size);
  if (room == NULL) PyErr_NoMemory();
  return room;
}

static int python_add_array(python_arrays *arrays, PyObject *item) {
  const int32_t at = arrays->count;
  Memory *memory = (Memory *)item;
  arrays->objects[at] = NULL;
  memset(&arrays->buffers[at], 0, sizeof *arrays->buffers);
  arrays->count = at + 1;
  if (item == Py_None) return 1;
  if (Py_TYPE(item) == python_memory_type)
    Py_INCREF(item);
  else
    memory = memory_of_buffer(item, 0);
  if (memory == NULL) return 0;
  arrays->objects[at] = (PyObject *)memory;
  arrays->buffers[at] = memory->buffer;
  if (Py_TYPE(item) == python_memory_type || memory_is_dense(memory)) return 1;
  return memory_refuse(SPK_SHAPE_MISMATCH, "an array with gaps", "a contiguous one");
}

/* Takes a list or tuple of arrays, or None; an entry may be None. */
static int python_take_arrays(python_arrays *arrays, PyObject *input) {
  if (input == Py_None) return 1;
  PyObject *list = PySequence_Fast(input, "a list of arrays is expected");
  if (list == NULL) return 0;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  int ok = count <= INT32_MAX;
  arrays->buffers =
      (spk_buffer *)python_room(arrays->few_buffers, PYTHON_FEW, count, sizeof *arrays->buffers);
  arrays->objects =
      (PyObject **)python_room(arrays->few_objects, PYTHON_FEW, count, sizeof *arrays->objects);
  ok = ok && arrays->buffers != NULL && arrays->objects != NULL;
  for (Py_ssize_t i = 0; ok && i < count; ++i)
    ok = python_add_array(arrays, PySequence_Fast_GET_ITEM(list, i));
  Py_DECREF(list);
  return ok;
}

static void python_free_arrays(python_arrays *arrays) {
  for (int32_t i = 0; i < arrays->count; ++i) Py_XDECREF(arrays->objects[i]);
  if (arrays->buffers != arrays->few_buffers) free(arrays->buffers);
  if (arrays->objects != arrays->few_objects) free(arrays->objects);
}

static int python_has_read_only(const python_arrays *arrays) {
  for (int32_t i = 0; i < arrays->count; ++i)
    if (arrays->objects[i] != NULL && memory_is_read_only((Memory *)arrays->objects[i])) return 1;
  return 0;
}

/* --- lists of integers -------------------------------------------------------------------- */

#define PYTHON_FEW_INTS 32

typedef struct python_ints {
  int32_t count;
  int64_t *values;
  int64_t few[PYTHON_FEW_INTS];
} python_ints;

static int python_take_ints(python_ints *ints, PyObject *input) {
  ints->values = NULL;
  if (input == Py_None) return 1;
  PyObject *list = PySequence_Fast(input, "a list of integers is expected");
  if (list == NULL) return 0;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  ints->values = (int64_t *)python_room(ints->few, PYTHON_FEW_INTS, count, sizeof *ints->values);
  int ok = ints->values != NULL && count <= INT32_MAX;
  for (Py_ssize_t i = 0; ok && i < count; ++i) {
    ints->values[i] = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(list, i));
    ok = ints->values[i] != -1 || !PyErr_Occurred();
  }
  ints->count = (int32_t)count;
  Py_DECREF(list);
  return ok;
}

static void python_free_ints(python_ints *ints) {
  if (ints->values != ints->few) free(ints->values);
}

/* --- functions ---------------------------------------------------------------------------- */

/* The exception of a callback, on its way out of the call that is under way on this thread. */
static __thread PyObject *python_stash[3];

static int python_rethrow(void) {
  if (python_stash[0] == NULL) return 0;
  PyErr_Restore(python_stash[0], python_stash[1], python_stash[2]);
  memset(python_stash, 0, sizeof python_stash);
  return 1;
}

/* Calls function(bytes of doubles) -> number. The bytes are a copy: the function may keep them. */
static int32_t python_call(void *user, const double *numbers, int64_t count, double *result) {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *given = PyObject_CallFunction((PyObject *)user, "y#", (const char *)numbers,
                                          (Py_ssize_t)(count * (int64_t)sizeof *numbers));
  if (given != NULL) *result = PyFloat_AsDouble(given);
  Py_XDECREF(given);
  const int failed = PyErr_Occurred() != NULL;
  if (failed && python_stash[0] == NULL)
    PyErr_Fetch(&python_stash[0], &python_stash[1], &python_stash[2]);
  PyErr_Clear();
  PyGILState_Release(state);
  return failed;
}

static void python_drop(void *user) {
  const PyGILState_STATE state = PyGILState_Ensure();
  Py_DECREF((PyObject *)user);
  PyGILState_Release(state);
}

/* --- the module --------------------------------------------------------------------------- */

static PyObject *python_set_error_factory(PyObject *module, PyObject *factory) {
  (void)module;
  Py_INCREF(factory);
  Py_XSETREF(python_error_factory, factory);
  Py_RETURN_NONE;
}

static PyMethodDef python_set_error_factory_def = {"set_error_factory", python_set_error_factory,
                                                   METH_O, NULL};

static int python_add_types(PyObject *module) {
  PyObject *set_error_factory = PyCFunction_New(&python_set_error_factory_def, NULL);
  python_memory_type = (PyTypeObject *)PyType_FromSpec(&memory_spec);
  if (python_memory_type == NULL || set_error_factory == NULL) return 0;
  Py_INCREF(python_memory_type);
  return PyModule_AddObject(module, "Memory", (PyObject *)python_memory_type) == 0 &&
         PyModule_AddObject(module, "set_error_factory", set_error_factory) == 0;
}

#endif /* SPARSEKIT_PYTHON_MEMORY_H_ */
