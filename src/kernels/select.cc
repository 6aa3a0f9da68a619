// Ranking: the top of many small scopes at once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select.cc"
#include <hwy/foreach_target.h>
// foreach_target first
#include <hwy/highway.h>

#include "kernels/convert-inl.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace spk {
namespace HWY_NAMESPACE {

using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

// Signed integers that order as the scores do: the bits of a double, those of negative numbers
// reversed; -0 as +0, every NaN above +inf.
HWY_INLINE VI RankKey(V score) {
  const DI di;
  const VI bits = hn::BitCast(di, hn::Add(score, hn::Zero(D())));
  const VI flip = hn::And(hn::BroadcastSignBit(bits), hn::Set(di, INT64_MAX));
  const VI key = hn::Xor(bits, flip);
  return hn::IfThenElse(hn::RebindMask(di, hn::IsNaN(score)), hn::Set(di, INT64_MAX), key);
}

// One scope a lane. Every pair of positions is compared once: the later one precedes the earlier
// only if it is larger. A position is among the top k if fewer than k precede it.
HWY_INLINE void SelectLanes(const RankFewArgs &args, int64_t scope, int64_t lanes) {
  const DI di;
  const VI one = hn::Set(di, 1);
  const int64_t n = args.n;
  VI key[kFewBlocks];
  VI rank[kFewBlocks];
  for (int64_t i = 0; i < n; ++i) {
    HWY_ALIGN double column[kN] = {};
    for (int64_t l = 0; l < lanes; ++l) column[l] = args.scores[(scope + l) * n + i];
    key[i] = RankKey(hn::Load(D(), column));
    // The earlier ones precede it, and none of the later, until a comparison says otherwise.
    rank[i] = hn::Set(di, i);
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j) {
      const VI later_first = hn::VecFromMask(di, hn::Gt(key[j], key[i]));  // -1 or 0
      rank[i] = hn::Sub(rank[i], later_first);
      rank[j] = hn::Add(rank[j], later_first);
    }
  }
  HWY_ALIGN int64_t wanted[kN] = {};
  for (int64_t l = 0; l < lanes; ++l) wanted[l] = args.counts[scope + l];
  const VI k = hn::Load(di, wanted);
  VI last_in = hn::Zero(di);
  VI first_out = hn::Zero(di);
  for (int64_t i = 0; i < n; ++i) {
    last_in = hn::IfThenElse(hn::Eq(rank[i], hn::Sub(k, one)), key[i], last_in);
    first_out = hn::IfThenElse(hn::Eq(rank[i], k), key[i], first_out);
  }
  // The cut goes through ties if there are scores on either side of it and they are equal.
  const auto has_cut = hn::And(hn::Gt(k, hn::Zero(di)), hn::Lt(k, hn::Set(di, n)));
  const auto tied = hn::And(has_cut, hn::Eq(last_in, first_out));
  VI ties = hn::Zero(di);
  VI kept = hn::Zero(di);
  for (int64_t i = 0; i < n; ++i) {
    const auto equal = hn::And(tied, hn::Eq(key[i], last_in));
    const auto within = hn::Lt(rank[i], k);
    const auto keep = args.keep_ties ? hn::Or(within, equal) : within;
    ties = hn::Sub(ties, hn::VecFromMask(di, equal));
    const VI kept_here = hn::VecFromMask(di, keep);
    kept = hn::Sub(kept, kept_here);
    HWY_ALIGN int64_t flags[kN];
    hn::Store(kept_here, di, flags);
    for (int64_t l = 0; l < lanes; ++l) {
      args.keep[(scope + l) * n + i] = static_cast<uint8_t>(flags[l] & 1);
    }
  }
  HWY_ALIGN int64_t totals[kN];
  hn::Store(kept, di, totals);
  for (int64_t l = 0; l < lanes; ++l) *args.kept += totals[l];
  hn::Store(ties, di, totals);
  for (int64_t l = 0; l < lanes; ++l) *args.ties += totals[l];
}

void RankFew(const RankFewArgs &args) {
  for (int64_t scope = 0; scope < args.scopes; scope += kN) {
    SelectLanes(args, scope, HWY_MIN(args.scopes - scope, kN));
  }
}

void FillSelect(Kernels *table) {
  table->rank_few = RankFew;
}

}  // namespace HWY_NAMESPACE
}  // namespace spk
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spk {
HWY_EXPORT(FillSelect);
void fill_select(Kernels *table) {
  HWY_DYNAMIC_DISPATCH(FillSelect)(table);
}
}  // namespace spk
#endif
