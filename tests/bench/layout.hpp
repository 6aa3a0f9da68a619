// The layouts of the table: a view over some bytes, cut into blocks.
#ifndef SPARSEKIT_TESTS_BENCH_LAYOUT_HPP_
#define SPARSEKIT_TESTS_BENCH_LAYOUT_HPP_

#include <cstdint>
#include <string>
#include <vector>

#include "dtype.hpp"
#include "session.hpp"

namespace bench {

using Dims = std::vector<int64_t>;

struct Layout {
  Dims shape;
  Dims stride;  // empty = contiguous
  Dims block;

  int64_t numel() const;
};

// How a block lies in memory, which decides what can be asked of an operation.
enum class BlockKind {
  kElement,
  kInCache,      // a block, and those next to it, fit in cache between the two visits of a write
  kBeyondCache,  // elements of a block are so far apart that each visit goes to main memory
};

struct LayoutFamily {
  std::string name;
  BlockKind kind;
  // The largest layout of the family within `numel` elements. Throws Skip if none fits.
  Layout (*fit)(int64_t numel);
};

const std::vector<LayoutFamily> &layout_families();
// Those that no goal speaks of.
const std::vector<LayoutFamily> &further_families();
// The family with this name, which is one of these.
const LayoutFamily &layout_family(const std::string &name);

// Single elements of a convolution.
Layout conv_elements(int64_t numel);
// A matrix of about `numel` elements in blocks of rows x cols.
Layout matrix(int64_t numel, int64_t block_rows, int64_t block_cols);

ViewHandle make_view(const Dtype &dtype, const Layout &layout);
BlockHandle make_block(const Dtype &dtype, const Layout &layout);

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_LAYOUT_HPP_
