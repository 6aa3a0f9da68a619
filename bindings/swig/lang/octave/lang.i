/*
 * The typemaps of Octave: see sparsekit.i for what they mean, memory.h for what they call.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Lists are cell arrays, of integers row vectors; [] stands for none, and in a cell array of arrays
 * for a missing entry. An array is a Memory, or where it is only read a matrix.
 */
%insert("header") "memory.h"

%exception {
  spk_octave::Call call;
  $action
  call.finish();
}

namespace spk_octave {
class Memory {
 public:
  Memory(const octave_value &value, int32_t dtype);
  ~Memory();
  octave_value value() const;
  void assign(const octave_value &value);
  int32_t dtype() const;
  int64_t numel() const;
};
}  // namespace spk_octave

%fragment("spk_octave_lists", "header") {
  namespace spk_octave {

  /* The entries of a list; a single one may go without its cell array. */
  static Cell list_of(const octave_value &list) {
    if (is_none(list)) return Cell();
    return list.iscell() ? list.cell_value() : Cell(list);
  }

  static void lend(const octave_value &list, bool written, Buffers &buffers) {
    const Cell cell = list_of(list);
    for (octave_idx_type i = 0; i < cell.numel(); ++i) {
      void *memory = nullptr;
      if (is_none(cell(i))) {
        buffers.add_none();
      } else if (SWIG_IsOK(SWIG_ConvertPtr(cell(i), &memory, SWIGTYPE_p_spk_octave__Memory, 0))) {
        buffers.add(cell(i), static_cast<Memory *>(memory), written);
      } else if (written) {
        raise(SPK_INVALID_ARGUMENT, "array: got a matrix, expected one that can be written");
      } else {
        buffers.add(cell(i));
      }
    }
  }

  template <class Handle>
  static std::vector<Handle *> handles_of(const octave_value &list, swig_type_info *type) {
    const Cell cell = list_of(list);
    std::vector<Handle *> handles;
    for (octave_idx_type i = 0; i < cell.numel(); ++i) {
      void *handle = nullptr;
      if (!SWIG_IsOK(SWIG_ConvertPtr(cell(i), &handle, type, 0)))
        raise(SPK_INVALID_ARGUMENT, "members: got something else, expected handles of one kind");
      handles.push_back(static_cast<Handle *>(handle));
    }
    return handles;
  }

  }  // namespace spk_octave
}

%typemap(in, fragment="spk_octave_lists") (const spk_buffer *READ, int32_t COUNT)
    (spk_octave::Buffers buffers) {
  spk_octave::lend($input, false, buffers);
  $1 = const_cast<spk_buffer *>(buffers.data());
  $2 = buffers.count();
}
%typemap(in, fragment="spk_octave_lists") (const spk_buffer *WRITE, int32_t COUNT)
    (spk_octave::Buffers buffers) {
  spk_octave::lend($input, true, buffers);
  $1 = const_cast<spk_buffer *>(buffers.data());
  $2 = buffers.count();
}
%typemap(in, fragment="spk_octave_lists") (const spk_buffer *INPLACE, int32_t COUNT)
    (spk_octave::Buffers buffers) {
  spk_octave::lend($input, true, buffers);
  $1 = const_cast<spk_buffer *>(buffers.data());
  $2 = buffers.count();
}
%typemap(in) (const int64_t *INTS, int32_t COUNT) (std::vector<int64_t> integers) {
  integers = spk_octave::integers_of($input);
  $1 = integers.data();
  $2 = static_cast<int32_t>(integers.size());
}
%typemap(in, fragment="spk_octave_lists") (spk_block *const *HANDLES, int32_t COUNT)
    (std::vector<spk_block *> handles) {
  handles = spk_octave::handles_of<spk_block>($input, $*1_descriptor);
  $1 = handles.data();
  $2 = static_cast<int32_t>(handles.size());
}
%typemap(in, fragment="spk_octave_lists") (spk_scope *const *HANDLES, int32_t COUNT)
    (std::vector<spk_scope *> handles) {
  handles = spk_octave::handles_of<spk_scope>($input, $*1_descriptor);
  $1 = handles.data();
  $2 = static_cast<int32_t>(handles.size());
}
%typemap(in) int32_t {
  $1 = static_cast<int32_t>(spk_octave::integer_of($input, INT32_MIN, INT32_MAX));
}
%typemap(in) int64_t {
  $1 = spk_octave::integer_of($input, INT64_MIN, INT64_MAX);
}
%typemap(in) double {
  $1 = spk_octave::number_of($input);
}
%typemap(in) const char * (std::string text) {
  text = spk_octave::text_of($input);
  $1 = const_cast<char *>(text.c_str());
}
%typemap(freearg) const char * "";
%typemap(out) flat_ints {
  $result = spk_octave::row_of($1.values, $1.count);
}
%typemap(out) flat_numbers {
  $result = spk_octave::row_of($1.values, $1.count);
}
%typemap(in) (flat_function FUNCTION, void *USER, flat_drop DROP) {
  if (!$input.is_function_handle())
    spk_octave::raise(SPK_INVALID_ARGUMENT, "function: expected a function handle");
  $1 = spk_octave::call_function;
  $2 = new octave_value($input);
  $3 = spk_octave::drop_function;
}
