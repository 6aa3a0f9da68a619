/*
 * Octave's arrays as the library's buffers, and Octave's functions as its callbacks.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * An Octave matrix is a value: whoever holds it must never see it change. The library writes in
 * place, so what it writes lies in a Memory, which has its elements to itself as soon as they are
 * written. Matrices that are only read are lent as they are, without a copy.
 */
#ifndef SPARSEKIT_BINDINGS_OCTAVE_MEMORY_H_
#define SPARSEKIT_BINDINGS_OCTAVE_MEMORY_H_

#include <cctype>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace spk_octave {

/* Raises the error sparsekit:overlap for SPK_OVERLAP, and so on. */
[[noreturn]] inline void raise(spk_status status, const char *message) {
  std::string id = "sparsekit:";
  for (const char *c = spk_status_string(status) + std::strlen("SPK_"); *c != 0; ++c)
    id += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  error_with_id(id.c_str(), "%s", message);
}

/* --- arrays ------------------------------------------------------------------------------- */

using Elements = std::variant<NDArray, FloatNDArray, uint16NDArray, uint8NDArray, int64NDArray>;

inline Elements elements_of(const octave_value &value) {
  if (value.iscomplex()) raise(SPK_UNSUPPORTED_DTYPE, "array: got complex numbers, expected real");
  if (value.is_double_type()) return value.array_value();
  if (value.is_single_type()) return value.float_array_value();
  if (value.is_uint16_type()) return value.uint16_array_value();
  if (value.is_uint8_type()) return value.uint8_array_value();
  if (value.is_int64_type()) return value.int64_array_value();
  raise(SPK_UNSUPPORTED_DTYPE,
        ("array: got class " + value.class_name() +
         ", expected double, single, uint8, int64, or uint16 for f16 and bf16")
            .c_str());
}

/* The dtype by the class: uint16 holds f16 or bf16, which must be said, and gives 0. */
inline int32_t natural_dtype(const Elements &elements) {
  static const int32_t dtypes[] = {SPK_F64, SPK_F32, 0, SPK_U8, SPK_I64};
  return dtypes[elements.index()];
}

inline int32_t dtype_of(const Elements &elements, int32_t said) {
  const int32_t natural = natural_dtype(elements);
  if (natural == 0 && (said == SPK_F16 || said == SPK_BF16)) return said;
  if (natural == 0)
    raise(SPK_UNSUPPORTED_DTYPE, "array: got uint16 without a dtype, expected f16 or bf16 with it");
  if (said != 0 && said != natural)
    raise(SPK_UNSUPPORTED_DTYPE, "array: got a dtype that is not that of its class, expected none");
  return natural;
}

inline int64_t count_of(const Elements &elements) {
  return std::visit([](const auto &array) -> int64_t { return array.numel(); }, elements);
}

inline size_t bytes_of(const Elements &elements) {
  return std::visit([](const auto &array) -> size_t { return array.byte_size(); }, elements);
}

inline const void *address_of(const Elements &elements) {
  return std::visit([](const auto &array) -> const void * { return array.data(); }, elements);
}

/* The address of elements that nobody else sees: copies them if a variable of Octave shares
 * them. */
inline void *own_address_of(Elements &elements) {
  return std::visit([](auto &array) -> void * { return array.fortran_vec(); }, elements);
}

/* An array that the library may write. */
class Memory {
 public:
  Memory(const octave_value &value, int32_t dtype)
      : elements_(elements_of(value)), dtype_(dtype_of(elements_, dtype)) {}

  int32_t dtype() const { return dtype_; }
  int64_t numel() const { return count_of(elements_); }

  /* The elements as a matrix. It shares them until either is written; during a call, when they may
   * be written at any time, it is a copy. */
  octave_value value() const {
    Elements shown = elements_;
    if (pins_ > 0) own_address_of(shown);
    return std::visit([](const auto &array) { return octave_value(array); }, shown);
  }

  /* Takes other elements, of the same class. During a call that writes here, whose callback does
   * this, they are copied to where the library expects them, and must be as many. */
  void assign(const octave_value &value) {
    Elements given = elements_of(value);
    if (given.index() != elements_.index())
      raise(SPK_UNSUPPORTED_DTYPE, "array: got another class than it has, expected the same");
    if (pins_ == 0) {
      elements_ = std::move(given);
      return;
    }
    if (writers_ == 0)
      raise(SPK_INVALID_ARGUMENT, "array: got elements while a call reads it, expected none");
    if (count_of(given) != count_of(elements_))
      raise(SPK_SHAPE_MISMATCH, "array in use: got another number of elements, expected the same");
    std::memcpy(own_address_of(elements_), address_of(given), bytes_of(given));
  }

  spk_buffer lend() {
    const void *data = address_of(elements_);
    return {const_cast<void *>(data), numel(), dtype_, SPK_LAYOUT_VIEW, nullptr};
  }
  spk_buffer lend_for_writing() {
    return {own_address_of(elements_), numel(), dtype_, SPK_LAYOUT_VIEW, nullptr};
  }
  void pin(bool written) {
    ++pins_;
    if (written) ++writers_;
  }
  void unpin(bool written) {
    --pins_;
    if (written) --writers_;
  }

 private:
  Elements elements_;
  int32_t dtype_;
  int pins_ = 0;
  int writers_ = 0;
};

/* The arrays of one argument, for the length of a call. */
class Buffers {
 public:
  Buffers() = default;
  Buffers(const Buffers &) = delete;
  Buffers &operator=(const Buffers &) = delete;
  ~Buffers() {
    for (const auto &[memory, written] : pinned_) memory->unpin(written);
  }

  void add_none() { buffers_.push_back({nullptr, 0, 0, 0, nullptr}); }
  void add(const octave_value &kept, Memory *memory, bool written) {
    kept_.push_back(kept);
    memory->pin(written);
    pinned_.emplace_back(memory, written);
    buffers_.push_back(written ? memory->lend_for_writing() : memory->lend());
  }
  /* A matrix that is only read. */
  void add(const octave_value &value) {
    const Elements elements = elements_of(value);
    buffers_.push_back({const_cast<void *>(address_of(elements)), count_of(elements),
                        dtype_of(elements, 0), SPK_LAYOUT_VIEW, nullptr});
    lent_.push_back(elements);
  }

  const spk_buffer *data() const { return buffers_.data(); }
  int32_t count() const { return static_cast<int32_t>(buffers_.size()); }

 private:
  std::vector<spk_buffer> buffers_;
  std::vector<std::pair<Memory *, bool>> pinned_;
  std::vector<octave_value> kept_;
  std::vector<Elements> lent_;
};

inline bool is_none(const octave_value &value) {
  return value.is_double_type() && value.isempty();
}

inline std::vector<int64_t> integers_of(const octave_value &value) {
  std::vector<int64_t> integers;
  if (is_none(value)) return integers;
  if (!value.isnumeric() && !value.islogical())
    raise(SPK_INVALID_ARGUMENT,
          ("integers: got " + value.class_name() + ", expected some").c_str());
  const int64NDArray array = value.int64_array_value();
  if (value.isfloat()) {
    const NDArray numbers = value.array_value();
    for (octave_idx_type i = 0; i < numbers.numel(); ++i)
      if (numbers(i) != static_cast<double>(array(i).value()))
        raise(SPK_INVALID_ARGUMENT, "integers: got a number with a fraction, expected whole ones");
  }
  for (octave_idx_type i = 0; i < array.numel(); ++i) integers.push_back(array(i).value());
  return integers;
}

inline int64_t integer_of(const octave_value &value, int64_t lowest, int64_t highest) {
  const std::vector<int64_t> integers = integers_of(value);
  if (integers.size() != 1 || integers[0] < lowest || integers[0] > highest)
    raise(SPK_INVALID_ARGUMENT, "integer: got several numbers or one out of range, expected one");
  return integers[0];
}

inline double number_of(const octave_value &value) {
  if (!value.is_real_scalar() && !value.is_bool_scalar())
    raise(SPK_INVALID_ARGUMENT, ("number: got " + value.class_name() + ", expected one").c_str());
  return value.double_value();
}

inline std::string text_of(const octave_value &value) {
  if (!value.is_string())
    raise(SPK_INVALID_ARGUMENT, ("text: got " + value.class_name() + ", expected one").c_str());
  return value.string_value();
}

template <class Number>
octave_value row_of(const Number *numbers, int32_t count) {
  RowVector row(count);
  for (int32_t i = 0; i < count; ++i) row(i) = static_cast<double>(numbers[i]);
  return row;
}

/* --- calls and callbacks ------------------------------------------------------------------ */

/* One call of the library. A callback may make others, whose failures are theirs alone. */
class Call {
 public:
  Call() : outer_(current_) {
    current_ = this;
    flat_begin();
  }
  ~Call() { current_ = outer_; }

  /* Raises what a callback threw, or else what the library says. */
  void finish() {
    const spk_status status = flat_error.status;
    flat_begin();
    if (thrown_) std::rethrow_exception(thrown_);
    if (status != SPK_OK) raise(status, flat_error.message);
  }

  static void stash(std::exception_ptr thrown) { current_->thrown_ = thrown; }

 private:
  static thread_local Call *current_;
  Call *outer_;
  std::exception_ptr thrown_;
};
thread_local Call *Call::current_ = nullptr;

/* Calls an Octave function with a column of numbers. One that gives nothing, or an empty matrix,
 * asks to stop. */
inline int32_t call_function(void *user, const double *numbers, int64_t count, double *result) {
  try {
    NDArray column(dim_vector(static_cast<octave_idx_type>(count), 1));
    if (count > 0) std::memcpy(column.fortran_vec(), numbers, count * sizeof *numbers);
    const octave_value_list given =
        octave::feval(*static_cast<octave_value *>(user), ovl(column), 1);
    if (given.length() == 0 || given(0).is_undefined() || given(0).isempty()) return 1;
    *result = given(0).double_value();
    return 0;
  } catch (...) {
    Call::stash(std::current_exception());
    return 1;
  }
}

inline void drop_function(void *user) {
  delete static_cast<octave_value *>(user);
}

}  // namespace spk_octave

#endif  // SPARSEKIT_BINDINGS_OCTAVE_MEMORY_H_
