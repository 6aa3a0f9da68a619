// The loops of the yardstick on one thread, and copies that know about caches.
#ifndef SPARSEKIT_TESTS_BENCH_SWEEP_KERNELS_HPP_
#define SPARSEKIT_TESTS_BENCH_SWEEP_KERNELS_HPP_

#include <cstdint>
#include <vector>

#include "dtype.hpp"

namespace bench {

// x[i] *= factor, or x[i] *= h[i] for a sweep that reads conditioners too (`h` not NULL).
using SweepLoop = void (*)(void *x, const void *h, double factor, int64_t count);

// The three ways to write it.
struct SweepLoops {
  SweepLoop compiler;   // a plain loop, as the compiler vectorises it
  SweepLoop vectors;    // by hand, four vectors at a time
  SweepLoop streaming;  // the same with non-temporal stores
};
// `x` has to be aligned to a cache line.
SweepLoops sweep_loops(const Dtype &dtype);

// Copies with non-temporal stores. `to` and `from` are aligned to a cache line.
void copy_streaming(void *to, const void *from, int64_t bytes);
// A checksum, so that nothing is optimised away. `data` is aligned to a cache line.
uint64_t read_all(const void *data, int64_t bytes);
// The same of rows of `bytes`, `step` bytes apart, which is whole cache lines.
uint64_t read_rows(const void *data, int64_t rows, int64_t step, int64_t bytes);

// Reads, or reads and writes, all of `data`, with so many operations on vectors for each cache line:
// minima and maxima of 32-bit integers, four side by side, which change nothing. Memory is asked for
// ahead as the library does. `data` is aligned to a line. What is returned depends on all of `data`
// if that is not written.
template <int kOperations, bool kWrites>
int32_t compute_along(void *data, int64_t bytes);

// The same, read and written, beside `by`, of which there is one number for each kPer of `data`.
template <int kOperations, int kPer>
void compute_by(void *data, const void *by, int64_t bytes);

// Norms and products as the library has them, in doubles: the sum of the squares of floats, or that
// of doubles with what rounding takes from squares and sums, and x[i] *= factor, rounded. `count`
// is a multiple of 64, `x` aligned to a line; the first asks ahead in the same way.
double sum_squares_in_doubles(const float *x, int64_t count);
double sum_squares_in_doubles(const double *x, int64_t count);
// The same of `rows` rows of `count` elements, `step` apart; asks for nothing.
double sum_squares_of_rows(const float *x, int64_t rows, int64_t step, int64_t count);
double sum_squares_of_rows(const double *x, int64_t rows, int64_t step, int64_t count);
void scale_in_doubles(float *x, int64_t count, double factor);
void scale_in_doubles(double *x, int64_t count, double factor);

// What conditioned soft thresholds of floats compute at least (src/kernels/conditioned_panel.cc), as
// if `w` and `h` were one block: the sums that a start is made of, and those of a step, in floats;
// those of a step in doubles, which keeps the shares nu h / (1 + nu h); and results made of these. A
// piece at a time, which stays in caches. `count` is a multiple of 64, both are aligned to a line.
double conditioned_steps(float *w, const float *h, int64_t count);

// Reads all of `data`, asked for in the same way, and writes one of kPer, past the caches or not. Both
// are aligned to a line.
template <int kPer, bool kPastCaches>
void read_and_write_part(const void *data, void *part, int64_t bytes);

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_SWEEP_KERNELS_HPP_
