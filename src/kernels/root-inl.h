// Square roots that keep dividers free.
#if defined(SPK_KERNELS_ROOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_ROOT_INL_H_
#undef SPK_KERNELS_ROOT_INL_H_
#else
#define SPK_KERNELS_ROOT_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Roots of sums of squares of one or two floats, which lie so close to each other in memory that
// dividers, which take 20 cycles for eight roots, would be waited for. Where processors guess
// 1 / sqrt(sum) to 14 bits, Goldschmidt's iteration doubles those twice, and a last step of Newton's
// is within 2^-100 of the root before it is rounded. A root of a double is that close to the middle
// of two doubles only if the middle's square, a number of 108 bits, differs from the sum by less than
// 2^8 of its last bit. There are some hundred such sums; of each, every guess of 24 bits leads to the
// double that IEEE 754 asks for. Longer guesses may not, and are cut. Sums are 0, not finite, or
// between 2^-300 and 2^300.
// Source: Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990
HWY_INLINE V RootOfFew(V sum) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  const D d;
  const V half = hn::Set(d, 0.5);
  const V as_float = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), ~uint64_t{0} << 29));
  const V guess = hn::And(V{_mm512_rsqrt14_pd(sum.raw)}, as_float);
  V root = hn::Mul(sum, guess);
  V half_inverse = hn::Mul(guess, half);
  for (int i = 0; i < 2; ++i) {
    const V error = hn::NegMulAdd(root, half_inverse, half);
    root = hn::MulAdd(root, error, root);
    half_inverse = hn::MulAdd(half_inverse, error, half_inverse);
  }
  const V rest = hn::NegMulAdd(root, root, sum);
  root = hn::MulAdd(rest, half_inverse, root);
  return hn::IfThenElse(hn::IsNaN(root), sum, root);  // 0 and infinity are their own roots
#else
  return hn::Sqrt(sum);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
