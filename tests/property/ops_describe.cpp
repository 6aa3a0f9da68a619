// Facts of handles: what they say about themselves, and their text forms.
#include "operations.hpp"

namespace prop {

namespace {

void same_dims(const std::string &what, const Dims &expected, const int64_t *got) {
  for (size_t d = 0; d < expected.size(); ++d) same(what, expected[d], got[d]);
}

void same_layout(const std::string &what, const LeafModel &leaf, const spk_view *view) {
  same(what + " dtype", leaf.dtype, spk_view_dtype(view));
  same(what + " ndim", static_cast<int64_t>(leaf.view.shape.size()), spk_view_ndim(view));
  same_dims(what + " shape", leaf.view.shape, spk_view_shape(view));
  same_dims(what + " stride", leaf.view.stride, spk_view_stride(view));
  same(what + " offset", leaf.view.offset, spk_view_offset(view));
}

std::string format(Case &c, const spk_view *view) {
  size_t length = 0;
  c.require(spk_view_format(view, nullptr, 0, &length), "spk_view_format");
  std::string text(length + 1, '?');
  c.require(spk_view_format(view, text.data(), text.size(), nullptr), "spk_view_format");
  same("terminator of the text form", 0, text.back());
  text.pop_back();
  if (text.find('\0') != std::string::npos) mismatch("the text form is shorter than its length");
  return text;
}

void view_facts(Case &c) {
  const ViewSubject s = make_view(c);
  const LeafModel &leaf = s.model.leaves[0];
  same_layout("view", leaf, s.view.get());
  int64_t cosize = 1;
  for (size_t d = 0; d < leaf.view.shape.size(); ++d) {
    const int64_t stride = leaf.view.stride[d];
    cosize += (leaf.view.shape[d] - 1) * (stride < 0 ? -stride : stride);
  }
  same("cosize", cosize, spk_view_cosize(s.view.get()));
  same("numel", product(leaf.view.shape), spk_view_numel(s.view.get()));

  ViewHandle parsed;
  c.require(spk_view_parse(leaf.dtype, leaf.view.text().c_str(), parsed.out()), "spk_view_parse");
  same_layout("parsed view", leaf, parsed.get());
  const std::string text = format(c, s.view.get());
  c.note([&] { return "text form " + text; });
  c.require(spk_view_parse(leaf.dtype, text.c_str(), parsed.out()), "spk_view_parse " + text);
  same_layout("view parsed from its own text", leaf, parsed.get());

  const int64_t count = c.random.between(1, 10);
  const int64_t columns = c.random.between(1, 20);
  Dims tuples;
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < count; ++i) {
    Dims index;
    for (int64_t extent : leaf.view.shape) index.push_back(c.random.between(0, extent - 1));
    tuples.insert(tuples.end(), index.begin(), index.end());
    expected.push_back(leaf.view.at(index));
  }
  std::vector<int64_t> got(expected.size(), -77);
  c.require(spk_view_linear_offset(s.view.get(), tuples.data(), count, got.data()),
            "spk_view_linear_offset");
  std::vector<int64_t> rows(expected.size(), -77);
  std::vector<int64_t> cols(expected.size(), -77);
  c.require(
      spk_view_to_param_rc(s.view.get(), tuples.data(), count, columns, rows.data(), cols.data()),
      "spk_view_to_param_rc");
  for (size_t i = 0; i < expected.size(); ++i) {
    same("linear offset", expected[i], got[i]);
    same("row", expected[i] / columns, rows[i]);
    same("column", expected[i] % columns, cols[i]);
  }
}

void same_block(Case &c, const BlockModel &model, const spk_block *block) {
  same("grid_ndim", static_cast<int64_t>(model.grid.size()), spk_block_grid_ndim(block));
  same_dims("grid_shape", model.grid, spk_block_grid_shape(block));
  same("numblk", model.numblk(), spk_block_numblk(block));
  same("numel_per_block", model.numel_per_block(), spk_block_numel_per_block(block));
  same("numel", model.numblk() * model.numel_per_block(), spk_block_numel(block));
  same("score dtype", model.score_dtype(), spk_block_score_dtype(block));
  same("leaf_count", static_cast<int64_t>(model.leaves.size()), spk_block_leaf_count(block));
  for (size_t l = 0; l < model.leaves.size(); ++l) {
    const LeafModel &leaf = model.leaves[l];
    const int32_t index = static_cast<int32_t>(l);
    same_layout("leaf view", leaf, spk_block_leaf_view(block, index));
    same_dims("leaf shape", leaf.block, spk_block_leaf_shape(block, index));
    BlockHandle spec;
    c.require(spk_block_leaf(block, index, spec.out()), "spk_block_leaf");
    same("leaf count of a leaf", 1, spk_block_leaf_count(spec.get()));
    // As it was created: without the permutation of the coupling.
    same_dims("grid of a leaf", leaf.view_grid(), spk_block_grid_shape(spec.get()));
  }
}

void block_facts(Case &c) {
  const BlockSubject s = make_block(c);
  same_block(c, s.model, s.handle.get());
  const int32_t beyond = static_cast<int32_t>(s.model.leaves.size());
  if (spk_block_leaf_view(s.handle.get(), beyond) != nullptr) mismatch("a leaf out of range");
}

void scope_facts(Case &c) {
  const ScopeSubject s = make_scope(c);
  const spk_scope *scope = s.handle.get();
  same("grid_ndim", static_cast<int64_t>(s.model.grid.size()), spk_scope_grid_ndim(scope));
  same_dims("grid_shape", s.model.grid, spk_scope_grid_shape(scope));
  same("numscope", s.model.numscope(), spk_scope_numscope(scope));
  same("numblk_per_scope", s.model.numblk_per_scope(), spk_scope_numblk_per_scope(scope));
  same("score dtype", s.model.score_dtype(), spk_scope_score_dtype(scope));
  same("member_count", static_cast<int64_t>(s.model.members.size()), spk_scope_member_count(scope));
  int64_t numel = 0;
  for (size_t m = 0; m < s.model.members.size(); ++m) {
    const MemberModel &member = s.model.members[m];
    const int32_t index = static_cast<int32_t>(m);
    same("member_numblk", product(member.shape), spk_scope_member_numblk(scope, index));
    same_block(c, member.block, spk_scope_member_block(scope, index));
    numel += product(member.shape) * member.block.numel_per_block();
  }
  same("numel_per_scope", numel, spk_scope_numel_per_scope(scope));
  same("leaf_count", static_cast<int64_t>(s.leaves.size()), spk_scope_leaf_count(scope));
  for (size_t l = 0; l < s.leaves.size(); ++l) {
    same_layout("leaf view", s.leaves[l], spk_scope_leaf_view(scope, static_cast<int32_t>(l)));
  }
}

}  // namespace

Operations describing_operations() {
  return {{"view_facts", view_facts, false},
          {"block_facts", block_facts},
          {"scope_facts", scope_facts}};
}

}  // namespace prop
