// Exact selection in scopes whose keys come as streams: parallel inside each.
#pragma once

#include "core/key_array.h"
#include "core/scope_scores.h"

namespace spk {

// Parallel loops over a stream, in the common case: a sample, and one that counts.
inline constexpr int kSelectLoops = 2;

Selection select_top(Call &call, const KeyStream &stream, int64_t k, int32_t ties);
Selection select_top(Call &call, const KeyArray &keys, int64_t k, int32_t ties);
// The k-th largest key and, if `next` is not NULL, the (k+1)-th.
uint64_t kth_largest(Call &call, const KeyStream &stream, int64_t k, uint64_t *next);

}  // namespace spk
