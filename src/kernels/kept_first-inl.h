// The order in which a register of blocks is written, of which some stay and some go.
#if defined(SPK_KERNELS_KEPT_FIRST_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPK_KERNELS_KEPT_FIRST_INL_H_
#undef SPK_KERNELS_KEPT_FIRST_INL_H_
#else
#define SPK_KERNELS_KEPT_FIRST_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

// Bit i for lane i.
template <class DT>
HWY_INLINE uint64_t BitsOf(DT d, hn::Mask<DT> lanes) {
  static_assert(hn::MaxLanes(d) <= 8);
  uint8_t bits[8];  // the least that Highway asks for
  hn::StoreMaskBits(d, lanes, bits);
  uint8_t byte = bits[0];
#if HWY_COMPILER_GCC_ACTUAL && HWY_ARCH_X86
  // GCC 12 makes wrong code otherwise: it stores a byte of a mask, and loads eight.
  asm("" : "+q"(byte));
#endif
  return byte;
}

inline constexpr uint64_t kAllStay = (uint64_t{1} << kN) - 1;

// Those that stay, then those that go. Processors guess wrong once, where these begin; in the order
// of memory, half of the time.
class KeptFirst {
 public:
  // Bit i says whether block i stays.
  explicit HWY_INLINE KeptFirst(uint64_t stay)
      : block_(kTable.of[stay]), kept_(static_cast<int64_t>(hwy::PopCount(stay))) {}

  HWY_INLINE int64_t operator[](int64_t i) const { return block_[i]; }
  HWY_INLINE int64_t kept() const { return kept_; }

 private:
  struct Table {
    uint8_t of[size_t{1} << kN][kN];
  };
  static constexpr Table MakeTable() {
    Table table{};
    for (size_t stay = 0; stay < (size_t{1} << kN); ++stay) {
      int64_t at = 0;
      for (const size_t kind : {size_t{1}, size_t{0}}) {
        for (int64_t i = 0; i < kN; ++i) {
          if ((stay >> i) % 2 == kind) table.of[stay][at++] = static_cast<uint8_t>(i);
        }
      }
    }
    return table;
  }
  static const Table kTable;

  const uint8_t *block_;
  int64_t kept_;
};
inline constexpr KeptFirst::Table KeptFirst::kTable = KeptFirst::MakeTable();

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#endif  // per target
