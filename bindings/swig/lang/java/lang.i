/*
 * Java: lists of arrays are Elements[], handed to C as four longs each (address, length, dtype,
 * read-only); all generated classes are private to the package org.sparsekit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
%pragma(java) jniclassclassmodifiers="final class"
%pragma(java) moduleclassmodifiers="final class"
%typemap(javaclassmodifiers) SWIGTYPE "final class"
%javaconst(1);

%pragma(java) jniclasscode=%{
  static {
    NativeLibrary.load();
  }

  /* The address of a direct buffer's element 0. */
  static native long bufferAddress(java.nio.Buffer buffer);
%}

/* Handles. The cleaner is that of the handle itself, which is reachable while C works with it; a
 * cleaner of a class around it could close the handle during its last call. */
%typemap(javafinalize) SWIGTYPE ""
%typemap(javadestruct, methodname="close", methodmodifiers="synchronized") SWIGTYPE {
    pointer = 0;
    cleanable.clean();
  }
%typemap(javabody) SWIGTYPE %{
  private long pointer;
  private final java.lang.ref.Cleaner.Cleanable cleanable;

  /* What the handle borrows in C, and which must live as long as calls use it. */
  Object borrowed;

  $javaclassname(long pointer, boolean owned) {
    this.pointer = pointer;
    cleanable = NativeLibrary.CLEANER.register(this, release(pointer));
  }

  /* Not a lambda of the constructor, which would keep the handle alive. */
  private static Runnable release(long pointer) {
    return () -> $imclassname.delete_$javaclassname(pointer);
  }

  static long getCPtr($javaclassname handle) {
    return handle == null ? 0 : handle.pointer;
  }

  static long[] pointers($javaclassname[] handles) {
    return java.util.Arrays.stream(handles).mapToLong($javaclassname::getCPtr).toArray();
  }
%}

%{
#include <stdint.h>

static JavaVM *flat_vm;
static jclass flat_exception;
static jmethodID flat_exception_raise;
static jclass flat_function_class;
static jmethodID flat_function_call;

static jclass flat_class(JNIEnv *jenv, const char *name) {
  const jclass found = (*jenv)->FindClass(jenv, name);
  return found == NULL ? NULL : (jclass)(*jenv)->NewGlobalRef(jenv, found);
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
  JNIEnv *jenv = NULL;
  (void)reserved;
  flat_vm = vm;
  if ((*vm)->GetEnv(vm, (void **)&jenv, JNI_VERSION_10) != JNI_OK) return JNI_ERR;
  flat_exception = flat_class(jenv, "org/sparsekit/SparseKitException");
  flat_function_class = flat_class(jenv, "org/sparsekit/NativeFunction");
  if (flat_exception == NULL || flat_function_class == NULL) return JNI_ERR;
  flat_exception_raise = (*jenv)->GetStaticMethodID(jenv, flat_exception, "raise", "(I[B)V");
  flat_function_call = (*jenv)->GetMethodID(jenv, flat_function_class, "call", "([D)D");
  return flat_exception_raise == NULL || flat_function_call == NULL ? JNI_ERR : JNI_VERSION_10;
}

JNIEXPORT jlong JNICALL Java_org_sparsekit_FlatJNI_bufferAddress(JNIEnv *jenv, jclass jcls,
                                                                 jobject buffer) {
  (void)jcls;
  return (jlong)(intptr_t)(*jenv)->GetDirectBufferAddress(jenv, buffer);
}

static jbyteArray flat_text_out(JNIEnv *jenv, const char *text) {
  const jsize length = (jsize)strlen(text);
  const jbyteArray bytes = (*jenv)->NewByteArray(jenv, length);
  if (bytes != NULL) (*jenv)->SetByteArrayRegion(jenv, bytes, 0, length, (const jbyte *)text);
  return bytes;
}

/* Whether the call ends with a Java exception: that of a callback, or else its status. */
static int flat_thrown(JNIEnv *jenv) {
  if ((*jenv)->ExceptionCheck(jenv)) return 1;
  if (flat_error.status == SPK_OK) return 0;
  const jbyteArray message = flat_text_out(jenv, flat_error.message);
  if (message != NULL)
    (*jenv)->CallStaticVoidMethod(jenv, flat_exception, flat_exception_raise,
                                  (jint)flat_error.status, message);
  return 1;
}

static int flat_no_memory(JNIEnv *jenv) {
  const jclass error = (*jenv)->FindClass(jenv, "java/lang/OutOfMemoryError");
  if (error != NULL) (*jenv)->ThrowNew(jenv, error, "no memory for the arguments of a call");
  return 0;
}

/* The caller frees. */
static int flat_text_in(JNIEnv *jenv, jbyteArray bytes, char **text) {
  *text = NULL;
  if (bytes == NULL) return 1;
  const jsize length = (*jenv)->GetArrayLength(jenv, bytes);
  *text = (char *)malloc((size_t)length + 1);
  if (*text == NULL) return flat_no_memory(jenv);
  (*jenv)->GetByteArrayRegion(jenv, bytes, 0, length, (jbyte *)*text);
  (*text)[length] = 0;
  return 1;
}

/* The longs of a Java array, and their number; the caller frees. */
static int flat_longs_in(JNIEnv *jenv, jlongArray array, jlong **longs, jsize *count) {
  *longs = NULL;
  *count = array == NULL ? 0 : (*jenv)->GetArrayLength(jenv, array);
  if (*count == 0) return 1;
  *longs = (jlong *)malloc((size_t)*count * sizeof **longs);
  if (*longs == NULL) return flat_no_memory(jenv);
  (*jenv)->GetLongArrayRegion(jenv, array, 0, *count, *longs);
  return 1;
}

/* What Elements.pack made; the caller frees. Returns whether one of the arrays is read-only in
 * `read_only`, if that is not NULL. */
static int flat_buffers_in(JNIEnv *jenv, jlongArray array, spk_buffer **buffers,
                           int32_t *count, int *read_only) {
  jlong *longs;
  jsize length;
  *buffers = NULL;
  *count = 0;
  if (read_only != NULL) *read_only = 0;
  if (!flat_longs_in(jenv, array, &longs, &length)) return 0;
  if (length == 0) return 1;
  spk_buffer *made = (spk_buffer *)calloc((size_t)length / 4, sizeof *made);
  for (jsize i = 0; made != NULL && i < length / 4; ++i) {
    made[i].data = (void *)(intptr_t)longs[4 * i];
    made[i].numel = longs[4 * i + 1];
    made[i].dtype = (int32_t)longs[4 * i + 2];
    made[i].layout = SPK_LAYOUT_VIEW;
    if (read_only != NULL) *read_only |= longs[4 * i + 3] != 0;
  }
  free(longs);
  *buffers = made;
  *count = length / 4;
  return made != NULL || flat_no_memory(jenv);
}

static int flat_handles_in(JNIEnv *jenv, jlongArray array, void ***handles, int32_t *count) {
  jlong *longs;
  jsize length;
  *handles = NULL;
  *count = 0;
  if (!flat_longs_in(jenv, array, &longs, &length)) return 0;
  if (length == 0) return 1;
  *handles = (void **)malloc((size_t)length * sizeof **handles);
  for (jsize i = 0; *handles != NULL && i < length; ++i)
    (*handles)[i] = (void *)(intptr_t)longs[i];
  free(longs);
  *count = (int32_t)length;
  return *handles != NULL || flat_no_memory(jenv);
}

/* The library calls functions on the thread that called it. An exception stays pending: the
 * non-zero return ends the call, and flat_thrown finds it. */
static int32_t flat_java_call(void *user, const double *numbers, int64_t count, double *result) {
  JNIEnv *jenv = NULL;
  if ((*flat_vm)->GetEnv(flat_vm, (void **)&jenv, JNI_VERSION_10) != JNI_OK) return 1;
  if (count > INT32_MAX) return 1;
  const jobject function = (*jenv)->NewLocalRef(jenv, (jobject)user);
  if (function == NULL) return 1;
  const jdoubleArray array = (*jenv)->NewDoubleArray(jenv, (jsize)count);
  if (array == NULL) return 1;
  (*jenv)->SetDoubleArrayRegion(jenv, array, 0, (jsize)count, numbers);
  *result = (*jenv)->CallDoubleMethod(jenv, function, flat_function_call, array);
  (*jenv)->DeleteLocalRef(jenv, array);
  (*jenv)->DeleteLocalRef(jenv, function);
  return (*jenv)->ExceptionCheck(jenv);
}

static void flat_java_drop(void *user) {
  JNIEnv *jenv = NULL;
  if ((*flat_vm)->GetEnv(flat_vm, (void **)&jenv, JNI_VERSION_10) == JNI_OK)
    (*jenv)->DeleteWeakGlobalRef(jenv, (jweak)user);
}
%}

%exception {
  flat_begin();
  $action
  if (flat_thrown(jenv)) {
    $cleanup
    return $null;
  }
}

/* A function that the call runs may close its handles. */
%define SPARSEKIT_JAVA_HANDLE(TYPE)
%typemap(in) TYPE * {
  $1 = *(TYPE **)&$input;
  TYPE##_retain($1);
}
%typemap(freearg) TYPE * { TYPE##_release($1); }
%enddef
SPARSEKIT_JAVA_HANDLE(spk_context)
SPARSEKIT_JAVA_HANDLE(spk_view)
SPARSEKIT_JAVA_HANDLE(spk_block)
SPARSEKIT_JAVA_HANDLE(spk_scope)
SPARSEKIT_JAVA_HANDLE(spk_schedule)
SPARSEKIT_JAVA_HANDLE(spk_masking)

%define SPARSEKIT_JAVA_BUFFERS(KIND, PACK, READ_ONLY)
%typemap(jni) (const spk_buffer *KIND, int32_t COUNT) "jlongArray"
%typemap(jtype) (const spk_buffer *KIND, int32_t COUNT) "long[]"
%typemap(jstype) (const spk_buffer *KIND, int32_t COUNT) "Elements[]"
%typemap(javain, post="      java.lang.ref.Reference.reachabilityFence($javainput);")
    (const spk_buffer *KIND, int32_t COUNT) "Elements.PACK($javainput)"
%typemap(in) (const spk_buffer *KIND, int32_t COUNT) {
  if (!flat_buffers_in(jenv, $input, &$1, &$2, READ_ONLY)) return $null;
}
%typemap(freearg) (const spk_buffer *KIND, int32_t COUNT) { free((void *)$1); }
%enddef
SPARSEKIT_JAVA_BUFFERS(READ, pack, NULL)
SPARSEKIT_JAVA_BUFFERS(WRITE, packWritable, NULL)
SPARSEKIT_JAVA_BUFFERS(INPLACE, pack, &flat_read_only)

/* Texts are UTF-8; what JNI calls so is not, beyond the Basic Multilingual Plane. */
%typemap(jni) const char * "jbyteArray"
%typemap(jtype) const char * "byte[]"
%typemap(jstype) const char * "String"
%typemap(javain) const char * "NativeLibrary.utf8($javainput)"
%typemap(javaout) const char * {
    return NativeLibrary.text($jnicall);
  }
%typemap(in) const char * {
  char *text;
  if (!flat_text_in(jenv, $input, &text)) return $null;
  $1 = text;
}
%typemap(freearg) const char * { free((void *)$1); }
%typemap(out) const char * { $result = flat_text_out(jenv, $1); }

%typemap(jni) (const int64_t *INTS, int32_t COUNT) "jlongArray"
%typemap(jtype) (const int64_t *INTS, int32_t COUNT) "long[]"
%typemap(jstype) (const int64_t *INTS, int32_t COUNT) "long[]"
%typemap(javain) (const int64_t *INTS, int32_t COUNT) "$javainput"
%typemap(in) (const int64_t *INTS, int32_t COUNT) {
  jlong *longs;
  jsize count;
  if (!flat_longs_in(jenv, $input, &longs, &count)) return $null;
  $1 = (int64_t *)longs;
  $2 = (int32_t)count;
}
%typemap(freearg) (const int64_t *INTS, int32_t COUNT) { free((void *)$1); }

%define SPARSEKIT_JAVA_HANDLES(TYPE, NAME)
%typemap(jni) (TYPE *const *HANDLES, int32_t COUNT) "jlongArray"
%typemap(jtype) (TYPE *const *HANDLES, int32_t COUNT) "long[]"
%typemap(jstype) (TYPE *const *HANDLES, int32_t COUNT) "NAME[]"
%typemap(javain, post="      java.lang.ref.Reference.reachabilityFence($javainput);")
    (TYPE *const *HANDLES, int32_t COUNT) "NAME.pointers($javainput)"
%typemap(in) (TYPE *const *HANDLES, int32_t COUNT) {
  void **handles;
  int32_t count;
  if (!flat_handles_in(jenv, $input, &handles, &count)) return $null;
  $1 = (TYPE **)handles;
  $2 = count;
}
%typemap(freearg) (TYPE *const *HANDLES, int32_t COUNT) { free((void *)$1); }
%enddef
SPARSEKIT_JAVA_HANDLES(spk_block, BlockHandle)
SPARSEKIT_JAVA_HANDLES(spk_scope, ScopeHandle)

%define SPARSEKIT_JAVA_LIST(TYPE, LIST, JLIST, JELEMENT, NEW, SET)
%typemap(jni) TYPE #JLIST
%typemap(jtype) TYPE #LIST
%typemap(jstype) TYPE #LIST
%typemap(javaout) TYPE {
    return $jnicall;
  }
%typemap(out) TYPE {
  $result = (*jenv)->NEW(jenv, $1.count);
  if ($result != NULL) (*jenv)->SET(jenv, $result, 0, $1.count, (const JELEMENT *)$1.values);
}
%enddef
SPARSEKIT_JAVA_LIST(flat_ints, long[], jlongArray, jlong, NewLongArray, SetLongArrayRegion)
SPARSEKIT_JAVA_LIST(flat_numbers, double[], jdoubleArray, jdouble, NewDoubleArray,
                    SetDoubleArrayRegion)

/* C knows a function weakly, and its Callback keeps it alive: one that refers to the object it was
 * given to would never be collected otherwise. */
%typemap(javaconstruct) struct flat_callback {
    this($imcall, true);
    borrowed = function;
  }
%typemap(jni) (flat_function FUNCTION, void *USER, flat_drop DROP) "jobject"
%typemap(jtype) (flat_function FUNCTION, void *USER, flat_drop DROP) "NativeFunction"
%typemap(jstype) (flat_function FUNCTION, void *USER, flat_drop DROP) "NativeFunction"
%typemap(javain) (flat_function FUNCTION, void *USER, flat_drop DROP) "$javainput"
%typemap(in) (flat_function FUNCTION, void *USER, flat_drop DROP) {
  $1 = flat_java_call;
  $2 = (*jenv)->NewWeakGlobalRef(jenv, $input);
  $3 = flat_java_drop;
  if ($2 == NULL) {
    flat_no_memory(jenv);
    return $null;
  }
}
