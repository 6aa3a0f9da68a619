// Masks per element, gathered blocks, broadcasts, and arrays between block grids and scopes.
#include <cmath>

#include "operations.hpp"

namespace prop {

namespace {

int any_dtype(Random &random) {
  return random.pick({SPK_F32, SPK_F64, SPK_F16, SPK_BF16, SPK_U8, SPK_I64});
}

// Rearrangements move bits and never look at them.
void fill_bits(Random &random, Buffer &buffer) {
  fill(random, buffer, kBits);
}

void block_get_masks(Case &c) {
  const BlockSubject s = make_block(c);
  Buffer &block_mask = c.array("block_mask", SPK_U8, s.model.numblk());
  fill_mask(c.random, block_mask);
  const LeafSet masks = make_contiguous(c, s.model.leaves, "mask", SPK_U8);
  c.run([&](spk_context *context) {
    const spk_buffer api = block_mask.api();
    return spk_block_get_masks(context, s.handle.get(), &api, masks.api(), masks.count());
  });
  for (int64_t b = 0; b < s.model.numblk(); ++b) {
    const uint64_t keep = block_mask.before_bits(b) != 0 ? 1 : 0;
    for (const Element &e : s.elements[b]) masks[e.leaf].expect_bits(e.index, keep);
  }
  c.verify();
}

// --- views of blocks -------------------------------------------------------------------------

void same_view(const std::string &what, const spk_view *view, int dtype, const Layout &expected) {
  const int32_t rank = static_cast<int32_t>(expected.shape.size());
  same(what + " dtype", dtype, spk_view_dtype(view));
  same(what + " ndim", rank, spk_view_ndim(view));
  Layout got;
  got.shape.assign(spk_view_shape(view), spk_view_shape(view) + rank);
  got.stride.assign(spk_view_stride(view), spk_view_stride(view) + rank);
  got.offset = spk_view_offset(view);
  // Strides of dimensions of one element are free: what counts is where the elements lie.
  if (got.shape != expected.shape || got.addresses() != expected.addresses()) {
    mismatch(what + ": expected " + expected.text() + ", got " + got.text());
  }
}

// The view cut into parts: (B0, b0, B1, b1, ...), or with reorder (B0, B1, ..., b0, b1, ...).
Layout cut(const Layout &view, const Dims &part, bool reorder) {
  Layout result;
  result.offset = view.offset;
  const size_t rank = part.size();
  result.shape.resize(2 * rank);
  result.stride.resize(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const size_t outer = reorder ? d : 2 * d;
    const size_t inner = reorder ? rank + d : 2 * d + 1;
    result.shape[outer] = view.shape[d] / part[d];
    result.stride[outer] = view.stride[d] * part[d];
    result.shape[inner] = part[d];
    result.stride[inner] = view.stride[d];
  }
  return result;
}

void expect_refused(spk_status status, const spk_view *out) {
  if (status == SPK_OK || out != nullptr) mismatch("a view of a coupling was not refused");
}

void block_view(Case &c) {
  const BlockSubject s = make_block(c);
  const LeafModel &leaf = s.model.leaves[0];
  for (int32_t reorder : {0, 1}) {
    ViewHandle view;
    const spk_status status = spk_block_block_view(s.handle.get(), reorder, view.out());
    if (s.model.leaves.size() > 1) {
      expect_refused(status, view.get());
      continue;
    }
    // A coupling of one member may be refused like any other.
    if (c.layout_class == kCoupled && status != SPK_OK) continue;
    c.require(status, "spk_block_block_view");
    Layout expected = leaf.view;
    Dims part = leaf.block;
    if (c.layout_class == kCoupled) {
      for (size_t e = 0; e < leaf.order.size(); ++e) {
        const size_t own = static_cast<size_t>(leaf.order[e]);
        expected.shape[e] = leaf.view.shape[own];
        expected.stride[e] = leaf.view.stride[own];
        part[e] = leaf.block[own];
      }
    }
    same_view("block_view", view.get(), leaf.dtype, cut(expected, part, reorder != 0));
  }
}

void view_block_view(Case &c) {
  const ViewSubject s = make_view(c);
  const LeafModel &leaf = s.model.leaves[0];
  for (int32_t reorder : {0, 1}) {
    ViewHandle view;
    c.require(spk_view_block_view_of(s.view.get(), static_cast<int32_t>(s.told.size()),
                                     s.told.data(), reorder, view.out()),
              "spk_view_block_view_of");
    same_view("block_view_of", view.get(), leaf.dtype, cut(leaf.view, leaf.block, reorder != 0));
  }
}

void grid_views(Case &c) {
  const BlockSubject s = make_block(c);
  const int dtype = c.random.pick({SPK_F32, SPK_F64, SPK_F16, SPK_BF16});
  ViewHandle fake;
  ViewHandle grid;
  c.require(spk_block_broadcast_fake(s.handle.get(), dtype, fake.out()), "broadcast_fake");
  c.require(spk_block_expand_block_tensor(s.handle.get(), dtype, grid.out()), "expand");
  Dims with_ones;
  for (int64_t extent : s.model.grid) {
    with_ones.push_back(extent);
    with_ones.push_back(1);
  }
  same_view("broadcast_fake", fake.get(), dtype, contiguous_layout(with_ones));
  same_view("expand_block_tensor", grid.get(), dtype, contiguous_layout(s.model.grid));
}

// --- gathering and repeating -----------------------------------------------------------------

// The leaves' dtype if they agree, else the score dtype.
int merged_dtype(const BlockModel &model) {
  for (const LeafModel &leaf : model.leaves) {
    if (leaf.dtype != model.leaves[0].dtype) return model.score_dtype();
  }
  return model.leaves[0].dtype;
}

void expect_merged(const BlockSubject &s, const LeafSet &leaves, Buffer &out) {
  int64_t place = 0;
  for (int64_t b = 0; b < s.model.numblk(); ++b) {
    for (const Element &e : s.elements[b]) {
      if (leaves[e.leaf].dtype() == out.dtype()) {
        out.expect_bits(place++, leaves.before_bits(e));
      } else {
        expect_value(out, place++, leaves.before(e));
      }
    }
  }
}

void block_merged(Case &c) {
  const BlockSubject s = make_block(c);
  const LeafSet leaves = make_leaves(c, s.model.leaves, "leaf");
  fill_leaves(c, leaves);
  const int64_t numel = s.model.numblk() * s.model.numel_per_block();
  Buffer &out = c.array("out", merged_dtype(s.model), numel);
  c.run([&](spk_context *context) {
    const spk_buffer api = out.api();
    return spk_block_block_view_merged(context, s.handle.get(), leaves.api(), leaves.count(), &api);
  });
  expect_merged(s, leaves, out);
  c.verify();
}

void view_merged(Case &c) {
  const ViewSubject s = make_view(c);
  const LeafSet leaves = make_leaves(c, s.model.leaves, "leaf");
  fill_leaves(c, leaves);
  Buffer &out = c.array("out", s.model.leaves[0].dtype, leaves[0].numel());
  c.run([&](spk_context *context) {
    const spk_buffer api = out.api();
    return spk_view_block_view_merged(context, s.view.get(), leaves.api(),
                                      static_cast<int32_t>(s.told.size()), s.told.data(), &api);
  });
  expect_merged(s, leaves, out);
  c.verify();
}

void expect_repeated(const BlockSubject &s, const Buffer &values, const LeafSet &out) {
  for (int64_t b = 0; b < s.model.numblk(); ++b) {
    for (const Element &e : s.elements[b]) {
      out[e.leaf].expect_bits(e.index, values.before_bits(b));
    }
  }
}

void block_broadcast(Case &c) {
  const BlockSubject s = make_block(c);
  Buffer &values = c.array("values", any_dtype(c.random), s.model.numblk());
  fill_bits(c.random, values);
  const LeafSet out = make_contiguous(c, s.model.leaves, "out", values.dtype());
  c.run([&](spk_context *context) {
    const spk_buffer api = values.api();
    return spk_block_broadcast_block_to_element(context, s.handle.get(), &api, out.api(),
                                                out.count());
  });
  expect_repeated(s, values, out);
  c.verify();
}

void view_broadcast(Case &c) {
  const ViewSubject s = make_view(c);
  Buffer &values = c.array("values", any_dtype(c.random), s.model.numblk());
  fill_bits(c.random, values);
  const LeafSet out = make_contiguous(c, s.model.leaves, "out", values.dtype());
  c.run([&](spk_context *context) {
    const spk_buffer api = values.api();
    return spk_view_broadcast_block_to_element(
        context, s.view.get(), static_cast<int32_t>(s.told.size()), s.told.data(), &api, out.api());
  });
  expect_repeated(s, values, out);
  c.verify();
}

// --- scopes ----------------------------------------------------------------------------------

// One array in the grid of each member's block.
LeafSet make_grid_arrays(Case &c, const ScopeSubject &s, const std::string &label, int dtype) {
  LeafSet arrays;
  for (size_t m = 0; m < s.model.members.size(); ++m) {
    arrays.add(c.array(label + " " + std::to_string(m), dtype, s.model.members[m].block.numblk()));
    fill_bits(c.random, arrays[m]);
  }
  return arrays;
}

void block_to_scope(Case &c) {
  const ScopeSubject s = make_scope(c);
  const LeafSet values = make_grid_arrays(c, s, "values", any_dtype(c.random));
  const int64_t per_scope = s.model.numblk_per_scope();
  Buffer &out = c.array("out", values[0].dtype(), s.model.numscope() * per_scope);
  c.run([&](spk_context *context) {
    const spk_buffer api = out.api();
    return spk_scope_block_to_scope(context, s.handle.get(), values.api(), values.count(), &api);
  });
  int64_t place = 0;
  for (const std::vector<Competitor> &scope : s.competitors) {
    for (const Competitor &one : scope) {
      out.expect_bits(place++, values[one.member].before_bits(one.block));
    }
  }
  c.verify();
}

void scope_to_block(Case &c) {
  const ScopeSubject s = make_scope(c);
  Buffer &values = c.array("values", any_dtype(c.random), s.model.numscope());
  fill_bits(c.random, values);
  const LeafSet out = make_grid_arrays(c, s, "out", values.dtype());
  c.run([&](spk_context *context) {
    const spk_buffer api = values.api();
    return spk_scope_scope_to_block(context, s.handle.get(), &api, out.api(), out.count());
  });
  for (size_t scope = 0; scope < s.competitors.size(); ++scope) {
    for (const Competitor &one : s.competitors[scope]) {
      out[one.member].expect_bits(one.block, values.before_bits(static_cast<int64_t>(scope)));
    }
  }
  c.verify();
}

void block_to_scope_view(Case &c) {
  const ScopeSubject s = make_scope(c);
  const int dtype = c.random.pick({SPK_F32, SPK_F64, SPK_F16, SPK_BF16});
  for (int32_t reorder : {0, 1}) {
    ViewHandle view;
    const spk_status status =
        spk_scope_block_to_scope_view(s.handle.get(), dtype, reorder, view.out());
    if (s.model.members.size() > 1) {
      expect_refused(status, view.get());
      continue;
    }
    if (c.layout_class == kCoupled && status != SPK_OK) continue;
    c.require(status, "spk_scope_block_to_scope_view");
    const MemberModel &member = s.model.members[0];
    Layout expected = contiguous_layout(member.block.grid);
    const Layout own = expected;
    Dims part = member.shape;
    for (size_t e = 0; e < member.order.size(); ++e) {
      const size_t axis = static_cast<size_t>(member.order[e]);
      expected.shape[e] = own.shape[axis];
      expected.stride[e] = own.stride[axis];
      part[e] = member.shape[axis];
    }
    same_view("block_to_scope_view", view.get(), dtype, cut(expected, part, reorder != 0));
  }
}

}  // namespace

Operations arranging_operations() {
  return {{"get_masks", block_get_masks},
          {"block_view", block_view},
          {"block_merged", block_merged},
          {"broadcast", block_broadcast},
          {"grid_views", grid_views},
          {"view_block_view", view_block_view, false},
          {"view_merged", view_merged, false},
          {"view_broadcast", view_broadcast, false},
          {"block_to_scope", block_to_scope},
          {"scope_to_block", scope_to_block},
          {"to_scope_view", block_to_scope_view}};
}

}  // namespace prop
