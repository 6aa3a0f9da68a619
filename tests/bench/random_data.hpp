// Random data, the same in every run.
#ifndef SPARSEKIT_TESTS_BENCH_RANDOM_DATA_HPP_
#define SPARSEKIT_TESTS_BENCH_RANDOM_DATA_HPP_

#include <cstdint>

#include "dtype.hpp"

namespace bench {

// Weights: bell-shaped around 0 with variance 1.
void fill_weights(const Dtype &dtype, void *data, int64_t count);
// The same with all but one in ten pruned.
void fill_pruned_weights(const Dtype &dtype, void *data, int64_t count);
// Conditioners: positive, spread over some decades, as square roots of second moments are.
void fill_conditioners(const Dtype &dtype, void *data, int64_t count);
// Multipliers, uniform in [0.5, 1.5).
void fill_multipliers(const Dtype &dtype, void *data, int64_t count);
// Bytes 0 and 1, half of each.
void fill_mask(uint8_t *data, int64_t count);

// Root of the mean square of weights, and of weights times conditioners, from a sample.
double root_mean_square(const Dtype &dtype, const void *weights, int64_t count);
double root_mean_square(const Dtype &dtype, const void *weights, const void *conditioners,
                        int64_t count);

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_RANDOM_DATA_HPP_
