#include "training/hand_out.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace spk {
namespace {

// Real amounts. Each round of handing on caps one more layer at least, so it ends.
std::vector<double> amounts_of(int64_t total, std::span<const Share> shares) {
  std::vector<double> amounts;
  amounts.reserve(shares.size());
  for (const Share &share : shares) amounts.push_back(share.weight * static_cast<double>(total));
  for (;;) {
    double over = 0.0;
    int64_t below = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      const auto cap = static_cast<double>(shares[i].cap);
      if (amounts[i] > cap) {
        over += amounts[i] - cap;
        amounts[i] = cap;
      }
      below += amounts[i] < cap ? 1 : 0;
    }
    if (over == 0.0 || below == 0) return amounts;
    const double part = over / static_cast<double>(below);
    for (size_t i = 0; i < shares.size(); ++i) {
      if (amounts[i] < static_cast<double>(shares[i].cap)) amounts[i] += part;
    }
  }
}

// Fractions that are equal but for their last bits are equal: position decides about them.
double rounded(double fraction) {
  return std::nearbyint(fraction * 0x1p30);
}

// One more unit to those that were rounded down most, as far as what is left goes.
void settle_fractions(int64_t left, std::span<Share> shares, const std::vector<double> &fractions) {
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return fractions[a] > fractions[b]; });
  for (const size_t i : order) {
    Share &share = shares[i];
    if (share.unit > left || share.given + share.unit > share.cap) continue;
    share.given += share.unit;
    left -= share.unit;
  }
}

}  // namespace

void hand_out(int64_t total, std::span<Share> shares) {
  const std::vector<double> amounts = amounts_of(total, shares);
  std::vector<double> fractions;
  fractions.reserve(shares.size());
  int64_t left = total;
  for (size_t i = 0; i < shares.size(); ++i) {
    const double units = amounts[i] / static_cast<double>(shares[i].unit);
    const double whole = std::floor(units);
    fractions.push_back(rounded(units - whole));
    shares[i].given = static_cast<int64_t>(whole) * shares[i].unit;
    left -= shares[i].given;
  }
  settle_fractions(left, shares, fractions);
}

}  // namespace spk
