#include "data.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace prop {

namespace {

double sample(Random &random, int dtype, Mix mix) {
  const double sign = random.one_in(2) ? 1 : -1;
  const double largest = largest_finite(dtype);
  const double normal = smallest_normal(dtype);
  switch (mix) {
    case kTies:
      return static_cast<double>(random.between(-3, 3));
    case kSparse:
      return random.one_in(3) ? random.normal() : sign * 0.0;
    case kTiny:
      return sign * normal * random.uniform(0, random.pick({0.01, 1.0, 4.0}));
    case kHuge:
      return sign * largest * random.uniform(0.01, 1);
    case kWide:
      // The extra bits below the smallest normal reach the denormals.
      return sign * std::exp2(random.uniform(std::log2(normal) - 6, std::log2(largest)));
    case kSpecial:
      switch (random.between(0, 11)) {
        case 0:
          return sign * std::numeric_limits<double>::infinity();
        case 1:
          return sign * std::numeric_limits<double>::quiet_NaN();
        case 2:
          return sign * 0.0;
        default:
          return random.normal();
      }
    default:
      return random.normal();
  }
}

// Blocks of one element, and blocks at all, are worth a mix of their own only in moderate numbers.
constexpr int64_t kMostPatches = 200;

}  // namespace

Mix random_mix(Random &random) {
  // Half of the cases hold what weights usually hold.
  if (random.one_in(2)) return random.pick({kNormal, kTies});
  return static_cast<Mix>(random.between(0, kMixes - 1));
}

uint64_t sample_bits(Random &random, int dtype, Mix mix) {
  if (mix == kZeros) return 0;
  if (mix == kBits) return random.bits() >> (64 - 8 * element_size(dtype));
  return encode(dtype, sample(random, dtype, mix));
}

void fill(Random &random, Buffer &buffer, Mix mix) {
  if (mix == kConstant) {
    const uint64_t bits = sample_bits(random, buffer.dtype(), random.pick({kNormal, kTies}));
    for (int64_t i = 0; i < buffer.numel(); ++i) buffer.set_bits(i, bits);
    return;
  }
  for (int64_t i = 0; i < buffer.numel(); ++i) {
    buffer.set_bits(i, sample_bits(random, buffer.dtype(), mix));
  }
}

void fill_leaves(Case &c, const LeafSet &leaves) {
  const Mix common = c.large && c.random.one_in(2) ? kTies : random_mix(c.random);
  const bool separate = c.random.one_in(4);
  for (size_t l = 0; l < leaves.size(); ++l) {
    fill(c.random, leaves[l], separate ? random_mix(c.random) : common);
  }
}

void patch_blocks(Case &c, const LeafSet &leaves, const Membership &elements) {
  if (!c.random.one_in(3)) return;
  const int64_t patches = std::min(elements.count() / 3 + 1, kMostPatches);
  for (int64_t i = 0; i < patches; ++i) {
    const int64_t b = c.random.between(0, elements.count() - 1);
    const Mix mix = c.random.one_in(2) ? kZeros : random_mix(c.random);
    for (const Element &e : elements[b]) {
      Buffer &leaf = leaves[e.leaf];
      leaf.set_bits(e.index, sample_bits(c.random, leaf.dtype(), mix));
    }
  }
}

void fill_mask(Random &random, Buffer &mask) {
  const int64_t rarity = random.pick<int64_t>({1, 2, 2, 2, 5, 1000000});
  for (int64_t i = 0; i < mask.numel(); ++i) {
    const bool set = random.one_in(rarity);
    mask.set_bits(i, set ? random.pick<uint64_t>({1, 1, 1, 2, 128, 255}) : 0);
  }
}

std::vector<double> values_of(const LeafSet &leaves, Unit unit) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(unit.size()));
  for (const Element &e : unit) values.push_back(leaves.before(e));
  return values;
}

}  // namespace prop
