// Number formats and exact arithmetic of the oracle.
//
// Everything here is written from the IEEE formats alone, without hardware conversions, so that
// a wrong conversion in the library cannot hide behind the same wrong conversion in its test.
#ifndef SPARSEKIT_TESTS_PROPERTY_NUMBERS_HPP_
#define SPARSEKIT_TESTS_PROPERTY_NUMBERS_HPP_

#include <sparsekit/sparsekit.h>

#include <cfloat>
#include <cstdint>
#include <string>

namespace prop {

// IEEE binary128: 113 bits and 15 exponent bits hold the product of any two doubles exactly, and a
// sum of squares of doubles cannot overflow or underflow in it.
#if defined(__SIZEOF_FLOAT128__)
__extension__ typedef __float128 quad;
#else
typedef long double quad;
static_assert(LDBL_MANT_DIG == 113, "the oracle needs a 128-bit float type");
#endif

constexpr double kUnit = 0x1p-53;  // half an ulp of a double near 1

// A binary format: `precision` counts the hidden bit, exponents are those of 1.xxx * 2^e.
struct Format {
  int precision;
  int min_exponent;
  int max_exponent;
};

bool is_float_dtype(int dtype);
int element_size(int dtype);
const char *dtype_name(int dtype);
Format format_of(int dtype);

// The value of a stored element, exactly. All four formats are subsets of double.
double decode(int dtype, uint64_t bits);

// The stored element nearest to `value`, ties to even; overflow gives infinity.
uint64_t encode(int dtype, quad value);

// The same, seen as a double.
double round_to(int dtype, quad value);

// Distance between neighbours of the format at |value|; at least its smallest denormal. Past the
// largest finite value the format is taken to go on.
quad ulp_at(int dtype, quad value);

// `value` as a quad, with infinity standing for the first number that the format cannot hold.
quad finite_or_next(int dtype, double value);

double largest_finite(int dtype);
double smallest_normal(int dtype);

quad power_of_two(int exponent);
quad square_root(quad value);
quad magnitude(quad value);
bool is_nan(quad value);
bool is_infinite(quad value);

// "0x1.8p+1 (3)"
std::string show(double value);
std::string show_bits(uint64_t bits);

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_NUMBERS_HPP_
