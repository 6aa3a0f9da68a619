#include "model.hpp"

#include <sparsekit/sparsekit.h>

#include <algorithm>

namespace prop {

namespace {

// Row-major place of a grid tuple after the axes are put in the order of a coupling.
int64_t permuted_place(const Dims &own, const Dims &order, const Dims &grid) {
  Dims coupled(grid.size());
  for (size_t e = 0; e < grid.size(); ++e) coupled[e] = own[static_cast<size_t>(order[e])];
  return row_major(coupled, grid);
}

Dims divide(const Dims &shape, const Dims &part) {
  Dims grid(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) grid[d] = shape[d] / part[d];
  return grid;
}

}  // namespace

int64_t product(const Dims &dims) {
  int64_t result = 1;
  for (int64_t dim : dims) result *= dim;
  return result;
}

std::string text_of(const Dims &dims) {
  std::string text = "(";
  for (size_t d = 0; d < dims.size(); ++d) text += (d == 0 ? "" : ",") + std::to_string(dims[d]);
  return text + ")";
}

int64_t row_major(const Dims &index, const Dims &shape) {
  int64_t place = 0;
  for (size_t d = 0; d < shape.size(); ++d) place = place * shape[d] + index[d];
  return place;
}

bool advance(Dims &index, const Dims &shape) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

Dims row_major_strides(const Dims &shape) {
  Dims stride(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) stride[d - 1] = stride[d] * shape[d];
  return stride;
}

int64_t Layout::at(const Dims &index) const {
  int64_t address = offset;
  for (size_t d = 0; d < shape.size(); ++d) address += index[d] * stride[d];
  return address;
}

int64_t Layout::reach() const {
  int64_t highest = offset;
  for (size_t d = 0; d < shape.size(); ++d) {
    highest += std::max<int64_t>(0, (shape[d] - 1) * stride[d]);
  }
  return highest + 1;
}

Dims Layout::addresses() const {
  Dims result;
  result.reserve(static_cast<size_t>(product(shape)));
  Dims index(shape.size(), 0);
  do {
    result.push_back(at(index));
  } while (advance(index, shape));
  return result;
}

std::string Layout::text() const {
  return text_of(shape) + ":" + text_of(stride) + "+" + std::to_string(offset);
}

Layout contiguous_layout(const Dims &shape) {
  return {shape, row_major_strides(shape), 0};
}

Dims LeafModel::view_grid() const {
  return divide(view.shape, block);
}

int64_t LeafModel::block_of(const Dims &index, const Dims &grid) const {
  Dims own(index.size());
  for (size_t d = 0; d < index.size(); ++d) own[d] = index[d] / block[d];
  return permuted_place(own, order, grid);
}

int64_t BlockModel::numel_per_block() const {
  int64_t count = 0;
  for (const LeafModel &leaf : leaves) count += product(leaf.block);
  return count;
}

int BlockModel::score_dtype() const {
  for (const LeafModel &leaf : leaves) {
    if (leaf.dtype == SPK_F64) return SPK_F64;
  }
  return SPK_F32;
}

Membership::Membership(const BlockModel &block, size_t first_leaf) {
  const int64_t per_block = block.numel_per_block();
  const int64_t count = block.numblk();
  for (int64_t b = 0; b <= count; ++b) start_.push_back(b * per_block);
  elements_.resize(static_cast<size_t>(count * per_block));
  // A walk through a view in row-major order meets the elements of each block in row-major order.
  Dims next(start_.begin(), start_.end() - 1);
  for (size_t l = 0; l < block.leaves.size(); ++l) {
    const LeafModel &leaf = block.leaves[l];
    Dims index(leaf.view.shape.size(), 0);
    int64_t place = 0;
    do {
      int64_t &slot = next[static_cast<size_t>(leaf.block_of(index, block.grid))];
      elements_[static_cast<size_t>(slot++)] = {first_leaf + l, place++};
    } while (advance(index, leaf.view.shape));
  }
}

Dims MemberModel::scope_grid() const {
  return divide(block.grid, shape);
}

int64_t ScopeModel::numblk_per_scope() const {
  int64_t count = 0;
  for (const MemberModel &member : members) count += product(member.shape);
  return count;
}

int ScopeModel::score_dtype() const {
  for (const MemberModel &member : members) {
    if (member.block.score_dtype() == SPK_F64) return SPK_F64;
  }
  return SPK_F32;
}

size_t ScopeModel::first_leaf(size_t member) const {
  size_t first = 0;
  for (size_t m = 0; m < member; ++m) first += members[m].block.leaves.size();
  return first;
}

std::vector<LeafModel> ScopeModel::leaves() const {
  std::vector<LeafModel> all;
  for (const MemberModel &member : members) {
    all.insert(all.end(), member.block.leaves.begin(), member.block.leaves.end());
  }
  return all;
}

std::vector<std::vector<Competitor>> ScopeModel::competitors() const {
  std::vector<std::vector<Competitor>> scopes(static_cast<size_t>(numscope()));
  for (size_t m = 0; m < members.size(); ++m) {
    const MemberModel &member = members[m];
    Dims index(member.block.grid.size(), 0);
    int64_t block = 0;
    do {
      Dims own(index.size());
      for (size_t d = 0; d < index.size(); ++d) own[d] = index[d] / member.shape[d];
      const int64_t scope = permuted_place(own, member.order, grid);
      scopes[static_cast<size_t>(scope)].push_back({m, block++});
    } while (advance(index, member.block.grid));
  }
  return scopes;
}

}  // namespace prop
