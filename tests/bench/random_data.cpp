#include "random_data.hpp"

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

// SplitMix64 of a position: any element can be had without the ones before.
uint64_t mix(uint64_t position) {
  uint64_t z = (position + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

// The sum of four uniform numbers, scaled to variance 1; a true normal one costs ten times as much.
double bell(uint64_t position) {
  const uint64_t a = mix(2 * position);
  const uint64_t b = mix(2 * position + 1);
  const uint64_t sum = (a >> 32) + (a & 0xffffffff) + (b >> 32) + (b & 0xffffffff);
  return (static_cast<double>(sum) * 0x1p-32 - 2) * std::sqrt(3.0);
}

double uniform(uint64_t position) {
  return static_cast<double>(mix(position) >> 11) * 0x1p-53;
}

template <class T>
T element(double value) {
  return T(static_cast<float>(value));
}
template <>
double element<double>(double value) {
  return value;
}

template <class Value>
void fill(const Dtype &dtype, void *data, int64_t count, Value value) {
  with_element_type(dtype.code, [&](auto tag) {
    using T = decltype(tag);
    for (int64_t i = 0; i < count; ++i) {
      static_cast<T *>(data)[i] = element<T>(value(static_cast<uint64_t>(i)));
    }
  });
}

// Keeps conditioners apart from the weights at the same positions.
constexpr uint64_t kConditionerStream = uint64_t{1} << 40;
// And what is pruned from what is not.
constexpr uint64_t kPrunedStream = uint64_t{1} << 41;
constexpr int64_t kSample = 65536;

}  // namespace

void fill_weights(const Dtype &dtype, void *data, int64_t count) {
  fill(dtype, data, count, bell);
}

void fill_pruned_weights(const Dtype &dtype, void *data, int64_t count) {
  fill(dtype, data, count,
       [](uint64_t i) { return uniform(kPrunedStream + i) < 0.1 ? bell(i) : 0.0; });
}

void fill_conditioners(const Dtype &dtype, void *data, int64_t count) {
  fill(dtype, data, count, [](uint64_t i) { return std::exp2(2 * bell(kConditionerStream + i)); });
}

void fill_multipliers(const Dtype &dtype, void *data, int64_t count) {
  fill(dtype, data, count, [](uint64_t i) { return 0.5 + uniform(i); });
}

void fill_mask(uint8_t *data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) data[i] = mix(static_cast<uint64_t>(i)) & 1;
}

double root_mean_square(const Dtype &dtype, const void *weights, int64_t count) {
  return root_mean_square(dtype, weights, nullptr, count);
}

double root_mean_square(const Dtype &dtype, const void *weights, const void *conditioners,
                        int64_t count) {
  const int64_t sample = std::min(count, kSample);
  return with_element_type(dtype.code, [&](auto tag) {
    using T = decltype(tag);
    double sum = 0;
    for (int64_t i = 0; i < sample; ++i) {
      auto value = static_cast<double>(static_cast<float>(static_cast<const T *>(weights)[i]));
      if (conditioners) {
        value *= static_cast<double>(static_cast<float>(static_cast<const T *>(conditioners)[i]));
      }
      sum += value * value;
    }
    return std::sqrt(sum / static_cast<double>(sample));
  });
}

}  // namespace bench
