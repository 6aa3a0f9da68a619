// What a case works on: random views, blocks, couplings and scopes, each as a model and a handle,
// and the buffers that go with them.
#ifndef SPARSEKIT_TESTS_PROPERTY_SUBJECT_HPP_
#define SPARSEKIT_TESTS_PROPERTY_SUBJECT_HPP_

#include <string>
#include <vector>

#include "case.hpp"
#include "handles.hpp"
#include "model.hpp"

namespace prop {

struct BlockSubject {
  BlockModel model;
  BlockHandle handle;
  Membership elements;
};

struct ScopeSubject {
  ScopeModel model;
  ScopeHandle handle;
  std::vector<LeafModel> leaves;                     // of all members
  std::vector<Membership> elements;                  // of each member, with leaves counted through
  std::vector<std::vector<Competitor>> competitors;  // of each scope

  // The block at a position of a scope.
  Unit unit(int64_t scope, int64_t position) const {
    const Competitor &one = competitors[static_cast<size_t>(scope)][static_cast<size_t>(position)];
    return elements[one.member][one.block];
  }
};

// About how many elements a subject has; cases that cost more per element ask for fewer.
struct Size {
  int64_t small = 128;
  int64_t large = 300000;
};

Layout random_layout(Random &random, const Dims &shape, LayoutClass layout_class);

// A block of the case's dtype and layout class; of several leaves in class kCoupled.
BlockSubject make_block(Case &c, Size size = {});

// A scope with at least `least` blocks.
ScopeSubject make_scope(Case &c, int64_t least = 1, Size size = {});

// A block spec over one view, whose handle the caller wants too.
struct ViewSubject : BlockSubject {
  ViewHandle view;
  // How the block shape was told to the library: 0 entries, or one per dimension.
  Dims told;
};
ViewSubject make_view(Case &c, Size size = {});
// The view has blocks of one element; its extent along `axis` is a multiple of `group`.
ViewSubject make_grouped_view(Case &c, int64_t group, size_t axis);

// One buffer per leaf.
class LeafSet {
 public:
  void add(Buffer &buffer);
  Buffer &operator[](size_t leaf) const { return *buffers_[leaf]; }
  size_t size() const { return buffers_.size(); }
  const spk_buffer *api() const { return api_.data(); }
  int32_t count() const { return static_cast<int32_t>(api_.size()); }

  uint64_t before_bits(const Element &e) const { return (*this)[e.leaf].before_bits(e.index); }
  double before(const Element &e) const { return (*this)[e.leaf].before(e.index); }
  double live(const Element &e) const { return (*this)[e.leaf].live(e.index); }

 private:
  std::vector<Buffer *> buffers_;
  std::vector<spk_buffer> api_;
};

// Buffers for the leaves in random layouts, some interleaved or side by side in one allocation.
// `dtypes` replaces those of the leaves if it is not empty. They hold junk until they are filled.
LeafSet make_leaves(Case &c, const std::vector<LeafModel> &leaves, const std::string &label,
                    const std::vector<int> &dtypes = {});

// Contiguous buffers of one dtype in the shapes of the leaves, such as masks.
LeafSet make_contiguous(Case &c, const std::vector<LeafModel> &leaves, const std::string &label,
                        int dtype);

// Weights, and where the result goes: in place, into other buffers, or into themselves.
struct Weights {
  LeafSet source;
  LeafSet target;
  bool pass_into = false;

  const spk_buffer *leaves() const { return source.api(); }
  const spk_buffer *into() const { return pass_into ? target.api() : nullptr; }
  int32_t count() const { return source.count(); }

  uint64_t before_bits(const Element &e) const { return source.before_bits(e); }
  double before(const Element &e) const { return source.before(e); }
  void expect_bits(const Element &e, uint64_t bits) const {
    target[e.leaf].expect_bits(e.index, bits);
  }
  void expect_same(const Element &e) const { expect_bits(e, before_bits(e)); }
  void expect_zero(const Element &e) const { expect_bits(e, 0); }
};

Weights make_weights(Case &c, const BlockSubject &subject);
Weights make_weights(Case &c, const ScopeSubject &subject);

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_SUBJECT_HPP_
