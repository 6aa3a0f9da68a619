#include "kernels/kernels.h"

#include <hwy/targets.h>

#include <atomic>

#include "kernels/float_registers.h"
#include "kernels/prefetch.h"
#include "kernels/tables.h"
#include "sparsekit/sparsekit.h"

namespace spk {
namespace {

const Kernels *make_table() {
  decide_streams();
  decide_float_registers();
  auto *table = new Kernels{};
  fill_reduce_across(table);
  fill_reduce_along(table);
  fill_mask(table);
  fill_scale(table);
  fill_scores(table);
  fill_convert(table);
  fill_conditioned(table);
  fill_conditioned_elements(table);
  fill_conditioned_panel(table);
  fill_masked(table);
  fill_panel(table);
  fill_select(table);
  fill_select_across(table);
  fill_select_along(table);
  fill_select_halving(table);
  fill_block_keys(table);
  fill_blocks_in_lanes(table);
  fill_select_many(table);
  fill_select_short_rows(table);
  fill_shrink(table);
  fill_threshold_across(table);
  fill_threshold_along(table);
  fill_threshold_elements(table);
  fill_threshold_rows(table);
  fill_threshold_tiles(table);
  fill_transpose(table);
  return table;
}

}  // namespace

std::string target_names() {
  std::string names;
  // Highway numbers better targets with lower bits.
  for (int bit = 63; bit >= 0; --bit) {
    const int64_t target = HWY_TARGETS & static_cast<int64_t>(uint64_t{1} << bit);
    if (target == 0) continue;
    if (!names.empty()) names += ' ';
    names += hwy::TargetName(target);
  }
  return names;
}

int64_t supported_targets() {
  const int64_t supported = hwy::SupportedTargets();
  hwy::GetChosenTarget().Update(supported);
  return supported;
}

const char *target_in_use() {
  const int64_t usable = supported_targets() & HWY_TARGETS;
  return hwy::TargetName(usable & -usable);
}

const Kernels &kernels() {
  // One table for each target ever chosen: a process has one, but tests restrict Highway to each
  // target in turn. Never freed, because calls may run while the process exits.
  static std::atomic<const Kernels *> tables[HWY_MAX_DYNAMIC_TARGETS + 2];
  // Asking the processor takes microseconds in a virtual machine; Highway remembers its choice.
  hwy::ChosenTarget &chosen = hwy::GetChosenTarget();
  if (!chosen.IsInitialized()) supported_targets();
  const size_t best = chosen.GetIndex();
  const Kernels *table = tables[best].load(std::memory_order_acquire);
  if (table) return *table;
  const Kernels *made = make_table();
  if (tables[best].compare_exchange_strong(table, made, std::memory_order_acq_rel)) return *made;
  delete made;
  return *table;
}

DtypeIndex index_of_dtype(int32_t dtype) {
  switch (dtype) {
    case SPK_F64:
      return kF64;
    case SPK_F16:
      return kF16;
    case SPK_BF16:
      return kBf16;
    default:
      return kF32;
  }
}

}  // namespace spk
