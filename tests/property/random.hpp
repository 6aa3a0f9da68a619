// The random numbers of one case: everything in it follows from its seed.
#ifndef SPARSEKIT_TESTS_PROPERTY_RANDOM_HPP_
#define SPARSEKIT_TESTS_PROPERTY_RANDOM_HPP_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

namespace prop {

// splitmix64, which gives unrelated streams for neighbouring seeds.
inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}

  uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15u;
    return mix(state_);
  }
  // Uniform in [low, high]; both ends belong to it.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }
  // True once in `n` draws.
  bool one_in(int64_t n) { return between(1, n) == 1; }
  // In [0, 1).
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * unit(); }
  double log_uniform(double low, double high) {
    return std::exp(uniform(std::log(low), std::log(high)));
  }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - unit()));
    return radius * std::cos(6.283185307179586 * unit());
  }
  template <class T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[between(0, static_cast<int64_t>(choices.size()) - 1)];
  }
  std::vector<int64_t> permutation(int64_t count) {
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = count - 1; i > 0; --i) {
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(between(0, i))]);
    }
    return order;
  }

 private:
  uint64_t state_;
};

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_RANDOM_HPP_
