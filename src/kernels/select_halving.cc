// The top elements of scopes of dozens of elements, straight in memory: as many scopes as a cache
// line has elements are lanes, and are cut together by halving intervals of keys.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select_halving.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/halve_keys-inl.h"
#include "kernels/kernels.h"
#include "kernels/prefetch.h"
#include "kernels/select_few-inl.h"
#include "kernels/tables.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {
namespace {

// A line of scopes, one a lane: rows of keys of one position each.
template <typename T>
struct ScopeLine : Cuts<T> {
  HWY_ALIGN T key[kHalvedBlocks][kLine<T>];
};

// How many each of `scopes` scopes from `first` on keeps; lanes without a scope keep none.
template <typename T>
void FillWantedOfLine(const SelectFewArgs &args, int64_t first, int64_t scopes,
                      ScopeLine<T> *line) {
  for (int64_t s = 0; s < scopes; ++s) {
    line->wanted[s] = static_cast<T>(args.counts[(first + s) * args.count_step]);
  }
  std::fill(line->wanted + scopes, line->wanted + kLine<T>, T{0});
}

// Cuts a line of scopes whose keys are there, and asks for what comes next. Returns whether ties at
// some cut were settled.
template <typename T, class Ask>
HWY_INLINE bool CutLine(const SelectFewArgs &args, ScopeLine<T> *line, const Ask &ask) {
  constexpr int64_t kL = kLanesOf<T>;
  constexpr int64_t kRow = kLine<T>;

  if (!HalveKeys<T, kRow / kL>(line->key[0], kRow, args.n, line->wanted, line->cut, ask)) {
    return false;
  }
  const RowsOf<T, kHalvedBlocks> rows(line->key[0], kRow);
  for (int64_t c = 0; c < kRow; c += kL) SettleTies(args, rows.rows(), c, line);
  return true;
}

// --- side by side ---------------------------------------------------------------------------

// Elements are copied: of rows a power of two apart the first cache holds no more than it has ways.
template <typename T>
struct CopiedLine : ScopeLine<T> {
  HWY_ALIGN T element[kHalvedBlocks][kLine<T>];
};

template <typename T>
HWY_INLINE const T *RowAt(const SelectFewArgs &args, int64_t p, int64_t offset) {
  return reinterpret_cast<const T *>(args.x + args.x_at[p] + offset);
}

template <typename T>
void ReadAcross(const SelectFewArgs &args, int64_t offset, CopiedLine<T> *line) {
  constexpr Tag<T> d;
  for (int64_t p = 0; p < args.n; ++p) {
    const T *x = RowAt<T>(args, p, offset);
    for (int64_t c = 0; c < kLine<T>; c += kLanesOf<T>) {
      const Vec<T> element = hn::LoadU(d, x + c);
      hn::Store(element, d, line->element[p] + c);
      hn::Store(ClampedKey<T>(element, args.nan_key), d, line->key[p] + c);
    }
  }
}

template <typename T>
void WriteAcross(const SelectFewArgs &args, int64_t offset, bool settled,
                 const CopiedLine<T> &line) {
  constexpr Tag<T> d;
  for (int64_t p = 0; p < args.n; ++p) {
    auto *y = reinterpret_cast<T *>(args.y + args.y_at[p] + offset);
    const Vec<T> position = hn::Set(d, static_cast<T>(p));
    for (int64_t c = 0; c < kLine<T>; c += kLanesOf<T>) {
      const Vec<T> element = hn::Load(d, line.element[p] + c);
      const Vec<T> cut = hn::Load(d, line.cut + c);
      hn::StoreU(settled ? KeepSettled<T>(args, element, position, cut, hn::Load(d, line.until + c))
                         : Keep<T>(element, cut),
                 d, y + c);
    }
  }
}

// Asks for the next line of each row.
template <typename T>
struct AskForLineAcross {
  const SelectFewArgs &args;
  int64_t offset;

  HWY_INLINE void operator()(int part) const {
    for (int64_t p = part; p < args.n; p += kAskedParts) {
      prefetch_far(RowAt<T>(args, p, offset) + kLine<T>, 0);
    }
  }
};

// A line `offset` bytes from the beginning of each row on.
template <typename T>
void HalveLineAcross(const SelectFewArgs &args, int64_t offset, CopiedLine<T> *line) {
  ReadAcross(args, offset, line);
  const bool settled = CutLine(args, line, AskForLineAcross<T>{args, offset});
  WriteAcross(args, offset, settled, *line);
}

// The last scopes, fewer than a line: by way of rows of their own.
template <typename T>
void HalveRestAcross(const SelectFewArgs &args, int64_t scope, CopiedLine<T> *line) {
  HWY_ALIGN T rows[kHalvedBlocks][kLine<T>] = {};
  int64_t at[kHalvedBlocks];
  const auto size = static_cast<int64_t>(sizeof(T));
  const auto bytes = static_cast<size_t>((args.scopes - scope) * size);
  for (int64_t p = 0; p < args.n; ++p) {
    at[p] = p * kLine<T> * size;
    std::memcpy(rows[p], args.x + args.x_at[p] + scope * size, bytes);
  }
  SelectFewArgs rest = args;
  rest.x = reinterpret_cast<const std::byte *>(rows);
  rest.y = reinterpret_cast<std::byte *>(rows);
  rest.x_at = at;
  rest.y_at = at;
  FillWantedOfLine(args, scope, args.scopes - scope, line);
  HalveLineAcross(rest, 0, line);
  for (int64_t p = 0; p < args.n; ++p) {
    std::memcpy(args.y + args.y_at[p] + scope * size, rows[p], bytes);
  }
}

template <typename T>
void HalveAcross(const SelectFewArgs &args) {
  CopiedLine<T> line;
  int64_t scope = 0;
  for (; args.scopes - scope >= kLine<T>; scope += kLine<T>) {
    FillWantedOfLine(args, scope, kLine<T>, &line);
    HalveLineAcross(args, scope * static_cast<int64_t>(sizeof(T)), &line);
  }
  if (scope < args.scopes) HalveRestAcross(args, scope, &line);
}

// --- one after the other ----------------------------------------------------------------------

// The last block of a scope overlaps the one before.
template <typename T>
void ReadAlong(const SelectFewArgs &args, const T *x, ScopeLine<T> *line) {
  constexpr int64_t kA = kAtom<T>;
  for (int64_t c = 0; c < kLine<T>; c += kLanesOf<T>) {
    for (int64_t at = 0; at < args.n; at += kA) {
      const int64_t first = HWY_MIN(at, args.n - kA);
      Vec<T> position[kA];
      LoadBlocksTransposed(x + c * args.n, args.n, first, position);
      for (int64_t i = 0; i < kA; ++i) {
        hn::Store(ClampedKey<T>(position[i], args.nan_key), Tag<T>(), line->key[first + i] + c);
      }
    }
  }
}

// A scope, of at least a register of elements: the last register overlaps the one before, which it
// finds as it has been or written, and both ways keeps the same of it.
template <typename T, bool kSettled>
void WriteAlong(const SelectFewArgs &args, const T *x, T *y, T cut, T until) {
  constexpr Tag<T> d;
  const Vec<T> places = hn::Iota(d, T{0});
  const Vec<T> cuts = hn::Set(d, cut);
  const Vec<T> untils = hn::Set(d, until);
  const auto write = [&](int64_t p) HWY_ATTR {
    const Vec<T> element = hn::LoadU(d, x + p);
    if constexpr (kSettled) {
      const Vec<T> position = hn::Add(places, hn::Set(d, static_cast<T>(p)));
      hn::StoreU(KeepSettled<T>(args, element, position, cuts, untils), d, y + p);
    } else {
      hn::StoreU(Keep<T>(element, cuts), d, y + p);
    }
  };
  const int64_t last = args.n - kLanesOf<T>;
  for (int64_t p = 0; p < last; p += kLanesOf<T>) write(p);
  write(last);
}

// Asks for the next line of scopes.
template <typename T>
struct AskForLineAlong {
  const T *next;
  int64_t n;

  HWY_INLINE void operator()(int part) const {
    for (int64_t p = part; p < n; p += kAskedParts) prefetch_far(next + p * kLine<T>, 0);
  }
};

// Up to a line of scopes from `scope` on, which may be read from a copy.
template <typename T>
void HalveLineAlong(const SelectFewArgs &args, const T *copy, int64_t scope, int64_t scopes,
                    ScopeLine<T> *line) {
  FillWantedOfLine(args, scope, scopes, line);
  ReadAlong(args, copy, line);
  const bool settled = CutLine(args, line, AskForLineAlong<T>{copy + kLine<T> * args.n, args.n});
  const auto write = settled ? WriteAlong<T, true> : WriteAlong<T, false>;
  const T *x = reinterpret_cast<const T *>(args.x) + scope * args.n;
  T *y = reinterpret_cast<T *>(args.y) + scope * args.n;
  for (int64_t s = 0; s < scopes; ++s) {
    const int64_t at = s * args.n;
    write(args, x + at, y + at, line->cut[s], settled ? line->until[s] : T{0});
  }
}

template <typename T>
void HalveRestAlong(const SelectFewArgs &args, int64_t scope, ScopeLine<T> *line) {
  T copy[kHalvedBlocks * kLine<T>] = {};
  const int64_t scopes = args.scopes - scope;
  std::copy_n(reinterpret_cast<const T *>(args.x) + scope * args.n, scopes * args.n, copy);
  HalveLineAlong(args, copy, scope, scopes, line);
}

template <typename T>
void HalveAlong(const SelectFewArgs &args) {
  ScopeLine<T> line;
  const auto *x = reinterpret_cast<const T *>(args.x);
  int64_t scope = 0;
  for (; args.scopes - scope >= kLine<T>; scope += kLine<T>) {
    HalveLineAlong(args, x + scope * args.n, scope, kLine<T>, &line);
  }
  if (scope < args.scopes) HalveRestAlong(args, scope, &line);
}

template <typename T>
void FillHalving(DtypeIndex dtype, Kernels *table) {
  table->halve_across[dtype] = HalveAcross<T>;
  table->halve_along[dtype] = HalveAlong<T>;
}

}  // namespace

void FillSelectHalving(Kernels *table) {
  FillHalving<int32_t>(kF32, table);
  FillHalving<int64_t>(kF64, table);
  FillHalving<int16_t>(kF16, table);
  FillHalving<int16_t>(kBf16, table);
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillSelectHalving);
void fill_select_halving(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillSelectHalving)(table);
}
}  // namespace spk
#endif
