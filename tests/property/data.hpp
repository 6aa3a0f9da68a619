// The numbers that go into buffers: usual ones, and all that tend to break kernels.
#ifndef SPARSEKIT_TESTS_PROPERTY_DATA_HPP_
#define SPARSEKIT_TESTS_PROPERTY_DATA_HPP_

#include <cstdint>
#include <vector>

#include "case.hpp"
#include "subject.hpp"

namespace prop {

enum Mix {
  kNormal,
  kTies,      // small integers: exact norms, and many equal ones
  kSparse,    // mostly zeros of both signs
  kTiny,      // denormals and the smallest normals
  kHuge,      // squares overflow the dtype
  kWide,      // any exponent
  kSpecial,   // normal, with infinities and NaN among them
  kBits,      // any bits, NaN with payloads included
  kConstant,  // one number
  kZeros,
  kMixes
};

Mix random_mix(Random &random);
uint64_t sample_bits(Random &random, int dtype, Mix mix);

// All elements of one mix.
void fill(Random &random, Buffer &buffer, Mix mix);

// Weights: each leaf of its own mix or all of one.
void fill_leaves(Case &c, const LeafSet &leaves);
// Gives some blocks a mix of their own, often zeros.
void patch_blocks(Case &c, const LeafSet &leaves, const Membership &elements);

// Bytes for a mask; non-zero ones read as 1.
void fill_mask(Random &random, Buffer &mask);

// The elements of a block before the call.
std::vector<double> values_of(const LeafSet &leaves, Unit unit);

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_DATA_HPP_
