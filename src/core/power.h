// log2, exp2 and powers that give the same bits on every machine: the C library's pow picks code by
// processor. Double-double inside; relative error below 2^-52 where the norms need it.
#pragma once

#include <cmath>
#include <cstdint>

namespace spk {

// An unevaluated sum, |low| <= ulp(high) / 2.
struct DoubleDouble {
  double high;
  double low;
};

inline DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// Dekker's product; exact unless it over- or underflows.
inline DoubleDouble two_product(double a, double b) {
  constexpr double kSplit = 134217729.0;  // 2^27 + 1
  const double spread_a = kSplit * a;
  const double spread_b = kSplit * b;
  const double a_high = spread_a - (spread_a - a);
  const double b_high = spread_b - (spread_b - b);
  const double a_low = a - a_high;
  const double b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

inline DoubleDouble add(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble sum = two_sum(a.high, b.high);
  return two_sum(sum.high, sum.low + (a.low + b.low));
}

inline DoubleDouble multiply(DoubleDouble a, DoubleDouble b) {
  const DoubleDouble product = two_product(a.high, b.high);
  return two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

inline DoubleDouble divide(DoubleDouble a, DoubleDouble b) {
  const double first = a.high / b.high;
  const DoubleDouble back = multiply({first, 0.0}, b);
  const double rest = ((a.high - back.high) - back.low + a.low) / b.high;
  return two_sum(first, rest);
}

// log2 of a positive, finite (value.high + value.low); relative error about 2^-60, exact at 1.
// log(m) = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1) / (m + 1).
inline DoubleDouble log2_of(DoubleDouble value) {
  int exponent = 0;
  const double fraction = std::frexp(value.high, &exponent);  // [0.5, 1)
  if (fraction < 0.70710678118654752) --exponent;             // m in [sqrt(1/2), sqrt(2))
  const DoubleDouble m = {std::ldexp(value.high, -exponent), std::ldexp(value.low, -exponent)};
  const DoubleDouble s = divide(add(m, {-1.0, 0.0}), add(m, {1.0, 0.0}));
  const double square = s.high * s.high;
  double series = 0.0;  // 1/3 + s^2/5 + s^4/7 + ..., |s| <= 0.172, until below 2^-60
  for (int k = 25; k >= 3; k -= 2) series = series * square + 1.0 / k;
  const DoubleDouble log = add(s, multiply(s, {square * series, 0.0}));
  constexpr DoubleDouble kTwoOverLn2 = {2.8853900817779268, 4.0710547481862066e-17};
  return add({static_cast<double>(exponent), 0.0}, multiply(log, kTwoOverLn2));
}

// 2^y as fraction * 2^exponent, so that neither over- nor underflows. |y| below 2^30.
struct Scaled {
  double fraction;
  int exponent;
};

inline Scaled exp2_of(DoubleDouble y) {
  const double whole = std::nearbyint(y.high);
  const DoubleDouble rest = two_sum(y.high - whole, y.low);
  constexpr DoubleDouble kLn2 = {0.69314718055994531, 2.3190468138462996e-17};
  const DoubleDouble x = multiply(rest, kLn2);  // |x| <= 0.35
  double series = 0.0;                          // (e^x - 1 - x) / x^2
  for (int k = 16; k >= 2; --k) {
    series = series * x.high + 1.0;
    series /= k;
  }
  // series = 1/2 (1 + x/3 (1 + x/4 (...)))
  const double tail = x.high * x.high * series;
  return {1.0 + (x.high + (tail + x.low)), static_cast<int>(whole)};
}

// (x / max)^p for 0 <= x <= max, 0 < max, p > 0; exactly 1 for x = max. The exponents are taken
// apart first, because the ratio itself may underflow where its power does not.
inline double power_of_ratio(double x, double max, double p) {
  if (x == 0.0) return 0.0;
  int x_exponent = 0;
  int max_exponent = 0;
  const double ratio = std::frexp(x, &x_exponent) / std::frexp(max, &max_exponent);
  const DoubleDouble whole = {static_cast<double>(x_exponent - max_exponent), 0.0};
  const DoubleDouble y = multiply(add(whole, log2_of({ratio, 0.0})), {p, 0.0});
  if (y.high < -1100.0) return 0.0;
  const Scaled power = exp2_of(y);
  return std::ldexp(power.fraction, power.exponent);
}

// max * sum^(1/p) for sum >= 1.
inline double scaled_root(double max, DoubleDouble sum, double p) {
  const Scaled root = exp2_of(divide(log2_of(sum), {p, 0.0}));
  int exponent = 0;
  const double fraction = std::frexp(max, &exponent);
  return std::ldexp(fraction * root.fraction, exponent + root.exponent);
}

}  // namespace spk
