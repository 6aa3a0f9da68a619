#include "layout.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "skip.hpp"

namespace bench {
namespace {

constexpr int64_t kWide = 4096;
constexpr int64_t kNarrow = 64;
constexpr int64_t kChannels = 512;
constexpr int64_t kKernel = 3;

void require(bool fits, const char *what) {
  if (!fits) throw Skip(std::string("too little data for ") + what);
}

Layout rows_64(int64_t numel) {
  return matrix(numel, 1, 64);
}

Layout rows_4096(int64_t numel) {
  require(numel >= kWide, "a row of 4096");
  return {{numel / kWide, kWide}, {}, {1, kWide}};
}

Layout tiles(int64_t numel) {
  return matrix(numel, 16, 16);
}

Layout large_tiles(int64_t numel) {
  return matrix(numel, 64, 64);
}

Layout short_rows(int64_t numel) {
  return matrix(numel, 1, 16);
}

Layout tiny_tiles(int64_t numel) {
  return matrix(numel, 4, 4);
}

// Of a matrix whose rows are so short that what comes next is in other rows.
Layout tiles_of_narrow(int64_t numel) {
  constexpr int64_t kColumns = 256;
  constexpr int64_t kSide = 16;
  require(numel >= kColumns * kSide, "a row of tiles");
  return {{numel / kColumns / kSide * kSide, kColumns}, {}, {kSide, kSide}};
}

// Of rows that are neither short nor streams.
Layout wide_tiles(int64_t numel) {
  require(numel >= kWide * kNarrow, "tiles of rows of 256");
  return matrix(numel, 32, 256);
}

Layout columns(int64_t numel) {
  require(numel >= kWide, "a column of 4096");
  return {{kWide, numel / kWide}, {}, {kWide, 1}};
}

Layout elements(int64_t numel) {
  return matrix(numel, 1, 1);
}

// 512 x 512 x 3 x 3, or as many channels of both kinds as there is room for.
Layout conv(int64_t numel, const Dims &block) {
  int64_t channels = kChannels;
  while (channels > 1 && channels * channels * kKernel * kKernel > numel) channels /= 2;
  require(channels > 1, "a convolution");
  return {{channels, channels, kKernel, kKernel}, {}, block};
}

Layout conv_kernels(int64_t numel) {
  return conv(numel, {1, 1, kKernel, kKernel});
}

Layout conv_input_channels(int64_t numel) {
  return conv(numel, {0, 1, kKernel, kKernel});
}

// A place of the kernels over all output channels, as shape-wise sparsity has it (Wen et al. 2016).
Layout conv_filter_shapes(int64_t numel) {
  return conv(numel, {0, 1, 1, 1});
}

// Elements column-major, beside arrays that are row-major.
Layout elements_column_major(int64_t numel) {
  require(numel >= kWide, "columns of 4096");
  return {{kWide, numel / kWide}, {1, kWide}, {1, 1}};
}

// An N x N matrix whose elements are paired at distance 8.
Layout pairs(int64_t numel) {
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(numel))) / 16 * 16;
  require(side > 0, "pairs at distance 8");
  return {{side, side / 16, 8, 2}, {side, 16, 1, 8}, {1, 1, 1, 2}};
}

}  // namespace

int64_t Layout::numel() const {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

const std::vector<LayoutFamily> &layout_families() {
  static const std::vector<LayoutFamily> all = {
      {"rows 1x64", BlockKind::kInCache, rows_64},
      {"rows 1x4096", BlockKind::kInCache, rows_4096},
      {"tiles 16x16", BlockKind::kInCache, tiles},
      {"tiles 64x64", BlockKind::kInCache, large_tiles},
      {"conv kernels", BlockKind::kInCache, conv_kernels},
      {"strided pairs", BlockKind::kInCache, pairs},
      {"columns 4096x1", BlockKind::kBeyondCache, columns},
      {"conv input channels", BlockKind::kBeyondCache, conv_input_channels},
      {"elements", BlockKind::kElement, elements},
  };
  return all;
}

const std::vector<LayoutFamily> &further_families() {
  static const std::vector<LayoutFamily> all = {
      {"rows 1x16", BlockKind::kInCache, short_rows},
      {"tiles 4x4", BlockKind::kInCache, tiny_tiles},
      {"tiles 16x16, narrow", BlockKind::kInCache, tiles_of_narrow},
      {"tiles 32x256", BlockKind::kInCache, wide_tiles},
      {"conv filter shapes", BlockKind::kBeyondCache, conv_filter_shapes},
      {"elements column-major", BlockKind::kElement, elements_column_major},
  };
  return all;
}

const LayoutFamily &layout_family(const std::string &name) {
  for (const auto *families : {&layout_families(), &further_families()}) {
    for (const LayoutFamily &family : *families) {
      if (family.name == name) return family;
    }
  }
  throw std::invalid_argument("no layout is called " + name);
}

Layout conv_elements(int64_t numel) {
  return conv(numel, {1, 1, 1, 1});
}

Layout matrix(int64_t numel, int64_t block_rows, int64_t block_cols) {
  // Wide rows where there are many of them.
  const int64_t cols = numel >= kWide * kNarrow ? kWide : kNarrow;
  const int64_t rows = numel / cols / block_rows * block_rows;
  require(rows > 0 && cols % block_cols == 0, "a matrix of these blocks");
  return {{rows, cols}, {}, {block_rows, block_cols}};
}

ViewHandle make_view(const Dtype &dtype, const Layout &layout) {
  ViewHandle view;
  check(spk_view_create(dtype.code, static_cast<int32_t>(layout.shape.size()), layout.shape.data(),
                        layout.stride.empty() ? nullptr : layout.stride.data(), 0, view.out()));
  return view;
}

BlockHandle make_block(const Dtype &dtype, const Layout &layout) {
  BlockHandle block;
  check(spk_block_create(make_view(dtype, layout).get(), static_cast<int32_t>(layout.block.size()),
                         layout.block.data(), nullptr, block.out()));
  return block;
}

}  // namespace bench
