// Compiled for the machine that builds it, hence Highway's static dispatch.
#define HWY_COMPILE_ONLY_STATIC
#include "sweep_kernels.hpp"

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace bench {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// --- vectors of each dtype, as numbers to compute with ------------------------------------------

struct VectorsF32 {
  using Memory = float;
  static constexpr hn::ScalableTag<float> d{};
  static auto load(const Memory *p) { return hn::Load(d, p); }
  template <class V>
  static auto pack(V value) {
    return value;
  }
  static constexpr hn::ScalableTag<float> packed{};
};

struct VectorsF64 {
  using Memory = double;
  static constexpr hn::ScalableTag<double> d{};
  static auto load(const Memory *p) { return hn::Load(d, p); }
  template <class V>
  static auto pack(V value) {
    return value;
  }
  static constexpr hn::ScalableTag<double> packed{};
};

struct VectorsF16 {
  using Memory = hwy::float16_t;
  static constexpr hn::ScalableTag<float> d{};
  static constexpr hn::Rebind<hwy::float16_t, decltype(d)> packed{};
  static auto load(const Memory *p) { return hn::PromoteTo(d, hn::Load(packed, p)); }
  template <class V>
  static auto pack(V value) {
    return hn::DemoteTo(packed, value);
  }
};

struct VectorsBF16 {
  using Memory = uint16_t;
  static constexpr hn::ScalableTag<float> d{};
  static constexpr hn::Rebind<uint32_t, decltype(d)> words{};
  static constexpr hn::Rebind<uint16_t, decltype(d)> packed{};
  static auto load(const Memory *p) {
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, hn::Load(packed, p))));
  }
  // Rounds to nearest even.
  template <class V>
  static auto pack(V value) {
    const auto bits = hn::BitCast(words, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(words, 0x7fff)));
    const hn::Rebind<int32_t, decltype(d)> as_signed{};
    // What is demoted fits: the upper halves are zero.
    return hn::DemoteTo(packed, hn::BitCast(as_signed, hn::ShiftRight<16>(rounded)));
  }
};

template <class T>
struct VectorsOf;
template <>
struct VectorsOf<float> : VectorsF32 {};
template <>
struct VectorsOf<double> : VectorsF64 {};
template <>
struct VectorsOf<F16> : VectorsF16 {};
template <>
struct VectorsOf<BF16> : VectorsBF16 {};

// --- loops --------------------------------------------------------------------------------------

template <class T>
void compiler_loop(void *x, const void *h, double factor, int64_t count) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  T *__restrict values = static_cast<T *>(x);
  const T *__restrict conditioners = static_cast<const T *>(h);
  const auto scale = static_cast<Wide>(factor);
  if (h) {
    for (int64_t i = 0; i < count; ++i) {
      values[i] = T(static_cast<Wide>(values[i]) * static_cast<Wide>(conditioners[i]));
    }
  } else {
    for (int64_t i = 0; i < count; ++i) values[i] = T(static_cast<Wide>(values[i]) * scale);
  }
}

template <bool Streaming, class D, class V, class Memory>
void store(V value, D d, Memory *to) {
  if constexpr (Streaming) {
    hn::Stream(value, d, to);
  } else {
    hn::Store(value, d, to);
  }
}

// Four vectors at a time; all loads come first, so that they are under way together.
template <bool Streaming, class Vectors, class Factor>
void scale_four(typename Vectors::Memory *x, int64_t lanes, Factor factor) {
  const auto a = hn::Mul(Vectors::load(x), factor(int64_t{0}));
  const auto b = hn::Mul(Vectors::load(x + lanes), factor(lanes));
  const auto c = hn::Mul(Vectors::load(x + 2 * lanes), factor(2 * lanes));
  const auto e = hn::Mul(Vectors::load(x + 3 * lanes), factor(3 * lanes));
  store<Streaming>(Vectors::pack(a), Vectors::packed, x);
  store<Streaming>(Vectors::pack(b), Vectors::packed, x + lanes);
  store<Streaming>(Vectors::pack(c), Vectors::packed, x + 2 * lanes);
  store<Streaming>(Vectors::pack(e), Vectors::packed, x + 3 * lanes);
}

template <class T, bool Streaming>
void vector_loop(void *x, const void *h, double factor, int64_t count) {
  using Vectors = VectorsOf<T>;
  using Memory = typename Vectors::Memory;
  auto *values = static_cast<Memory *>(x);
  const auto *conditioners = static_cast<const Memory *>(h);
  const auto lanes = static_cast<int64_t>(hn::Lanes(Vectors::d));
  const auto scale = hn::Set(Vectors::d, static_cast<hn::TFromD<decltype(Vectors::d)>>(factor));
  int64_t i = 0;
  if (h) {
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      scale_four<Streaming, Vectors>(
          values + i, lanes, [&](int64_t at) { return Vectors::load(conditioners + i + at); });
    }
  } else {
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      scale_four<Streaming, Vectors>(values + i, lanes, [&](int64_t) { return scale; });
    }
  }
  if (Streaming) hwy::FlushStream();
  compiler_loop<T>(values + i, h ? conditioners + i : nullptr, factor, count - i);
}

}  // namespace

SweepLoops sweep_loops(const Dtype &dtype) {
  return with_element_type(dtype.code, [](auto tag) {
    using T = decltype(tag);
    return SweepLoops{compiler_loop<T>, vector_loop<T, false>, vector_loop<T, true>};
  });
}

void copy_streaming(void *to, const void *from, int64_t bytes) {
  const hn::ScalableTag<uint8_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto *out = static_cast<uint8_t *>(to);
  const auto *in = static_cast<const uint8_t *>(from);
  int64_t i = 0;
  for (; i + lanes <= bytes; i += lanes) hn::Stream(hn::Load(d, in + i), d, out + i);
  hwy::FlushStream();
  std::copy(in + i, in + bytes, out + i);
}

namespace {

// Does the processor bring streams best by itself (src/kernels/ask_near-inl.h)? Where it does, some
// kernels of the library ask for them and some do not; the loops here, which work on one piece of
// one stream at a time, are no faster if they ask, or slower (measured, Zen 4).
bool leaves_streams() {
#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64 && (HWY_COMPILER_GCC || HWY_COMPILER_CLANG)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") == 0;
#else
  return false;
#endif
}
const bool asks_for_streams = !leaves_streams();

// As the library does (src/kernels/prefetch.h): far ahead into the second level of cache, then into
// the first. Inlined always, as there.
HWY_INLINE void ask_ahead(const void *x, int64_t bytes) {
  if (!asks_for_streams) return;
  constexpr int64_t kFar = 4608;
  constexpr int64_t kNear = 1024;
  const auto *at = static_cast<const std::byte *>(x);
  for (int64_t line = 0; line < bytes; line += 64) {
    __builtin_prefetch(at + line + kFar, 0, 2);
    __builtin_prefetch(at + line + kNear, 0, 3);
  }
}
HWY_INLINE void ask_for_four_lines(const void *x) {
  ask_ahead(x, 256);
}

using Ints = hn::ScalableTag<int32_t>;
using IntVec = hn::Vec<Ints>;

// Minima and maxima, so many for a line, of four vectors.
template <int kOperations>
HWY_INLINE void compute_four(const IntVec *low, IntVec high, IntVec *x) {
  constexpr auto kRounds = static_cast<int64_t>(kOperations * hn::MaxLanes(Ints()) * 4 / 64 / 2);
  HWY_UNROLL(64)
  for (int64_t round = 0; round < kRounds; ++round) {
    for (int64_t k = 0; k < 4; ++k) x[k] = hn::Min(hn::Max(x[k], low[k]), high);
  }
}

}  // namespace

template <int kOperations, bool kWrites>
int32_t compute_along(void *data, int64_t bytes) {
  const Ints d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Compilers must not know that these bounds leave all as it is.
  volatile int32_t least = INT32_MIN;
  volatile int32_t most = INT32_MAX;
  const auto lowest = hn::Set(d, least);
  const IntVec low[4] = {lowest, lowest, lowest, lowest};
  const auto high = hn::Set(d, most);
  auto *x = static_cast<int32_t *>(data);
  auto seen = hn::Zero(d);
  for (int64_t i = 0; i + 4 * lanes <= bytes / 4; i += 4 * lanes) {
    if (i % 64 == 0) ask_for_four_lines(x + i);
    IntVec four[4];
    for (int64_t k = 0; k < 4; ++k) four[k] = hn::Load(d, x + i + k * lanes);
    compute_four<kOperations>(low, high, four);
    for (int64_t k = 0; k < 4; ++k) {
      if constexpr (kWrites) {
        hn::Store(four[k], d, x + i + k * lanes);
      } else {
        seen = hn::Or(seen, four[k]);
      }
    }
  }
  return hn::GetLane(hn::MaxOfLanes(d, seen));
}
template int32_t compute_along<8, false>(void *data, int64_t bytes);
template int32_t compute_along<16, false>(void *data, int64_t bytes);
template int32_t compute_along<32, false>(void *data, int64_t bytes);
template int32_t compute_along<48, false>(void *data, int64_t bytes);
template int32_t compute_along<64, false>(void *data, int64_t bytes);
template int32_t compute_along<8, true>(void *data, int64_t bytes);
template int32_t compute_along<16, true>(void *data, int64_t bytes);
template int32_t compute_along<32, true>(void *data, int64_t bytes);
template int32_t compute_along<48, true>(void *data, int64_t bytes);
template int32_t compute_along<64, true>(void *data, int64_t bytes);
template int32_t compute_along<80, true>(void *data, int64_t bytes);
template int32_t compute_along<112, true>(void *data, int64_t bytes);
template int32_t compute_along<144, true>(void *data, int64_t bytes);

template <int kOperations, int kPer>
void compute_by(void *data, const void *by, int64_t bytes) {
  const Ints d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  volatile int32_t least = INT32_MIN;
  volatile int32_t most = INT32_MAX;
  const auto lowest = hn::Set(d, least);
  const auto high = hn::Set(d, most);
  auto *x = static_cast<int32_t *>(data);
  const auto *others = static_cast<const int32_t *>(by);
  for (int64_t i = 0; i + 4 * lanes <= bytes / 4; i += 4 * lanes, others += 4 / kPer * lanes) {
    if (i % 64 == 0) ask_for_four_lines(x + i);
    if (i % (64 * kPer) == 0) ask_for_four_lines(others);
    IntVec four[4];
    IntVec low[4];
    for (int64_t k = 0; k < 4; ++k) {
      four[k] = hn::Load(d, x + i + k * lanes);
      low[k] = hn::Min(hn::Load(d, others + k / kPer * lanes), lowest);
    }
    compute_four<kOperations>(low, high, four);
    for (int64_t k = 0; k < 4; ++k) hn::Store(four[k], d, x + i + k * lanes);
  }
}
template void compute_by<16, 1>(void *data, const void *by, int64_t bytes);
template void compute_by<48, 1>(void *data, const void *by, int64_t bytes);
template void compute_by<80, 1>(void *data, const void *by, int64_t bytes);
template void compute_by<112, 1>(void *data, const void *by, int64_t bytes);
template void compute_by<16, 2>(void *data, const void *by, int64_t bytes);
template void compute_by<48, 2>(void *data, const void *by, int64_t bytes);
template void compute_by<80, 2>(void *data, const void *by, int64_t bytes);
template void compute_by<112, 2>(void *data, const void *by, int64_t bytes);
template void compute_by<144, 2>(void *data, const void *by, int64_t bytes);

namespace {

using Doubles = hn::ScalableTag<double>;
using DoubleVec = hn::Vec<Doubles>;

// What floats become, and back, in the registers that are fastest (src/kernels/float_registers.h).
// Compilers that are older than Zen 4 take it for Zen 3, which has no AVX-512.
#if defined(__AVX512F__) && (defined(__znver3__) || defined(__znver4__))
using OfFloats = hn::CappedTag<double, 4>;
#else
using OfFloats = Doubles;
#endif
using OfFloatsVec = hn::Vec<OfFloats>;

// A sum of squares.
struct Plain {
  using Tag = OfFloats;
  OfFloatsVec sum = hn::Zero(Tag());

  void add(OfFloatsVec v) { sum = hn::MulAdd(v, v, sum); }
  OfFloatsVec total() const { return sum; }
};

// The same with what rounding takes.
struct Compensated {
  using Tag = Doubles;
  DoubleVec sum = hn::Zero(Doubles());
  DoubleVec lost = hn::Zero(Doubles());

  void add(DoubleVec v) {
    const DoubleVec square = hn::Mul(v, v);
    const DoubleVec total = hn::Add(sum, square);
    const DoubleVec larger = hn::Max(sum, square);
    lost = hn::Add(lost, hn::MulSub(v, v, square));
    lost = hn::Add(lost, hn::Sub(hn::Min(sum, square), hn::Sub(total, larger)));
    sum = total;
  }
  DoubleVec total() const { return hn::Add(sum, lost); }
};

template <typename Sum>
double total_of(const Sum *sums, int64_t count) {
  auto total = sums[0].total();
  for (int64_t k = 1; k < count; ++k) total = hn::Add(total, sums[k].total());
  return hn::GetLane(hn::SumOfLanes(typename Sum::Tag(), total));
}

HWY_INLINE OfFloatsVec load_doubles(const float *p) {
  return hn::PromoteTo(OfFloats(), hn::Load(hn::Rebind<float, OfFloats>(), p));
}
HWY_INLINE DoubleVec load_doubles(const double *p) {
  return hn::Load(Doubles(), p);
}

// What sums the squares of T, and how many of them side by side, enough that none is waited for.
template <typename T>
using SumOf = std::conditional_t<std::is_same_v<T, float>, Plain, Compensated>;
template <typename T>
constexpr int64_t kSums = std::is_same_v<T, float> ? 8 : 4;

template <typename T>
HWY_INLINE void add_squares(const T *x, SumOf<T> *sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(typename SumOf<T>::Tag()));
  HWY_UNROLL(8)
  for (int64_t k = 0; k < kSums<T>; ++k) sums[k].add(load_doubles(x + k * lanes));
}
template <typename T>
int64_t added_at_once() {
  return kSums<T> * static_cast<int64_t>(hn::Lanes(typename SumOf<T>::Tag()));
}

template <typename T>
double sum_squares(const T *x, int64_t count) {
  SumOf<T> sums[kSums<T>];
  const int64_t step = added_at_once<T>();
  for (int64_t i = 0; i + step <= count; i += step) {
    if (i * static_cast<int64_t>(sizeof(T)) % 256 == 0) ask_for_four_lines(x + i);
    add_squares(x + i, sums);
  }
  return total_of(sums, kSums<T>);
}

template <typename T>
double sum_squares_of(const T *x, int64_t rows, int64_t step, int64_t count) {
  SumOf<T> sums[kSums<T>];
  const int64_t at_once = added_at_once<T>();
  for (int64_t row = 0; row < rows; ++row, x += step) {
    for (int64_t i = 0; i + at_once <= count; i += at_once) add_squares(x + i, sums);
  }
  return total_of(sums, kSums<T>);
}

}  // namespace

double sum_squares_in_doubles(const float *x, int64_t count) {
  return sum_squares(x, count);
}
double sum_squares_in_doubles(const double *x, int64_t count) {
  return sum_squares(x, count);
}
double sum_squares_of_rows(const float *x, int64_t rows, int64_t step, int64_t count) {
  return sum_squares_of(x, rows, step, count);
}
double sum_squares_of_rows(const double *x, int64_t rows, int64_t step, int64_t count) {
  return sum_squares_of(x, rows, step, count);
}

void scale_in_doubles(double *x, int64_t count, double factor) {
  const Doubles d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const DoubleVec f = hn::Set(d, factor);
  for (int64_t i = 0; i + lanes <= count; i += lanes) {
    hn::Store(hn::Mul(hn::Load(d, x + i), f), d, x + i);
  }
}

void scale_in_doubles(float *x, int64_t count, double factor) {
  const OfFloats d;
  const hn::Rebind<float, OfFloats> floats;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  const auto scale = [&](int64_t i) HWY_ATTR {
    const auto v = hn::PromoteTo(d, hn::Load(floats, x + i));
    hn::Store(hn::DemoteTo(floats, hn::Mul(v, f)), floats, x + i);
  };
  for (int64_t i = 0; i + 2 * lanes <= count; i += 2 * lanes) {
    scale(i);
    scale(i + lanes);
  }
}

namespace {

// So many elements of w and h, and their shares, stay in the nearest caches.
constexpr int64_t kConditionedPiece = 2048;

// The sums over w and h that a start is made of: w^2, c^2, c^2 h and c^2 h^2 for c = h w.
template <class DT>
struct NormSums {
  using Vec = hn::Vec<DT>;
  Vec weights = hn::Zero(DT());
  Vec squares = hn::Zero(DT());
  Vec cubes = hn::Zero(DT());
  Vec fourths = hn::Zero(DT());

  HWY_INLINE void add(Vec w, Vec h) {
    const Vec c = hn::Mul(h, w);
    const Vec square = hn::Mul(c, c);
    const Vec cube = hn::Mul(square, h);
    weights = hn::Add(weights, hn::Mul(w, w));
    squares = hn::Add(squares, square);
    cubes = hn::Add(cubes, cube);
    fourths = hn::Add(fourths, hn::Mul(cube, h));
  }
};

// Those that a step is made of: (w p)^2 p^k, k = 0 to 3.
template <class DT>
struct MomentSums {
  using Vec = hn::Vec<DT>;
  Vec moment[4] = {hn::Zero(DT()), hn::Zero(DT()), hn::Zero(DT()), hn::Zero(DT())};

  HWY_INLINE void add(Vec w, Vec p) {
    const Vec x = hn::Mul(w, p);
    Vec term = hn::Mul(x, x);
    for (int k = 0; k < 4; ++k) {
      moment[k] = hn::Add(moment[k], term);
      if (k < 3) term = hn::Mul(term, p);
    }
  }
  double total() const {
    const Vec low = hn::Add(moment[0], moment[1]);
    return static_cast<double>(
        hn::GetLane(hn::SumOfLanes(DT(), hn::Add(low, hn::Add(moment[2], moment[3])))));
  }
};

HWY_INLINE void ask_for_piece_after(const float *x, int64_t i) {
  if (i % 16 == 0) __builtin_prefetch(x + kConditionedPiece + i, 0, 2);
}

double norms_in_floats(const float *w, const float *h, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  NormSums<hn::ScalableTag<float>> sums;
  for (int64_t i = 0; i < count; i += lanes) {
    ask_for_piece_after(w, i);
    sums.add(hn::Load(d, w + i), hn::Load(d, h + i));
  }
  const auto total =
      hn::Add(hn::Add(sums.weights, sums.squares), hn::Add(sums.cubes, sums.fourths));
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, total)));
}

double step_in_floats(const float *w, const float *h, float nu, int64_t count) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1);
  MomentSums<hn::ScalableTag<float>> sums;
  for (int64_t i = 0; i < count; i += lanes) {
    ask_for_piece_after(h, i);
    const auto ratio = hn::Mul(hn::Load(d, h + i), hn::Set(d, nu));
    sums.add(hn::Load(d, w + i), hn::Div(ratio, hn::Add(ratio, one)));
  }
  return sums.total();
}

// Two quotients share a division.
double step_in_doubles(const float *w, const float *h, double nu, int64_t count, double *shares) {
  const Doubles d;
  const hn::Rebind<float, Doubles> floats;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [&](const float *p) HWY_ATTR { return hn::PromoteTo(d, hn::Load(floats, p)); };
  const DoubleVec one = hn::Set(d, 1);
  const DoubleVec number = hn::Set(d, nu);
  MomentSums<Doubles> sums;
  for (int64_t i = 0; i < count; i += 2 * lanes) {
    const DoubleVec a = hn::Mul(load(h + i), number);
    const DoubleVec b = hn::Mul(load(h + i + lanes), number);
    const DoubleVec first = hn::Add(a, one);
    const DoubleVec second = hn::Add(b, one);
    const DoubleVec inverse = hn::Div(one, hn::Mul(first, second));
    const DoubleVec p = hn::Mul(hn::Mul(a, second), inverse);
    const DoubleVec q = hn::Mul(hn::Mul(b, first), inverse);
    hn::Store(p, d, shares + i);
    hn::Store(q, d, shares + i + lanes);
    sums.add(load(w + i), p);
    sums.add(load(w + i + lanes), q);
  }
  return sums.total();
}

// w p (1 + change) / (1 + p change), as three terms of its series.
void write_by_shares(float *w, const double *shares, double change, int64_t count) {
  const Doubles d;
  const hn::Rebind<float, Doubles> floats;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const DoubleVec first = hn::Set(d, 1 + change);
  const DoubleVec second = hn::Set(d, change * (1 + change));
  const DoubleVec third = hn::Set(d, change * change * (1 + change));
  for (int64_t i = 0; i < count; i += lanes) {
    const DoubleVec p = hn::Load(d, shares + i);
    const DoubleVec weighted = hn::Mul(hn::PromoteTo(d, hn::Load(floats, w + i)), p);
    const DoubleVec correction = hn::Mul(p, hn::Sub(second, hn::Mul(p, third)));
    const DoubleVec result = hn::Mul(weighted, hn::Sub(first, correction));
    hn::Store(hn::DemoteTo(floats, result), floats, w + i);
  }
}

}  // namespace

double conditioned_steps(float *w, const float *h, int64_t count) {
  // Compilers must not know them.
  volatile float nu = 1;
  volatile double change = 0x1p-20;
  HWY_ALIGN double shares[kConditionedPiece];
  double sum = 0;
  for (int64_t at = 0; at < count; at += kConditionedPiece) {
    const int64_t some = std::min(kConditionedPiece, count - at);
    sum += norms_in_floats(w + at, h + at, some);
    sum += step_in_floats(w + at, h + at, nu, some);
    sum += step_in_doubles(w + at, h + at, static_cast<double>(nu), some, shares);
    write_by_shares(w + at, shares, change, some);
  }
  return sum;
}

template <int kPer, bool kPastCaches>
void read_and_write_part(const void *data, void *part, int64_t bytes) {
  const Ints d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto *x = static_cast<const int32_t *>(data);
  auto *y = static_cast<int32_t *>(part);
  for (int64_t i = 0; i + kPer * lanes <= bytes / 4; i += kPer * lanes, y += lanes) {
    ask_ahead(x + i, static_cast<int64_t>(kPer * hn::MaxLanes(d) * 4));
    auto sum = hn::Load(d, x + i);
    for (int64_t k = 1; k < kPer; ++k) sum = hn::Add(sum, hn::Load(d, x + i + k * lanes));
    store<kPastCaches>(sum, d, y);
  }
  if (kPastCaches) hwy::FlushStream();
}
template void read_and_write_part<2, true>(const void *data, void *part, int64_t bytes);
template void read_and_write_part<9, false>(const void *data, void *part, int64_t bytes);

uint64_t read_rows(const void *data, int64_t rows, int64_t step, int64_t bytes) {
  const hn::ScalableTag<uint64_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  for (int64_t row = 0; row < rows; ++row) {
    const auto *words =
        reinterpret_cast<const uint64_t *>(static_cast<const std::byte *>(data) + row * step);
    for (int64_t i = 0; i + lanes <= bytes / 8; i += lanes) {
      sum = hn::Add(sum, hn::Load(d, words + i));
    }
  }
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

uint64_t read_all(const void *data, int64_t bytes) {
  return read_rows(data, 1, 0, bytes);
}

}  // namespace bench
HWY_AFTER_NAMESPACE();
