// Arguments of the two coupling functions.
#pragma once

#include <vector>

#include "capi/guard.h"

namespace spk::capi {

template <typename Member>
std::vector<const Member *> member_list(Member *const *members, int32_t count) {
  if (count < 1) fail(SPK_INVALID_ARGUMENT, "count: got ", count, " members, expected >= 1");
  required(members, "members");
  for (int32_t i = 0; i < count; ++i) {
    if (!members[i]) fail(SPK_INVALID_ARGUMENT, "members[", i, "]: got NULL");
  }
  return {members, members + count};
}

// One permutation per member: rows of `orders`, as long as the first member's grid has axes (the
// core refuses members that have another number).
template <typename Member>
std::vector<Extents> member_orders(const std::vector<const Member *> &members,
                                   const int32_t *orders) {
  std::vector<Extents> result;
  const int ndim = members[0]->grid_shape.size();
  for (size_t i = 0; i < members.size(); ++i) {
    Extents order;
    for (int d = 0; d < ndim; ++d) {
      order.push_back(orders ? orders[i * static_cast<size_t>(ndim) + static_cast<size_t>(d)] : d);
    }
    result.push_back(order);
  }
  return result;
}

}  // namespace spk::capi
