// The oracle's picture of views, blocks and scopes: plain index tuples, no strides tricks.
#ifndef SPARSEKIT_TESTS_PROPERTY_MODEL_HPP_
#define SPARSEKIT_TESTS_PROPERTY_MODEL_HPP_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace prop {

using Dims = std::vector<int64_t>;

int64_t product(const Dims &dims);
std::string text_of(const Dims &dims);

// Where an index tuple stands in row-major order.
int64_t row_major(const Dims &index, const Dims &shape);
// The next tuple in row-major order; false after the last one, which leaves the first.
bool advance(Dims &index, const Dims &shape);
Dims row_major_strides(const Dims &shape);

// A strided window, without a dtype.
struct Layout {
  Dims shape;
  Dims stride;
  int64_t offset = 0;

  int64_t at(const Dims &index) const;
  // One more than the highest address.
  int64_t reach() const;
  // The addresses of all elements in row-major order.
  Dims addresses() const;
  std::string text() const;
};

Layout contiguous_layout(const Dims &shape);

// A block spec as it stands inside a block: the coupled grid's axis e is axis order[e] of the
// grid that the spec cuts out of its view.
struct LeafModel {
  int dtype = 0;
  Layout view;
  Dims block;
  Dims order;
  // Leaves with lanes lie interleaved in one allocation: lane j uses every address = j modulo the
  // number of lanes. -1: an allocation of its own.
  int64_t lane = -1;

  Dims view_grid() const;
  // The coupled block to which an element belongs.
  int64_t block_of(const Dims &index, const Dims &grid) const;
};

struct BlockModel {
  Dims grid;
  std::vector<LeafModel> leaves;

  int64_t numblk() const { return product(grid); }
  int64_t numel_per_block() const;
  int score_dtype() const;
};

// An element of a leaf: its place in the row-major order of the leaf's view.
struct Element {
  size_t leaf;
  int64_t index;
};

// The elements of one block.
class Unit {
 public:
  Unit(const Element *first, const Element *last) : first_(first), last_(last) {}
  const Element *begin() const { return first_; }
  const Element *end() const { return last_; }
  int64_t size() const { return last_ - first_; }

 private:
  const Element *first_;
  const Element *last_;
};

// Elements of each block: leaf 0's row-major, then leaf 1's, ... `first_leaf` is the number of leaf
// 0 in the list of all leaves of a scope.
class Membership {
 public:
  Membership() = default;
  explicit Membership(const BlockModel &block, size_t first_leaf = 0);
  int64_t count() const { return static_cast<int64_t>(start_.size()) - 1; }
  Unit operator[](int64_t block) const {
    const size_t b = static_cast<size_t>(block);
    return {elements_.data() + start_[b], elements_.data() + start_[b + 1]};
  }

 private:
  Dims start_;
  std::vector<Element> elements_;
};

// A block inside a scope.
struct Competitor {
  size_t member;
  int64_t block;  // row-major in the grid of the member's block
};

struct MemberModel {
  BlockModel block;
  Dims shape;
  Dims order;

  Dims scope_grid() const;
};

struct ScopeModel {
  Dims grid;
  std::vector<MemberModel> members;

  int64_t numscope() const { return product(grid); }
  int64_t numblk_per_scope() const;
  int score_dtype() const;
  // First leaf of a member in the list of all leaves.
  size_t first_leaf(size_t member) const;
  std::vector<LeafModel> leaves() const;
  // For each scope its blocks in order of position.
  std::vector<std::vector<Competitor>> competitors() const;
};

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_MODEL_HPP_
