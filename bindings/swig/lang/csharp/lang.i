/*
 * C#: lists of arrays are Elements[], pinned during the call and handed to C as one array of
 * integers: how many there are, then address, length and dtype of each. All generated classes are
 * internal to the assembly.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
%pragma(csharp) imclassclassmodifiers="internal class"
%pragma(csharp) moduleclassmodifiers="internal static class"
%typemap(csclassmodifiers) SWIGTYPE "internal class"
%csconst(1);

%pragma(csharp) imclasscode=%{
  [global::System.Runtime.InteropServices.DllImport("$dllimport", EntryPoint="SparseKitRegister")]
  internal static extern void Register(Functions.CallFunction call, Functions.DropFunction drop,
                                       Errors.RaiseFunction raise);

  internal static readonly bool Registered = Functions.Register();
%}

%typemap(cscode) SWIGTYPE %{
  /* What the handle borrows in C, and which must live as long as calls use it. */
  internal object Borrowed { get; set; }

  internal static long[] Pointers($csclassname[] handles) {
    var words = new long[handles.Length + 1];
    words[0] = handles.Length;
    for (int i = 0; i < handles.Length; ++i) words[i + 1] = (long)getCPtr(handles[i]).Handle;
    return words;
  }
%}

%{
#include <stdint.h>

/* The other side of Functions.cs and Errors.cs. */
typedef void (SWIGSTDCALL *flat_raise_function)(int32_t status, const char *message);
static flat_function flat_cs_call;
static flat_drop flat_cs_drop;
static flat_raise_function flat_cs_raise;

#ifdef __cplusplus
extern "C"
#endif
SWIGEXPORT void SWIGSTDCALL SparseKitRegister(flat_function call, flat_drop drop,
                                              flat_raise_function raise) {
  flat_cs_call = call;
  flat_cs_drop = drop;
  flat_cs_raise = raise;
}

static int flat_no_memory(void) {
  flat_cs_raise(SPK_OUT_OF_MEMORY, "no memory for the arguments of a call");
  return 0;
}

/* The caller frees. */
static int flat_buffers_in(const int64_t *words, spk_buffer **buffers, int32_t *count) {
  *count = words == NULL ? 0 : (int32_t)words[0];
  *buffers = NULL;
  if (*count == 0) return 1;
  *buffers = (spk_buffer *)calloc((size_t)*count, sizeof **buffers);
  if (*buffers == NULL) return flat_no_memory();
  for (int32_t i = 0; i < *count; ++i, words += 3) {
    (*buffers)[i].data = (void *)(intptr_t)words[1];
    (*buffers)[i].numel = words[2];
    (*buffers)[i].dtype = (int32_t)words[3];
    (*buffers)[i].layout = SPK_LAYOUT_VIEW;
  }
  return 1;
}

static int flat_handles_in(const int64_t *words, void ***handles, int32_t *count) {
  *count = (int32_t)words[0];
  *handles = NULL;
  if (*count == 0) return 1;
  *handles = (void **)malloc((size_t)*count * sizeof **handles);
  if (*handles == NULL) return flat_no_memory();
  for (int32_t i = 0; i < *count; ++i) (*handles)[i] = (void *)(intptr_t)words[i + 1];
  return 1;
}

/* What a call returned, until C# has copied it. */
static __thread flat_ints flat_ints_out;
static __thread flat_numbers flat_numbers_out;
%}

%exception {
  flat_begin();
  $action
  if (flat_error.status != SPK_OK) flat_cs_raise(flat_error.status, flat_error.message);
}

%define SPARSEKIT_CSHARP_CHECK "\n    Errors.Check();" %enddef
%typemap(csout, excode=SPARSEKIT_CSHARP_CHECK) void {
    $imcall;$excode
  }
%typemap(csout, excode=SPARSEKIT_CSHARP_CHECK) int, int32_t, long long, int64_t, double,
                                              const char * {
    var result = $imcall;$excode
    return result;
  }
%typemap(csout, excode=SPARSEKIT_CSHARP_CHECK) SWIGTYPE * {
    var pointer = $imcall;$excode
    return new $csclassname(pointer, $owner);
  }
%typemap(csconstruct, excode=SPARSEKIT_CSHARP_CHECK) SWIGTYPE %{: this($imcall, true) {$excode
  }
%}

/* A function that the call runs may dispose of its handles. */
%define SPARSEKIT_CSHARP_HANDLE(TYPE)
%typemap(in) TYPE * {
  $1 = (TYPE *)$input;
  TYPE##_retain($1);
}
%typemap(freearg) TYPE * { TYPE##_release($1); }
%enddef
SPARSEKIT_CSHARP_HANDLE(spk_context)
SPARSEKIT_CSHARP_HANDLE(spk_view)
SPARSEKIT_CSHARP_HANDLE(spk_block)
SPARSEKIT_CSHARP_HANDLE(spk_scope)
SPARSEKIT_CSHARP_HANDLE(spk_schedule)
SPARSEKIT_CSHARP_HANDLE(spk_masking)

%define SPARSEKIT_CSHARP_BUFFERS(KIND, EFFECT)
%typemap(ctype) (const spk_buffer *KIND, int32_t COUNT) "const int64_t *"
%typemap(imtype) (const spk_buffer *KIND, int32_t COUNT) "long[]"
%typemap(cstype) (const spk_buffer *KIND, int32_t COUNT) "Elements[]"
%typemap(csin, pre="    var pins_$csinput = new Pins($csinput);",
               post="      pins_$csinput.Dispose();")
    (const spk_buffer *KIND, int32_t COUNT) "pins_$csinput.Words()"
%typemap(in) (const spk_buffer *KIND, int32_t COUNT) {
  if (!flat_buffers_in($input, &$1, &$2)) return $null;
  EFFECT
}
%typemap(freearg) (const spk_buffer *KIND, int32_t COUNT) { free((void *)$1); }
%enddef
SPARSEKIT_CSHARP_BUFFERS(READ, )
SPARSEKIT_CSHARP_BUFFERS(WRITE, )
SPARSEKIT_CSHARP_BUFFERS(INPLACE, flat_read_only = 0;)

%typemap(ctype) (const int64_t *INTS, int32_t COUNT) "const int64_t *"
%typemap(imtype) (const int64_t *INTS, int32_t COUNT) "long[]"
%typemap(cstype) (const int64_t *INTS, int32_t COUNT) "long[]"
%typemap(csin) (const int64_t *INTS, int32_t COUNT) "Functions.Counted($csinput)"
%typemap(in) (const int64_t *INTS, int32_t COUNT) {
  $1 = $input == NULL || $input[0] == 0 ? NULL : (int64_t *)$input + 1;
  $2 = $input == NULL ? 0 : (int32_t)$input[0];
}

%define SPARSEKIT_CSHARP_HANDLES(TYPE, NAME)
%typemap(ctype) (TYPE *const *HANDLES, int32_t COUNT) "const int64_t *"
%typemap(imtype) (TYPE *const *HANDLES, int32_t COUNT) "long[]"
%typemap(cstype) (TYPE *const *HANDLES, int32_t COUNT) "NAME[]"
%typemap(csin, post="      global::System.GC.KeepAlive($csinput);")
    (TYPE *const *HANDLES, int32_t COUNT) "NAME.Pointers($csinput)"
%typemap(in) (TYPE *const *HANDLES, int32_t COUNT) {
  void **handles;
  if (!flat_handles_in($input, &handles, &$2)) return $null;
  $1 = (TYPE **)handles;
}
%typemap(freearg) (TYPE *const *HANDLES, int32_t COUNT) { free((void *)$1); }
%enddef
SPARSEKIT_CSHARP_HANDLES(spk_block, BlockHandle)
SPARSEKIT_CSHARP_HANDLES(spk_scope, ScopeHandle)

/* C knows a function weakly, and its Callback keeps it alive: one that refers to the object it was
 * given to would never be collected otherwise. */
%typemap(csconstruct, excode=SPARSEKIT_CSHARP_CHECK) struct flat_callback %{: this($imcall, true) {
    Borrowed = function;$excode
  }
%}
%typemap(ctype) (flat_function FUNCTION, void *USER, flat_drop DROP) "void *"
%typemap(imtype) (flat_function FUNCTION, void *USER, flat_drop DROP) "global::System.IntPtr"
%typemap(cstype) (flat_function FUNCTION, void *USER, flat_drop DROP) "Functions.Function"
%typemap(csin) (flat_function FUNCTION, void *USER, flat_drop DROP) "Functions.Hold($csinput)"
%typemap(in) (flat_function FUNCTION, void *USER, flat_drop DROP) {
  $1 = flat_cs_call;
  $2 = $input;
  $3 = flat_cs_drop;
}

%typemap(ctype) flat_ints, flat_numbers "void *"
%typemap(imtype) flat_ints, flat_numbers "global::System.IntPtr"
%typemap(cstype) flat_ints "long[]"
%typemap(cstype) flat_numbers "double[]"
%typemap(out) flat_ints {
  flat_ints_out = $1;
  $result = &flat_ints_out;
}
%typemap(out) flat_numbers {
  flat_numbers_out = $1;
  $result = &flat_numbers_out;
}
%typemap(csout, excode=SPARSEKIT_CSHARP_CHECK) flat_ints {
    var list = $imcall;$excode
    return Functions.Ints(list);
  }
%typemap(csout, excode=SPARSEKIT_CSHARP_CHECK) flat_numbers {
    var list = $imcall;$excode
    return Functions.Numbers(list);
  }
