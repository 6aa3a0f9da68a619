# SPDX-License-Identifier: Apache-2.0
"""Numbers as the library has to store them: exact fractions, rounded once."""
import ctypes
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy

# Bits of the significand, smallest exponent of a normal number, largest exponent.
FLOATS = {"f64": (53, -1022, 1023), "f32": (24, -126, 127), "f16": (11, -14, 15),
          "bf16": (8, -126, 127)}
STORAGE = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "u8": "u1", "i64": "<i8"}
EPSILON = {"f32": Fraction(1, 2**23), "f64": Fraction(1, 2**52)}


def nearest(dtype, x):
    """The double that holds x, a Fraction or a float, rounded to nearest even in dtype."""
    if isinstance(x, float):
        if not math.isfinite(x) or x == 0 or dtype == "f64":
            return x
        if dtype == "f32":
            return ctypes.c_float(x).value
        x = Fraction(x)
    if x == 0:
        return 0.0
    precision, lowest, highest = FLOATS[dtype]
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, lowest) - precision + 1)
    rounded = round(x / quantum) * quantum  # half to even
    if abs(rounded) >= Fraction(2) ** (highest + 1):
        return math.copysign(math.inf, x)
    if rounded == 0:
        return math.copysign(0.0, x)
    return float(rounded)


def encode(dtype, values):
    """The stored words of doubles that dtype holds exactly."""
    values = numpy.asarray(values)
    if dtype == "bf16":
        return (values.astype("<f4").view("<u4") >> 16).astype("<u2")
    return values.astype(STORAGE[dtype])


def square_root(x):
    """Of a Fraction, to 200 bits."""
    if x == 0:
        return Fraction(0)
    shift = 200 + max(0, x.denominator.bit_length() - x.numerator.bit_length())
    return Fraction(math.isqrt((x.numerator << (2 * shift)) // x.denominator), 1 << shift)


def euclidean(elements):
    """The norm as a Fraction; NaN and infinity as floats."""
    if any(math.isnan(x) for x in elements):
        return math.nan
    if any(math.isinf(x) for x in elements):
        return math.inf
    return square_root(sum((Fraction(x) ** 2 for x in elements), Fraction(0)))


def power_norm(elements, p):
    """Any other p, in 60 decimal digits."""
    with localcontext(Context(prec=60, Emax=10**9, Emin=-10**9)):
        exponent = Decimal(p)
        total = sum((abs(Decimal(x)) ** exponent for x in elements if x != 0), Decimal(0))
        return Fraction(total ** (1 / exponent)) if total else Fraction(0)


def norm(elements, p, dtype):
    """The norm of order p, rounded to dtype."""
    if p == 0:
        return float(sum(1 for x in elements if x != 0))
    if any(math.isnan(x) for x in elements):
        return math.nan
    if p == math.inf or len(elements) == 1:
        return nearest(dtype, max(abs(x) for x in elements))
    if p == -math.inf:
        return nearest(dtype, min(abs(x) for x in elements))
    if any(math.isinf(x) for x in elements):
        return math.inf
    if p == 1:
        return nearest(dtype, sum((abs(Fraction(x)) for x in elements), Fraction(0)))
    return nearest(dtype, euclidean(elements) if p == 2 else power_norm(elements, p))


def norm_ulps(p, dtype):
    """How far from the exact norm the library may be."""
    if p in (0, math.inf, -math.inf):
        return 0
    if p in (1, 2):
        return 2 if dtype == "f64" else 1
    return math.ceil(8 + 16 / p) + 1 if dtype == "f64" else 1


# Where a rate meets a count.
def floor_count(x):
    return math.floor(x * (1 + 2.0**-50))


def ceil_count(x):
    return math.ceil(x * (1 - 2.0**-50))


def round_count(x):
    return math.floor(x + 0.5)
