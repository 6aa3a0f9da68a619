// The top elements of scopes that lie side by side in rows of less than a register, or little more:
// of the weights of 3 x 3 convolutions, say, along channels. Lanes beyond a row are masked.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_short_rows.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/kernels.h"
#include "kernels/prefetch.h"
#include "kernels/select_few-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace {

// Can registers be read and written in part, without touching the rest of memory?
template <typename T>
inline constexpr bool kHasMasks = HWY_TARGET <= HWY_AVX3 ||
                                  (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4);

// The first lanes of a register of scopes, one a lane; row i is x_at[i] bytes from their beginning.
// Other lanes have a scope of keys that all differ, and are not written.
template <typename T, size_t N>
struct PartOfRegister {
  const std::byte *x;
  std::byte *y;
  const int64_t *x_at;
  const int64_t *y_at;
  hn::Mask<Tag<T>> lanes;

  HWY_INLINE Vec<T> Load(size_t i) const {
    const auto *row = reinterpret_cast<const T *>(x + x_at[i]);
    const Vec<T> other = hn::Set(Tag<T>(), static_cast<T>(i + 1));
    return hn::IfThenElse(lanes, hn::MaskedLoad(lanes, Tag<T>(), row), other);
  }
  // With AVX2 some processors take long to store a part.
  HWY_INLINE void Store(Vec<T> v, size_t i) const {
    auto *row = reinterpret_cast<T *>(y + y_at[i]);
    if (HWY_TARGET > HWY_AVX3 && hn::AllTrue(Tag<T>(), lanes)) return hn::StoreU(v, Tag<T>(), row);
    hn::BlendedStore(v, lanes, Tag<T>(), row);
  }
};

// Groups of scopes, a part of a register at a time.
template <typename T, size_t N>
class ShortRows {
 public:
  explicit ShortRows(const SelectFewArgs &args) : args_(args), parts_((args.scopes + kL - 1) / kL) {
    std::copy_n(args.x_at, N, x_at_);
    std::copy_n(args.y_at, N, y_at_);
  }

  // What is next is read before a part is written: parts of registers that have just been written
  // are not read until they have reached the cache, nor are their neighbours.
  HWY_INLINE void Select() {
    Part part = At(0, 0);
    Vec<T> element[N];
    Read(part, element);
    for (int64_t group = 0; group < args_.groups; ++group) {
      for (int64_t p = 0; p < parts_; ++p) {
        const bool is_last = p + 1 == parts_;
        const bool has_more = !is_last || group + 1 < args_.groups;
        const Part next = !has_more ? part : is_last ? At(group + 1, 0) : At(group, p + 1);
        Vec<T> read[N];
        Read(next, read);
        Write(part, element);
        for (size_t i = 0; i < N; ++i) element[i] = read[i];
        part = next;
      }
    }
  }

 private:
  using Part = PartOfRegister<T, N>;
  static constexpr int64_t kL = kLanesOf<T>;

  HWY_INLINE Part At(int64_t group, int64_t p) const {
    const auto count = static_cast<size_t>(HWY_MIN(args_.scopes - p * kL, kL));
    const int64_t offset = p * kL * static_cast<int64_t>(sizeof(T));
    return {args_.x + group * args_.x_group + offset, args_.y + group * args_.y_group + offset,
            x_at_, y_at_, hn::FirstN(Tag<T>(), count)};
  }
  HWY_INLINE void Read(const Part &part, Vec<T> *element) const {
    for (size_t i = 0; i < N; ++i) {
      // Several rows in turn: further ahead was not measured.
      prefetch_far(part.x + x_at_[i], kFar);
      element[i] = part.Load(i);
    }
  }
  HWY_INLINE void Write(const Part &part, const Vec<T> *element) {
    Vec<T> cut;
    if (!CutRegisters<T, N>(args_, element, &sorted_, &cut)) {
      return SettleScopes<T, N>(args_, part, cut);
    }
    for (size_t i = 0; i < N; ++i) part.Store(Keep<T>(element[i], cut), i);
  }

  const SelectFewArgs args_;
  int64_t parts_;  // of a group
  int64_t x_at_[N];
  int64_t y_at_[N];
  SortedScopes<T, N> sorted_;
};

template <typename T, size_t N>
void SelectGroups(const SelectFewArgs &args) {
  ShortRows<T, N>(args).Select();
}

template <typename T, size_t... I>
constexpr std::array<SelectFewKernel, kMostInShortRows + 1> GroupsTable(std::index_sequence<I...>) {
  return {nullptr, nullptr, SelectGroups<T, I + 2>...};
}

template <typename T>
void SelectShortRows(const SelectFewArgs &args) {
  static constexpr auto kGroups = GroupsTable<T>(std::make_index_sequence<kMostInShortRows - 1>());
  kGroups[args.n](args);
}

template <typename T>
constexpr SelectFewKernel KernelOrNull() {
  if constexpr (kHasMasks<T>) {
    return SelectShortRows<T>;
  } else {
    return nullptr;
  }
}

}  // namespace

void FillSelectShortRows(Kernels *table) {
  table->select_short_rows[kF32] = KernelOrNull<int32_t>();
  table->select_short_rows[kF64] = KernelOrNull<int64_t>();
  table->select_short_rows[kF16] = KernelOrNull<int16_t>();
  table->select_short_rows[kBf16] = KernelOrNull<int16_t>();
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillSelectShortRows);
void fill_select_short_rows(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillSelectShortRows)(table);
}
}  // namespace spk
#endif
