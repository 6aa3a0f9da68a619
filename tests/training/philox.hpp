// Philox 4x32-10, written from Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011).
#ifndef SPARSEKIT_TESTS_TRAINING_PHILOX_HPP_
#define SPARSEKIT_TESTS_TRAINING_PHILOX_HPP_

#include <array>
#include <cstdint>

namespace training {

using Counter = std::array<uint32_t, 4>;
using Key = std::array<uint32_t, 2>;

inline Counter philox_round(const Counter &c, const Key &key) {
  const uint64_t first = uint64_t{0xD2511F53u} * c[0];
  const uint64_t second = uint64_t{0xCD9E8D57u} * c[2];
  return {static_cast<uint32_t>(second >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(second),
          static_cast<uint32_t>(first >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(first)};
}

inline Counter philox(Counter counter, Key key) {
  for (int round = 0; round < 10; ++round) {
    counter = philox_round(counter, key);
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

inline Key key_of(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

}  // namespace training

#endif  // SPARSEKIT_TESTS_TRAINING_PHILOX_HPP_
