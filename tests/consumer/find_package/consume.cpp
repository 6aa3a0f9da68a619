// A C++17 consumer: handles in smart pointers, a callback from a lambda, exceptions from statuses.
//
// SPDX-License-Identifier: Apache-2.0
#include <sparsekit/sparsekit.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace {

void check(spk_status status) {
  if (status == SPK_OK) return;
  char message[SPK_MESSAGE_SIZE];
  spk_last_error_copy(message, sizeof message, nullptr);
  throw std::runtime_error(message);
}

using View = std::unique_ptr<spk_view, decltype(&spk_view_release)>;
using Block = std::unique_ptr<spk_block, decltype(&spk_block_release)>;

View make_view(const char *text) {
  spk_view *view = nullptr;
  check(spk_view_parse(SPK_F64, text, &view));
  return View(view, spk_view_release);
}

Block make_rows(const View &view) {
  const int64_t row[2] = {1, 0};
  spk_block *block = nullptr;
  check(spk_block_create(view.get(), 2, row, "rows", &block));
  return Block(block, spk_block_release);
}

std::vector<double> row_sums(const Block &rows, const spk_buffer &weights) {
  std::vector<double> sums(static_cast<size_t>(spk_block_numblk(rows.get())));
  const spk_buffer out = {sums.data(), static_cast<int64_t>(sums.size()), SPK_F64,
                          SPK_LAYOUT_CONTIGUOUS, nullptr};
  const spk_reduce_fn sum = [](void *, int64_t, const double *elements, int64_t count,
                               double *result) -> int32_t {
    *result = std::accumulate(elements, elements + count, 0.0);
    return 0;
  };
  check(spk_block_reduce(nullptr, rows.get(), &weights, 1, sum, nullptr, &out));
  return sums;
}

void consume() {
  std::vector<double> data = {1, 2, 3, 4, 5, 6};
  const spk_buffer weights = {data.data(), 6, SPK_F64, SPK_LAYOUT_VIEW, nullptr};
  const View view = make_view("(2,3):(1,2)");  // column-major: rows 1 3 5 and 2 4 6
  const Block rows = make_rows(view);
  check(spk_prune_unstructured(nullptr, view.get(), &weights, nullptr, 0.5, nullptr));
  if (row_sums(rows, weights) != std::vector<double>{5, 10}) throw std::runtime_error("wrong sums");
}

}  // namespace

int main() {
  try {
    consume();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return spk_live_handles() == 0 ? 0 : 2;
}
