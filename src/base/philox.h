// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): random
// numbers as a function of a key and a counter, the same on every machine and in any order.
#pragma once

#include <array>
#include <cstdint>

namespace spk {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxBlock = std::array<uint32_t, 4>;

inline constexpr int kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMultipliers[2] = {0xd2511f53, 0xcd9e8d57};
inline constexpr uint32_t kPhiloxWeyl[2] = {0x9e3779b9, 0xbb67ae85};

constexpr PhiloxKey philox_key(uint64_t seed) {
  return {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
}

// The key of a round.
constexpr PhiloxKey philox_round_key(const PhiloxKey &key, int round) {
  const auto r = static_cast<uint32_t>(round);
  return {key[0] + r * kPhiloxWeyl[0], key[1] + r * kPhiloxWeyl[1]};
}

constexpr PhiloxBlock philox(PhiloxBlock x, const PhiloxKey &key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const PhiloxKey k = philox_round_key(key, round);
    const uint64_t a = uint64_t{kPhiloxMultipliers[0]} * x[0];
    const uint64_t b = uint64_t{kPhiloxMultipliers[1]} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ k[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ k[1], static_cast<uint32_t>(a)};
  }
  return x;
}

// The first half of a block.
constexpr uint64_t philox_word(const PhiloxBlock &counter, const PhiloxKey &key) {
  const PhiloxBlock x = philox(counter, key);
  return x[0] | uint64_t{x[1]} << 32;
}

// The known answers of Random123.
static_assert(philox({}, {}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

}  // namespace spk
