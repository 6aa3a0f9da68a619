// What the working functions of blocks and of scopes have in common: their buffers, options and
// reports. Templates over the handle, because every leaf-wise operation takes either.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "capi/guard.h"
#include "core/call.h"
#include "core/grid.h"
#include "core/hard_threshold.h"
#include "core/soft_threshold.h"

namespace spk::capi {

// The weights of a writing call: read from x, written to y (x if `into` is NULL).
struct Weights {
  Buffers::Leaves x;
  Buffers::Leaves into;
};

// The weights as the caller gave them.
struct GivenWeights {
  const spk_buffer *leaves;
  const spk_buffer *into;
  int32_t count;
  const char *name = "leaves";  // of the parameter, in messages
};

template <typename Handle>
Weights weights(Buffers &buffers, const Handle &handle, const GivenWeights &given) {
  const Access access = given.into ? Access::kLeaf : Access::kWrite;
  Buffers::Leaves x =
      buffers.leaves(given.name, given.leaves, given.count, handle.all_leaves, access);
  if (!given.into) return {std::move(x), {}};
  return {std::move(x),
          buffers.leaves("into", given.into, given.count, handle.all_leaves, Access::kWrite)};
}

// Arrays with one entry per block of each grid, given one entry per unit: a block, or a scope.
inline GridArray spread(const Block &block, int, const ArrayData &array) {
  return per_block(block, array);
}
inline GridArray spread(const Scope &scope, int member, const ArrayData &array) {
  return per_scope(scope, member, array);
}
inline int64_t units(const Block &block) {
  return block.numblk;
}
inline int64_t units(const Scope &scope) {
  return scope.numscope;
}
inline int64_t blocks_in_all(const Block &block) {
  return block.numblk;
}
inline int64_t blocks_in_all(const Scope &scope) {
  return scope.numscope * scope.numblk_per_scope;
}
inline int first_leaf(const Block &, int) {
  return 0;
}
inline int first_leaf(const Scope &scope, int member) {
  return scope.members[static_cast<size_t>(member)].first_leaf;
}

struct Thresholds {
  ArrayData array;
  int64_t count = 0;
  bool one_for_all = false;

  template <typename Handle>
  GridArray on(const Handle &handle, const Grid &grid, int member) const {
    return one_for_all ? spk::one_for_all(grid, array) : spread(handle, member, array);
  }
};

template <typename Handle>
Thresholds thresholds(Buffers &buffers, const Handle &handle, const spk_buffer *given) {
  Thresholds result;
  result.array = buffers.array_or_one("thresholds", given, units(handle), {SPK_F32, SPK_F64},
                                      &result.one_for_all);
  result.count = result.one_for_all ? 1 : units(handle);
  return result;
}

inline spk_report report_of(const Tally &tally) {
  return {sizeof(spk_report), tally.total, tally.requested,
          tally.achieved,     tally.ties,  tally.not_converged};
}

template <typename Handle>
void hard_threshold_by(spk_context *context, const Handle *handle, const char *what,
                       const GivenWeights &given, const spk_buffer *limits_given,
                       const spk_hard_options *options, spk_report *report) {
  required(handle, what);
  check_report(report);
  const auto chosen = read_struct(options, spk_hard_options{}, "options");
  Buffers buffers;
  const Weights w = weights(buffers, *handle, given);
  std::optional<Buffers::Leaves> values;
  if (chosen.values) {
    values = buffers.leaves("values", chosen.values, given.count, handle->all_leaves, Access::kRead,
                            Buffers::kAnyFloat);
  }
  const Thresholds limits = thresholds(buffers, *handle, limits_given);
  buffers.check_overlap();

  Call call(context);
  check_thresholds(call, limits.array, limits.count, true);
  Tally tally;
  tally.total = blocks_in_all(*handle);
  const Visits visits = values ? Visits::kTwice : Visits::kByThreshold;
  const Grids grids = grids_of(*handle, w.x, w.into, visits, call.memory());
  std::optional<Grids> measured;
  if (values) measured = grids_of(*handle, *values, {}, Visits::kTwice, call.memory());
  const Grids &scored = measured ? *measured : grids;
  call.expect_loops(static_cast<int>(grids.size()));
  for (size_t m = 0; m < grids.size(); ++m) {
    const int member = static_cast<int>(m);
    hard_threshold(call, grids[m], scored[m], limits.on(*handle, grids[m], member), &tally);
  }
  write_report(report, report_of(tally));
}

inline SoftOptions soft_options(const spk_soft_options &given, int32_t score_dtype) {
  SoftOptions options;
  if (std::isnan(given.eps)) fail(SPK_INVALID_ARGUMENT, "eps: got NaN, expected a number");
  if (std::isinf(given.eps) && given.eps > 0.0) {
    fail(SPK_INVALID_ARGUMENT, "eps: got inf, expected a finite number");
  }
  if (given.scale != 0 && given.scale != 1) {
    fail(SPK_INVALID_ARGUMENT, "scale: got ", given.scale, ", expected 0 or 1");
  }
  if (std::isnan(given.atol)) fail(SPK_INVALID_ARGUMENT, "atol: got NaN, expected a number");
  if (given.max_iter < 0 || given.max_iter > 64) {
    fail(SPK_INVALID_ARGUMENT, "max_iter: got ", given.max_iter, ", expected 0 to 64");
  }
  const double epsilon = score_dtype == SPK_F64 ? std::numeric_limits<double>::epsilon()
                                                : std::numeric_limits<float>::epsilon();
  options.eps = given.eps < 0.0 ? epsilon : given.eps;
  if (given.atol >= 0.0) options.atol = given.atol;
  if (given.max_iter > 0) options.max_iter = given.max_iter;
  return options;
}

template <typename Handle>
spk_status soft_threshold_by(spk_context *context, const Handle *handle, const char *what,
                             const GivenWeights &given, const spk_buffer *limits_given,
                             const spk_soft_options *chosen, spk_report *report) {
  required(handle, what);
  check_report(report);
  constexpr spk_soft_options kDefaults = SPK_SOFT_OPTIONS_INIT;
  const spk_soft_options wanted = read_struct(chosen, kDefaults, "options");
  SoftOptions options = soft_options(wanted, handle->score_dtype);
  Buffers buffers;
  const Weights w = weights(buffers, *handle, given);
  std::optional<Buffers::Leaves> conditioners;
  if (wanted.conditioners) {
    conditioners = buffers.leaves("conditioners", wanted.conditioners, given.count,
                                  handle->all_leaves, Access::kRead, Buffers::kAnyFloat);
  }
  const Thresholds limits = thresholds(buffers, *handle, limits_given);
  buffers.check_overlap();

  Call call(context);
  check_thresholds(call, limits.array, limits.count, false);
  Tally tally;
  tally.total = blocks_in_all(*handle);
  const Visits visits = conditioners ? Visits::kTwice : Visits::kByThreshold;
  const Grids grids = grids_of(*handle, w.x, w.into, visits, call.memory());
  Grids metric(call.memory());
  if (conditioners) metric = grids_of(*handle, *conditioners, {}, Visits::kTwice, call.memory());
  call.expect_loops(static_cast<int>(grids.size() + metric.size()));
  for (size_t m = 0; m < metric.size(); ++m) {
    check_conditioners(call, metric[m], first_leaf(*handle, static_cast<int>(m)));
  }
  for (size_t m = 0; m < grids.size(); ++m) {
    const GridArray limit = limits.on(*handle, grids[m], static_cast<int>(m));
    if (wanted.scale) {
      options.threshold_scale = std::sqrt(static_cast<double>(grids[m].numel_per_block));
    }
    if (conditioners) {
      conditioned_soft_threshold(call, grids[m], metric[m], limit, options, &tally);
    } else {
      soft_threshold(call, grids[m], limit, options, &tally);
    }
  }
  write_report(report, report_of(tally));
  if (tally.not_converged == 0) return SPK_OK;
  return remember(SPK_NOT_CONVERGED, cat("soft threshold: ", tally.not_converged.load(), " of ",
                                         tally.total, " blocks did not reach atol ", options.atol,
                                         " in ", options.max_iter, " steps")
                                         .c_str());
}

}  // namespace spk::capi
