// The oracle against numbers that were published, or worked out by hand.
#include <sparsekit/training.h>

#include <cmath>
#include <limits>

#include "oracle.hpp"
#include "philox.hpp"

namespace training {

namespace {

bool near(double got, double expected, double error) {
  return std::abs(got - expected) <= error;
}

// The known-answer vectors of Random123.
bool philox_is_right() {
  const uint32_t ones = 0xffffffffu;
  return philox({0, 0, 0, 0}, {0, 0}) ==
             Counter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u} &&
         philox({ones, ones, ones, ones}, {ones, ones}) ==
             Counter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu} &&
         philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}) ==
             Counter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u};
}

bool counts_are_right() {
  return floor_count(0.29 * 100) == 29 && ceil_count(0.07 * 100) == 7 && ceil_count(0.3 * 7) == 3 &&
         round_count(2.5) == 3 && round_count(-2.5) == -2 && round_count(-0.5) == 0;
}

bool schedules_are_right() {
  const ScheduleModel cosine = {kCosine, 0.3, 0.05, 1000};
  const ScheduleModel linear = {kLinear, 0.3, 0, 1000};
  const ScheduleModel gradual = {kMagnitude, 0, 0.8, 65000, 700, 100};
  return cosine.rate(0) == 0.3 && near(cosine.rate(100), 0.2938820645, 1e-10) &&
         near(cosine.rate(500), 0.175, 1e-15) && cosine.rate(1000) == 0.05 &&
         cosine.rate(123456) == 0.05 && near(linear.rate(500), 0.15, 1e-15) &&
         linear.rate(2000) == 0 && near(gradual.cumulative(5000), 0.1500037975, 1e-10) &&
         near(gradual.cumulative(25000), 0.6074085325, 1e-10) &&
         near(gradual.rate(900), 0.0037151105, 1e-10) && gradual.cumulative(700) == 0 &&
         gradual.cumulative(65000) == 0.8;
}

bool densities_match(bool kernel, double density, const std::vector<double> &expected) {
  const std::vector<Dims> net = {{16, 3, 3, 3},  {32, 16, 3, 3},  {32, 32, 3, 3},
                                 {64, 32, 3, 3}, {128, 64, 1, 1}, {10, 128}};
  const std::vector<double> got = erdos_renyi(net, density, kernel);
  for (size_t l = 0; l < net.size(); ++l) {
    if (!near(got[l], expected[l], 5.1e-7)) return false;
  }
  return true;
}

bool densities_are_right() {
  return densities_match(true, 0.1, {0.418295, 0.084705, 0.054901, 0.039999, 0.171174, 0.779283}) &&
         densities_match(true, 0.2, {0.929827, 0.188290, 0.122040, 0.088915, 0.380503, 1}) &&
         densities_match(true, 0.5, {1, 0.579508, 0.375607, 0.273656, 1, 1}) &&
         densities_match(false, 0.2, {1, 0.340557, 0.227038, 0.170278, 0.085139, 0.391640}) &&
         erdos_renyi({{4, 4}}, 1, false) == std::vector<double>{1};
}

bool handing_out_is_right() {
  const auto counts = [](int64_t total, const std::vector<double> &share,
                         const std::vector<int64_t> &caps) {
    return hand_out(total, share, caps).counts;
  };
  using Counts = std::vector<int64_t>;
  // Equal fractions: the lower layer first. Capped: the rest in equal shares.
  return counts(10, {0.25, 0.25, 0.5}, {9, 9, 9}) == Counts{3, 2, 5} &&
         counts(10, {0.9, 0.05, 0.05}, {4, 9, 9}) == Counts{4, 3, 3} &&
         counts(10, {0.9, 0.1, 0}, {2, 3, 9}) == Counts{2, 3, 5} &&
         counts(10, {1, 0, 0}, {1, 2, 3}) == Counts{1, 2, 3} &&
         counts(3, {0.29, 0.71}, {9, 9}) == Counts{1, 2} &&
         counts(0, {1, 0}, {5, 5}) == Counts{0, 0};
}

bool selection_is_right() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<bool> all(5, true);
  const std::vector<double> scores = {1, 1, nan, inf, 1};
  return weakest(scores, all, 2) == Places{1, 4} && weakest(scores, all, 4) == Places{0, 1, 3, 4} &&
         weakest(scores, all, 9).size() == 5 && strongest(scores, all, 2) == Places{0, 3} &&
         strongest(scores, all, 9) == Places{0, 1, 3, 4} &&
         strongest(scores, {false, true, true, false, true}, 1) == Places{1} &&
         kernel_scores({1, -3, 2, 4}, 2, kMean) == std::vector<double>{1, 3} &&
         kernel_scores({1, -3, 2, 4}, 2, kMin) == std::vector<double>{3, 2} &&
         kernel_scores({1, -3, -2, -4}, 2, kMax) == std::vector<double>{1, 2} &&
         std::isnan(kernel_scores({1, nan}, 2, kMax)[0]);
}

}  // namespace

std::string check_training_oracle() {
  if (!philox_is_right()) return "Philox";
  if (!counts_are_right()) return "counts";
  if (!schedules_are_right()) return "schedules";
  if (!densities_are_right()) return "densities";
  if (!handing_out_is_right()) return "handing out";
  if (!selection_is_right()) return "selection";
  return "";
}

}  // namespace training
