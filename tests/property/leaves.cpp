#include <algorithm>
#include <map>
#include <utility>

#include "data.hpp"
#include "subject.hpp"

namespace prop {

namespace {

// A buffer that is yet to be put into memory.
struct Plan {
  int dtype;
  int api_layout;
  Layout layout;
  bool woven;
};

Plan plan_leaf(Case &c, const LeafModel &leaf, int dtype, bool weave, int64_t lane, int64_t lanes) {
  const int choice =
      c.random.pick({SPK_LAYOUT_VIEW, SPK_LAYOUT_VIEW, SPK_LAYOUT_CONTIGUOUS, SPK_LAYOUT_OWN});
  if (choice == SPK_LAYOUT_VIEW) return {dtype, choice, leaf.view, leaf.lane >= 0};
  if (choice == SPK_LAYOUT_CONTIGUOUS) {
    return {dtype, choice, contiguous_layout(leaf.view.shape), false};
  }
  Plan plan = {dtype, choice, random_layout(c.random, leaf.view.shape, c.layout_class), weave};
  if (weave) {
    for (int64_t &stride : plan.layout.stride) stride *= lanes;
    plan.layout.offset = plan.layout.offset * lanes + lane;
  }
  return plan;
}

}  // namespace

void LeafSet::add(Buffer &buffer) {
  buffers_.push_back(&buffer);
  api_.push_back(buffer.api());
}

LeafSet make_leaves(Case &c, const std::vector<LeafModel> &leaves, const std::string &label,
                    const std::vector<int> &dtypes) {
  const bool weave = leaves.size() > 1 && c.random.one_in(4);
  const bool side_by_side = leaves.size() > 1 && c.random.one_in(5);
  std::vector<Plan> plans;
  for (size_t l = 0; l < leaves.size(); ++l) {
    const int dtype = dtypes.empty() ? leaves[l].dtype : dtypes[l];
    plans.push_back(plan_leaf(c, leaves[l], dtype, weave, static_cast<int64_t>(l),
                              static_cast<int64_t>(leaves.size())));
  }
  // Woven leaves share an allocation and its first element if their elements have one size.
  using Key = std::pair<int, int>;  // API layout and element size
  std::map<Key, int64_t> woven_reach;
  for (const Plan &plan : plans) {
    if (!plan.woven) continue;
    int64_t &reach = woven_reach[{plan.api_layout, element_size(plan.dtype)}];
    reach = std::max(reach, plan.layout.reach());
  }
  struct Home {
    Memory *memory;
    size_t first;
  };
  std::map<Key, Home> woven_homes;
  for (const auto &[key, reach] : woven_reach) {
    const size_t size = static_cast<size_t>(key.second);
    const size_t first = size * static_cast<size_t>(c.random.between(0, 5));
    const size_t after = size * static_cast<size_t>(c.random.between(0, 3));
    Memory &memory = c.memory(first + size * static_cast<size_t>(reach) + after);
    woven_homes[key] = {&memory, first};
  }
  // The others stand alone, or one after the other with a guard between.
  constexpr size_t kLargestElement = 8;
  std::vector<size_t> starts;
  std::vector<size_t> ends;
  size_t used = 0;
  for (const Plan &plan : plans) {
    const size_t size = static_cast<size_t>(element_size(plan.dtype));
    const size_t guard = size * static_cast<size_t>(c.random.between(0, 9));
    starts.push_back((side_by_side ? used : 0) + guard);
    used = starts.back() + size * static_cast<size_t>(plan.layout.reach());
    used += size * static_cast<size_t>(c.random.between(0, 3));
    ends.push_back(used);
    used = (used + kLargestElement - 1) / kLargestElement * kLargestElement;
  }
  Memory *shared = side_by_side ? &c.memory(used) : nullptr;

  LeafSet set;
  for (size_t l = 0; l < plans.size(); ++l) {
    const Plan &plan = plans[l];
    const size_t size = static_cast<size_t>(element_size(plan.dtype));
    Home home = {shared, starts[l]};
    int64_t numel = plan.layout.reach();
    if (plan.woven) {
      home = woven_homes[{plan.api_layout, element_size(plan.dtype)}];
    } else {
      if (shared == nullptr) home.memory = &c.memory(ends[l]);
      // The buffer may be longer than the view needs.
      numel = c.random.between(numel, static_cast<int64_t>((ends[l] - starts[l]) / size));
    }
    const std::string name = label + " " + std::to_string(l);
    Buffer buffer(name, *home.memory, home.first, plan.dtype, plan.api_layout, plan.layout, numel);
    if (plan.api_layout == SPK_LAYOUT_OWN) {
      ViewHandle own;
      c.require(spk_view_create(plan.dtype, static_cast<int32_t>(plan.layout.shape.size()),
                                plan.layout.shape.data(), plan.layout.stride.data(),
                                plan.layout.offset, own.out()),
                "spk_view_create " + plan.layout.text());
      buffer.own(std::move(own));
    }
    set.add(c.add(std::move(buffer)));
  }
  return set;
}

LeafSet make_contiguous(Case &c, const std::vector<LeafModel> &leaves, const std::string &label,
                        int dtype) {
  LeafSet set;
  for (size_t l = 0; l < leaves.size(); ++l) {
    const int64_t numel = product(leaves[l].view.shape);
    set.add(c.array(label + " " + std::to_string(l), dtype, numel));
  }
  return set;
}

namespace {

Weights plan_weights(Case &c, const std::vector<LeafModel> &leaves) {
  Weights weights;
  weights.source = make_leaves(c, leaves, "leaf");
  weights.target = weights.source;
  weights.pass_into = c.random.one_in(3);
  // `into` may also be the very same buffers.
  if (weights.pass_into && !c.random.one_in(5)) weights.target = make_leaves(c, leaves, "into");
  fill_leaves(c, weights.source);
  return weights;
}

}  // namespace

Weights make_weights(Case &c, const BlockSubject &subject) {
  Weights weights = plan_weights(c, subject.model.leaves);
  patch_blocks(c, weights.source, subject.elements);
  return weights;
}

Weights make_weights(Case &c, const ScopeSubject &subject) {
  Weights weights = plan_weights(c, subject.leaves);
  for (const Membership &elements : subject.elements) patch_blocks(c, weights.source, elements);
  return weights;
}

}  // namespace prop
