#include "self_check.hpp"

#include <sparsekit/sparsekit.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "model.hpp"
#include "oracle.hpp"
#include "random.hpp"

namespace prop {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool bits_are_right(Random &random) {
  // Every 16-bit number comes back; the hardware agrees about float.
  for (int dtype : {SPK_F16, SPK_BF16}) {
    for (uint64_t bits = 0; bits < 0x10000; ++bits) {
      const double value = decode(dtype, bits);
      if (!std::isnan(value) && encode(dtype, value) != bits) return false;
    }
  }
  for (int i = 0; i < 20000; ++i) {
    const double value = random.normal() * std::exp2(random.uniform(-160, 130));
    const float narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    if (encode(SPK_F32, value) != bits || decode(SPK_F32, bits) != narrow) return false;
    uint64_t wide_bits;
    std::memcpy(&wide_bits, &value, sizeof wide_bits);
    if (encode(SPK_F64, value) != wide_bits || decode(SPK_F64, wide_bits) != value) return false;
  }
  return encode(SPK_F16, 65519.99) == 0x7bff && encode(SPK_F16, 65520) == 0x7c00 &&
         encode(SPK_F16, 0x1p-25) == 0 && encode(SPK_F16, 0x1.01p-25) == 1 &&
         encode(SPK_BF16, 1 + 0x1p-8) == 0x3f80 && encode(SPK_BF16, 1 + 0x1.8p-7) == 0x3f82 &&
         encode(SPK_F32, -0.0) == 0x80000000u && encode(SPK_F64, kInfinity) == 0x7ff0000000000000u;
}

bool roots_are_right() {
  for (double x : {2.0, 3.0, 1e-300, 5e-324, 1e308, 0.1, 12345.678}) {
    const quad root = square_root(static_cast<quad>(x));
    if (magnitude(root * root - x) > x * power_of_two(-108)) return false;
  }
  return square_root(static_cast<quad>(1e300) * 1e300) == 1e300 && square_root(0) == 0;
}

bool norms_are_right() {
  const auto near = [](quad got, double expected) {
    return magnitude(got - expected) <= expected * 0x1p-48;
  };
  return exact_norm({3, -4}, 2) == 5 && exact_norm({3, -4}, 1) == 7 &&
         exact_norm({3, -4, 0}, 0) == 2 && exact_norm({3, -4}, kInfinity) == 4 &&
         exact_norm({3, -4, 0}, -kInfinity) == 0 && near(exact_norm({1, 1}, 0.5), 4) &&
         near(exact_norm({2, 2, 2, 2, 2, 2, 2, 2}, 3), 4) && exact_norm({0, 0}, 3) == 0 &&
         is_nan(exact_norm({1, std::nan("")}, 2)) && exact_norm({std::nan("")}, 0) == 1 &&
         norm_is_near(SPK_F32, 2, 1, 1 + 0x1p-23) && !norm_is_near(SPK_F32, 2, 1, 1 + 0x1p-22) &&
         norm_is_near(SPK_F32, 1, 1e39, kInfinity) && !norm_is_near(SPK_F32, 1, 1e38, kInfinity);
}

bool selections_are_right() {
  const std::vector<double> scores = {1, std::nan(""), 2, kInfinity, 2, -0.0, 2, 0};
  if (ranking(scores) != std::vector<int64_t>{1, 3, 2, 4, 6, 0, 5, 7}) return false;
  const Selection by_position = select_top(scores, 4, SPK_TIES_BY_POSITION);
  const Selection all = select_top(scores, 4, SPK_TIES_KEEP_ALL);
  return by_position.kept == 4 && by_position.ties == 3 && by_position.keep[4] &&
         !by_position.keep[6] && all.kept == 5 && all.keep[6] &&
         select_top(scores, 5, SPK_TIES_KEEP_ALL).ties == 0 &&
         select_top(scores, 0, SPK_TIES_KEEP_ALL).kept == 0 && mid_is_right(SPK_F32, 3, 1, 1, 2) &&
         !mid_is_right(SPK_F32, 3, 1, 1, 1) && mid_is_right(SPK_F64, 3, 1, 3, 2.5) &&
         mid_is_right(SPK_F32, kInfinity, 1, 1, kInfinity) && pruned_count(0.29, 100).least == 29 &&
         pruned_count(0.5, 5).most == 2 && pruned_count(1, 7).least == 7;
}

SoftBlock pair_of(double first, double second, double after_first, double after_second, double h1,
                  double h2, double threshold) {
  SoftBlock block = {{}, SPK_F64, threshold, false};
  block.elements.push_back({SPK_F64, encode(SPK_F64, first), encode(SPK_F64, after_first), h1});
  block.elements.push_back({SPK_F64, encode(SPK_F64, second), encode(SPK_F64, after_second), h2});
  return block;
}

bool is_fine(const Verdict &verdict) {
  return verdict.problem.empty() && verdict.converged;
}

bool soft_is_right() {
  // Norm 5, threshold 2.5: half of it stays. The metric h = 2 halves the threshold.
  if (!is_fine(check_euclidean(pair_of(3, -4, 1.5, -2, 1, 1, 2.5), 0))) return false;
  if (is_fine(check_euclidean(pair_of(3, -4, 1.5, -2.001, 1, 1, 2.5), 0))) return false;
  if (!is_fine(check_euclidean(pair_of(3, -4, 0, 0, 1, 1, 5), 0))) return false;
  if (!is_fine(check_conditioned(pair_of(3, -4, 2.25, -3, 2, 2, 2.5), 0))) return false;
  if (is_fine(check_conditioned(pair_of(3, -4, 2.2500001, -3, 2, 2, 2.5), 0))) return false;
  if (!is_fine(check_conditioned(pair_of(3, -4, 0, 0, 2, 2, 10), 0))) return false;
  // x = (1, 1), mu = 1/2, so t = mu ||x||: w = x (h + mu) / h.
  const double threshold = std::sqrt(2.0) / 2;
  return is_fine(check_conditioned(pair_of(1.5, 1.125, 1, 1, 1, 4, threshold), 0)) &&
         !is_fine(check_conditioned(pair_of(1.5, 1.125, 1.01, 1, 1, 4, threshold), 0));
}

// A 4 x 6 view in blocks of 2 x 3: element (1, 4) lies in block (0, 1), and in block (1, 0) of a
// coupling that swaps the axes.
bool geometry_is_right() {
  LeafModel leaf;
  leaf.dtype = SPK_F32;
  leaf.view = {{4, 6}, {-10, 1}, 30};
  leaf.block = {2, 3};
  leaf.order = {0, 1};
  if (leaf.view.at({1, 4}) != 24 || leaf.view.reach() != 36) return false;
  if (leaf.block_of({1, 4}, {2, 2}) != 1) return false;
  leaf.order = {1, 0};
  if (leaf.block_of({1, 4}, {2, 2}) != 2) return false;
  const BlockModel block = {{2, 2}, {leaf}};
  const Membership members(block);
  const Element &second = members[2].begin()[1];
  const Element &fourth = members[2].begin()[3];
  return members[2].size() == 6 && second.index == 4 && fourth.index == 9;
}

}  // namespace

std::string check_oracle() {
  Random random(1);
  if (!bits_are_right(random)) return "conversion of number formats";
  if (!roots_are_right()) return "square roots";
  if (!norms_are_right()) return "norms";
  if (!selections_are_right()) return "selections";
  if (!soft_is_right()) return "soft thresholds";
  if (!geometry_is_right()) return "geometry";
  return "";
}

}  // namespace prop
