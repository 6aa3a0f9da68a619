#include "subject.hpp"

#include <algorithm>
#include <set>

#include "data.hpp"

namespace prop {

namespace {

bool is_injective(const Layout &layout) {
  const Dims addresses = layout.addresses();
  return std::set<int64_t>(addresses.begin(), addresses.end()).size() == addresses.size();
}

// Small strides that are in no order and yet never meet, such as (2,3):(3,2).
bool entangle(Random &random, Layout &layout) {
  constexpr int64_t kMostElements = 64;
  if (product(layout.shape) > kMostElements) return false;
  for (int attempt = 0; attempt < 8; ++attempt) {
    for (size_t d = 0; d < layout.shape.size(); ++d) {
      layout.stride[d] = random.between(1, 2 * product(layout.shape) / layout.shape[d] + 1);
    }
    if (is_injective(layout)) return true;
  }
  return false;
}

void pad_strides(Random &random, const Dims &order, bool gaps, Layout &layout) {
  int64_t step = gaps ? random.between(1, 3) : 1;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t d = static_cast<size_t>(order[i]);
    layout.stride[d] = step;
    step *= layout.shape[d];
    if (gaps && random.one_in(2)) step += random.between(1, 4);
  }
}

void flip(Layout &layout, size_t d) {
  layout.offset += (layout.shape[d] - 1) * layout.stride[d];
  layout.stride[d] = -layout.stride[d];
}

int64_t pick_factor(Random &random, int64_t room) {
  const int64_t factor = random.pick<int64_t>({2, 2, 2, 3, 3, 4, 5, 7, 8, 16, 33, 64});
  return std::min(factor, room);
}

}  // namespace

Layout random_layout(Random &random, const Dims &shape, LayoutClass layout_class) {
  Layout layout = contiguous_layout(shape);
  if (layout_class == kCoupled) {
    layout_class = static_cast<LayoutClass>(random.between(kContiguous, kNegative));
  }
  if (layout_class != kContiguous) {
    const int64_t rank = static_cast<int64_t>(shape.size());
    Dims order = random.permutation(rank);
    const bool sorted = layout_class == kStrided || (layout_class == kNegative && random.one_in(2));
    if (sorted) std::sort(order.begin(), order.end());
    if (layout_class == kPermuted && rank > 1) {
      while (std::is_sorted(order.begin(), order.end())) order = random.permutation(rank);
    }
    const bool gaps = layout_class == kStrided || random.one_in(3);
    if (!random.one_in(8) || !entangle(random, layout)) pad_strides(random, order, gaps, layout);
    for (size_t d = 0; d < shape.size(); ++d) {
      // A dimension of one element is never stepped through, so its stride may be anything.
      if (shape[d] == 1 && random.one_in(4)) layout.stride[d] = random.between(-5, 5);
    }
    if (layout_class == kNegative) {
      const size_t sure = static_cast<size_t>(random.between(0, rank - 1));
      for (size_t d = 0; d < shape.size(); ++d) {
        if (d == sure || random.one_in(3)) flip(layout, d);
      }
    }
  }
  if (random.one_in(3)) layout.offset += random.between(1, 5);
  return layout;
}

// --- sizes -----------------------------------------------------------------------------------

namespace {

// Extents whose product is at most `target`, and near it if `filled`.
Dims random_extents(Random &random, size_t rank, int64_t target, bool filled) {
  Dims extents(rank, 1);
  for (int misses = 0; misses < 3;) {
    const int64_t room = target / product(extents);
    if (room < 2) break;
    if (!filled && random.one_in(10)) break;
    const int64_t factor = pick_factor(random, room);
    const size_t d = static_cast<size_t>(random.between(0, static_cast<int64_t>(rank) - 1));
    if (factor * product(extents) > target) {
      ++misses;
    } else {
      extents[d] *= factor;
    }
  }
  if (filled) {
    extents[static_cast<size_t>(random.between(0, static_cast<int64_t>(rank) - 1))] *=
        target / product(extents);
  }
  return extents;
}

size_t random_rank(Case &c) {
  if (c.layout_class == kPermuted) return c.random.pick<size_t>({2, 2, 2, 3, 3, 4, 5, 6});
  return c.random.pick<size_t>({1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 5, 6});
}

int64_t random_total(Case &c, Size size) {
  if (c.large) return c.random.between(size.large / 3, size.large);
  const int64_t most = c.random.one_in(20) ? 6 * size.small : size.small;
  return static_cast<int64_t>(c.random.log_uniform(2, static_cast<double>(most)));
}

// How a total is shared between scopes, blocks of a scope, and elements of a block.
struct Shares {
  int64_t scopes;
  int64_t blocks;
  int64_t elements;
};

Shares random_shares(Case &c, int64_t total) {
  const double all = static_cast<double>(total);
  const auto power = [&](double share) {
    return std::max<int64_t>(1, static_cast<int64_t>(std::pow(all, share)));
  };
  if (c.large) {
    const int64_t few = c.random.between(1, 3);
    switch (c.random.between(0, 3)) {
      case 0:
        return {1, total / few, few};
      case 1:
        return {few, 1 + total / 100000, std::max<int64_t>(1, total / (few + total / 100000))};
      case 2:
        return {total / 8, 4, 2};
      default:
        break;
    }
  }
  const double first = c.random.unit();
  const double second = (1 - first) * c.random.unit();
  if (c.random.one_in(2)) return {power(second), power(first), power(1 - first - second)};
  return {power(second), power(1 - first - second), power(first)};
}

// --- handles ---------------------------------------------------------------------------------

int random_dtype(Random &random) {
  return random.pick({SPK_F32, SPK_F64, SPK_F16, SPK_BF16});
}

const char *random_name(Random &random) {
  return random.pick<const char *>({nullptr, "layer1.weight", "", "x"});
}

// A shape as a caller may tell it: spanned dimensions may be 0 or -1.
Dims tell_spans(Random &random, const Dims &shape, const Dims &whole) {
  Dims told = shape;
  for (size_t d = 0; d < told.size(); ++d) {
    if (told[d] == whole[d] && random.one_in(3)) told[d] = random.pick<int64_t>({0, -1, -7});
  }
  return told;
}

// Coupling orders as the API takes them: none if all are the identity, at least sometimes.
std::vector<int32_t> orders_to_tell(Random &random, const std::vector<Dims> &orders) {
  std::vector<int32_t> flat;
  bool identity = true;
  for (const Dims &order : orders) {
    identity = identity && std::is_sorted(order.begin(), order.end());
    flat.insert(flat.end(), order.begin(), order.end());
  }
  if (identity && random.one_in(2)) flat.clear();
  return flat;
}

// order[e] = inner[outer[e]]: first the member's own order, then that of the coupling around it.
Dims compose(const Dims &inner, const Dims &outer) {
  Dims order(outer.size());
  for (size_t e = 0; e < outer.size(); ++e) order[e] = inner[static_cast<size_t>(outer[e])];
  return order;
}

Dims identity(size_t rank) {
  Dims order(rank);
  for (size_t d = 0; d < rank; ++d) order[d] = static_cast<int64_t>(d);
  return order;
}

Dims random_order(Random &random, size_t rank) {
  return random.one_in(2) ? identity(rank) : random.permutation(static_cast<int64_t>(rank));
}

// The grid of a member whose axis order[e] becomes axis e.
Dims member_grid(const Dims &grid, const Dims &order) {
  Dims own(grid.size());
  for (size_t e = 0; e < grid.size(); ++e) own[static_cast<size_t>(order[e])] = grid[e];
  return own;
}

// Cuts `count` things into the members of a coupling.
std::vector<int64_t> random_parts(Random &random, int64_t count) {
  std::vector<int64_t> parts;
  while (count > 0) {
    parts.push_back(random.one_in(2) ? 1 : random.between(1, count));
    count -= parts.back();
  }
  return parts;
}

// State of one tree of couplings while it is built.
struct Builder {
  Case &c;
  int64_t lanes;  // 0: no interleaving
  int64_t next_leaf = 0;

  LeafModel make_leaf(const Dims &grid, int64_t per_block) {
    LeafModel leaf;
    leaf.dtype = next_leaf == 0 || c.random.one_in(2) ? c.dtype : random_dtype(c.random);
    leaf.block = random_extents(c.random, grid.size(), per_block, c.large);
    Dims shape(grid);
    for (size_t d = 0; d < shape.size(); ++d) shape[d] *= leaf.block[d];
    leaf.view = random_layout(c.random, shape, c.layout_class);
    leaf.order = identity(grid.size());
    if (lanes > 0) {
      leaf.lane = next_leaf;
      for (int64_t &stride : leaf.view.stride) stride *= lanes;
      leaf.view.offset = leaf.view.offset * lanes + leaf.lane;
    }
    ++next_leaf;
    return leaf;
  }

  BlockSubject make_spec(const Dims &grid, int64_t per_block, ViewHandle *view_out,
                         Dims *told_out) {
    BlockSubject subject;
    subject.model.grid = grid;
    const LeafModel leaf = make_leaf(grid, per_block);
    subject.model.leaves = {leaf};
    const int32_t rank = static_cast<int32_t>(grid.size());
    ViewHandle view;
    const bool plain = leaf.view.stride == row_major_strides(leaf.view.shape);
    const int64_t *stride = plain && c.random.one_in(2) ? nullptr : leaf.view.stride.data();
    c.require(spk_view_create(leaf.dtype, rank, leaf.view.shape.data(), stride, leaf.view.offset,
                              view.out()),
              "spk_view_create " + leaf.view.text());
    Dims told;
    if (product(leaf.block) > 1 || c.random.one_in(2)) {
      told = tell_spans(c.random, leaf.block, leaf.view.shape);
    }
    c.require(spk_block_create(view.get(), static_cast<int32_t>(told.size()),
                               told.empty() ? nullptr : told.data(), random_name(c.random),
                               subject.handle.out()),
              "spk_block_create");
    c.note([&] {
      return std::string("leaf ") + std::to_string(next_leaf - 1) + ": " + dtype_name(leaf.dtype) +
             " " + leaf.view.text() + ", block " + text_of(leaf.block) + " told as " +
             text_of(told);
    });
    c.maybe_keep(view);
    if (view_out != nullptr) *view_out = view;
    if (told_out != nullptr) *told_out = told;
    return subject;
  }

  BlockSubject make_node(const Dims &grid, int64_t per_block, int64_t leaves) {
    if (leaves == 1 && !c.random.one_in(10)) return make_spec(grid, per_block, nullptr, nullptr);
    BlockSubject subject;
    subject.model.grid = grid;
    std::vector<Dims> orders;
    std::vector<BlockSubject> members;
    std::vector<spk_block *> raw;
    for (int64_t part : random_parts(c.random, leaves)) {
      orders.push_back(random_order(c.random, grid.size()));
      members.push_back(make_node(member_grid(grid, orders.back()), per_block, part));
      raw.push_back(members.back().handle.get());
      for (LeafModel leaf : members.back().model.leaves) {
        leaf.order = compose(leaf.order, orders.back());
        subject.model.leaves.push_back(leaf);
      }
    }
    const std::vector<int32_t> told = orders_to_tell(c.random, orders);
    c.require(spk_block_couple(raw.data(), static_cast<int32_t>(raw.size()),
                               told.empty() ? nullptr : told.data(), random_name(c.random),
                               subject.handle.out()),
              "spk_block_couple");
    c.note([&] {
      std::string text = "coupling, grid " + text_of(grid) + ", members";
      for (size_t m = 0; m < members.size(); ++m) {
        text += " " + std::to_string(members[m].model.leaves.size()) + " leaves order " +
                text_of(orders[m]);
      }
      return text;
    });
    for (const BlockSubject &member : members) c.maybe_keep(member.handle);
    return subject;
  }

  ScopeSubject make_scope_spec(const Dims &grid, Shares shares, int64_t leaves, int64_t least) {
    ScopeSubject subject;
    MemberModel member;
    member.shape = random_extents(c.random, grid.size(), shares.blocks, c.large);
    if (product(member.shape) < least) member.shape.back() *= least;
    Dims block_grid(grid);
    for (size_t d = 0; d < grid.size(); ++d) block_grid[d] *= member.shape[d];
    const BlockSubject block = make_node(block_grid, shares.elements, leaves);
    member.block = block.model;
    member.order = identity(grid.size());
    // Trailing dimensions that are spanned may be left out.
    Dims told = tell_spans(c.random, member.shape, block_grid);
    while (!told.empty() && member.shape[told.size() - 1] == block_grid[told.size() - 1] &&
           c.random.one_in(2)) {
      told.pop_back();
    }
    c.require(spk_scope_create(block.handle.get(), static_cast<int32_t>(told.size()),
                               told.empty() ? nullptr : told.data(), random_name(c.random),
                               subject.handle.out()),
              "spk_scope_create");
    c.note([&] { return "scope " + text_of(member.shape) + " told as " + text_of(told); });
    c.maybe_keep(block.handle);
    subject.model.grid = grid;
    subject.model.members = {member};
    return subject;
  }

  ScopeSubject make_scope_node(const Dims &grid, Shares shares, int64_t leaves, int64_t least) {
    if (c.random.one_in(2)) return make_scope_spec(grid, shares, leaves, least);
    ScopeSubject subject;
    std::vector<Dims> orders;
    std::vector<ScopeSubject> members;
    std::vector<spk_scope *> raw;
    for (int64_t part : random_parts(c.random, leaves)) {
      orders.push_back(random_order(c.random, grid.size()));
      const Dims own = member_grid(grid, orders.back());
      members.push_back(c.random.one_in(4) ? make_scope_node(own, shares, part, least)
                                           : make_scope_spec(own, shares, part, least));
      raw.push_back(members.back().handle.get());
      for (MemberModel member : members.back().model.members) {
        member.order = compose(member.order, orders.back());
        subject.model.members.push_back(member);
      }
    }
    const std::vector<int32_t> told = orders_to_tell(c.random, orders);
    c.require(spk_scope_couple(raw.data(), static_cast<int32_t>(raw.size()),
                               told.empty() ? nullptr : told.data(), random_name(c.random),
                               subject.handle.out()),
              "spk_scope_couple");
    c.note([&] {
      std::string text = "scope coupling, grid " + text_of(grid) + ", orders";
      for (const Dims &order : orders) text += " " + text_of(order);
      return text;
    });
    for (const ScopeSubject &member : members) c.maybe_keep(member.handle);
    subject.model.grid = grid;
    return subject;
  }
};

int64_t random_leaf_count(Case &c) {
  if (c.layout_class != kCoupled) return 1;
  return c.random.pick<int64_t>({1, 2, 2, 2, 3, 3, 4});
}

Builder make_builder(Case &c, int64_t leaves) {
  const bool interleaved = leaves > 1 && c.random.one_in(4);
  return {c, interleaved ? leaves : 0};
}

}  // namespace

BlockSubject make_block(Case &c, Size size) {
  const Shares shares = random_shares(c, random_total(c, size));
  const int64_t leaves = random_leaf_count(c);
  const Dims grid =
      random_extents(c.random, random_rank(c), shares.scopes * shares.blocks, c.large);
  Builder builder = make_builder(c, leaves);
  BlockSubject subject;
  if (c.layout_class == kCoupled) {
    subject = builder.make_node(grid, std::max<int64_t>(1, shares.elements / leaves), leaves);
  } else {
    subject = builder.make_spec(grid, shares.elements, nullptr, nullptr);
  }
  subject.elements = Membership(subject.model);
  return subject;
}

ViewSubject make_view(Case &c, Size size) {
  const Shares shares = random_shares(c, random_total(c, size));
  const Dims grid =
      random_extents(c.random, random_rank(c), shares.scopes * shares.blocks, c.large);
  Builder builder = make_builder(c, 1);
  ViewSubject subject;
  static_cast<BlockSubject &>(subject) =
      builder.make_spec(grid, shares.elements, &subject.view, &subject.told);
  subject.elements = Membership(subject.model);
  return subject;
}

ViewSubject make_grouped_view(Case &c, int64_t group, size_t axis) {
  const int64_t total = std::max<int64_t>(1, random_total(c, {}) / group);
  Dims grid = random_extents(c.random, std::max(axis + 1, random_rank(c)), total, c.large);
  grid[axis] *= group;
  Builder builder = make_builder(c, 1);
  ViewSubject subject;
  static_cast<BlockSubject &>(subject) = builder.make_spec(grid, 1, &subject.view, &subject.told);
  subject.elements = Membership(subject.model);
  return subject;
}

ScopeSubject make_scope(Case &c, int64_t least, Size size) {
  Shares shares = random_shares(c, random_total(c, size));
  const int64_t leaves = random_leaf_count(c);
  shares.elements = std::max<int64_t>(1, shares.elements / leaves);
  const Dims grid = random_extents(c.random, random_rank(c), shares.scopes, c.large);
  Builder builder = make_builder(c, leaves);
  ScopeSubject subject = c.layout_class == kCoupled
                             ? builder.make_scope_node(grid, shares, leaves, least)
                             : builder.make_scope_spec(grid, shares, leaves, least);
  subject.leaves = subject.model.leaves();
  for (size_t m = 0; m < subject.model.members.size(); ++m) {
    subject.elements.emplace_back(subject.model.members[m].block, subject.model.first_leaf(m));
  }
  subject.competitors = subject.model.competitors();
  return subject;
}

}  // namespace prop
