// The SIMD kernels, as one table per instruction set. Every kernel gives the same bits on every
// instruction set: the order of a sum is fixed by virtual lanes, never by the width of a register,
// and nothing depends on fused multiply-add.
//
// Kernels know rows of elements, not views: a row is `n` elements `step` apart.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spk {

enum DtypeIndex { kF32, kF64, kF16, kBf16, kDtypes };

// What a reduction accumulates, per block, in double.
enum Reduction {
  kCount,            // of elements with !(|x| <= eps), so NaN counts
  kSum,              // of |x|
  kSumSquares,       // of x^2; exact products for f32, f16 and bf16
  kMaxMagnitude,     // NaN wins
  kMinMagnitude,     // NaN wins
  kMin,              // NaN wins, zeros become +0
  kMax,              // NaN wins, zeros become +0
  kSumExact,         // of |x|, compensated: for f64
  kSumSquaresExact,  // of (x * scale)^2, compensated: for f64
  kReductions
};

inline constexpr bool is_compensated(Reduction r) {
  return r >= kSumExact;
}

// Accumulators start here: adding nothing to it changes nothing.
double identity_of(Reduction reduction);

// Rows of a reduction along a block keep this many partial sums, the virtual lanes.
inline constexpr int64_t kLanes = 8;

struct ReduceArgs {
  const std::byte *x;  // element 0 of row 0
  int64_t n;           // elements in a row
  int64_t step;        // elements between neighbours of a row
  int64_t rows;
  int64_t row_step;     // bytes between rows
  double *sum;          // accumulator of row 0 (along: kLanes of them; across: one an element)
  double *error;        // compensation, laid out as sum; only where is_compensated
  int64_t sum_step;     // doubles between the accumulators of two rows; 0: rows of one block
  const double *scale;  // kSumSquaresExact: one an accumulator (along: kLanes equal ones)
  double eps;           // kCount
};

// y = factor * x, rounded once; factor 1 copies bits, factor 0 writes +0.
struct ScaleArgs {
  const std::byte *x;
  std::byte *y;
  int64_t n;
  int64_t x_step, y_step;  // elements
  int64_t rows;
  int64_t x_row, y_row;             // bytes
  const void *factor;               // double, or keep bytes (non-zero = 1)
  int64_t factor_step, factor_row;  // elements; a step of 0: one factor for the row
};

// Sums over one block for the conditioned proximal operator; compensated, kLanes virtual lanes.
struct ConditionedSums {
  double weights;    // sum w^2
  double products;   // sum a^2
  double quotients;  // sum w^2 / h
  double cubes;      // sum h a^2
};
struct SecularSums {
  double square, square_error;  // sum q^2 for q = a / (1 + h nu), as an unevaluated sum
  double slope;                 // sum q^2 h / (1 + h nu)
};

struct Kernels {
  // One block a row: sums run along the row.
  void (*reduce_along[kDtypes][kReductions])(const ReduceArgs &args);
  // One block an element: sums run across rows.
  void (*reduce_across[kDtypes][kReductions])(const ReduceArgs &args);
  void (*scale[kDtypes])(const ScaleArgs &args);
  void (*mask[kDtypes])(const ScaleArgs &args);
  // Conversions of a row; `from_double` rounds once, to nearest even.
  void (*to_double[kDtypes])(const std::byte *x, int64_t n, int64_t step, double *out);
  void (*from_double[kDtypes])(const double *in, int64_t n, int64_t step, std::byte *y);
  ConditionedSums (*conditioned_sums)(const double *w, const double *h, const double *a, int64_t n);
  SecularSums (*secular_sums)(const double *a, const double *h, int64_t n, double nu);
};

// The table of the best instruction set that this machine has.
const Kernels &kernels();

// Folds the kLanes accumulators of each of `count` blocks into sum[i] (and error[i]).
void fold_lanes(Reduction reduction, double *sum, double *error, int64_t count);
// Combines one more partial accumulator into (sum, error).
void combine(Reduction reduction, double *sum, double *error, double more, double more_error);

DtypeIndex index_of_dtype(int32_t dtype);

}  // namespace spk
