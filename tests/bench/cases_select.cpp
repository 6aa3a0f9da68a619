// Exact selection: N:M, per row and column, and over the whole tensor.
#include <memory>
#include <optional>

#include "case.hpp"
#include "layout.hpp"
#include "session.hpp"
#include "skip.hpp"

namespace bench {
namespace {

struct Selection {
  std::string group;
  std::string operation;
  std::string layout;
  std::optional<double> goal;
  bool any_size;
  Layout (*fit)(int64_t numel);
  Dims scope;           // blocks along each grid dimension; 0 = all
  double sparsity;      // of each scope
  bool pruned = false;  // before, so that most scopes have ties
};

struct Subject {
  Subject(const Setting &setting, const Layout &layout)
      : session(setting.execution),
        block(make_block(setting.pool.dtype(), layout)),
        leaf(leaf_buffer(setting.pool, 0, layout.numel())) {}

  Session session;
  BlockHandle block;
  ScopeHandle scope;
  spk_buffer leaf;
  int64_t count = 0;
};

Layout elements(int64_t numel) {
  return matrix(numel, 1, 1);
}
Layout rows_of_2(int64_t numel) {
  return matrix(numel, 1, 2);
}
Layout rows_of_8(int64_t numel) {
  return matrix(numel, 1, 8);
}
Layout tiles(int64_t numel) {
  return matrix(numel, 16, 16);
}
Layout small_tiles(int64_t numel) {
  return matrix(numel, 4, 4);
}
Layout strided_pairs(int64_t numel) {
  return layout_family("strided pairs").fit(numel);
}

void require_divisible(const spk_block *block, const Dims &scope) {
  const int64_t *grid = spk_block_grid_shape(block);
  for (size_t d = 0; d < scope.size(); ++d) {
    if (scope[d] > 0 && grid[d] % scope[d] != 0) throw Skip("too little data for these scopes");
  }
}

Trial make_trial(const Setting &setting, const Selection &selection) {
  const Layout layout = selection.fit(setting.pool.numel());
  auto subject = std::make_shared<Subject>(setting, layout);
  require_divisible(subject->block.get(), selection.scope);
  check(spk_scope_create(subject->block.get(), static_cast<int32_t>(selection.scope.size()),
                         selection.scope.data(), nullptr, subject->scope.out()));
  check(spk_scope_sparsity_to_nnz(subject->scope.get(), selection.sparsity, &subject->count));
  Trial trial = against_sweep(setting, layout.numel() * setting.pool.dtype().size);
  if (selection.pruned) {
    trial.restore = [&pool = setting.pool, weights = setting.pool.pruned(),
                     execution = setting.execution,
                     bytes = trial.bytes] { pool.restore_from(weights, execution, bytes); };
  }
  trial.traffic = 2 * static_cast<double>(trial.bytes);
  trial.operation = [subject] {
    check(spk_scope_keep_top(subject->session.context(), subject->scope.get(), &subject->leaf,
                             nullptr, 1, &subject->count, 1, nullptr, nullptr));
  };
  trial.peak_bytes = [subject] { return subject->session.peak_bytes(); };
  return trial;
}

std::vector<Selection> selections() {
  std::vector<Selection> all;
  for (const int64_t m : {4, 8, 16, 32}) {
    const std::string name = "keep " + std::to_string(m / 2) + ":" + std::to_string(m);
    all.push_back({"N:M", name, "contiguous", 1.25, m == 4, elements, {1, m}, 0.5});
    all.push_back({"N:M", name, "strided axis", 1.6, false, elements, {m, 1}, 0.5});
    all.push_back({"N:M", name, "blocks 1x2", 1.6, false, rows_of_2, {1, m}, 0.5});
    all.push_back({"N:M", name, "blocks 1x8", 1.6, false, rows_of_8, {1, m}, 0.5});
  }
  all.push_back({"N:M", "keep 2:4", "strided pairs", 1.6, false, strided_pairs, {1, 1, 4, 1}, 0.5});
  all.push_back({"N:M", "keep 2:4", "conv channels", {}, false, conv_elements, {1, 4, 1, 1}, 0.5});
  all.push_back({"N:M", "keep 2:4", "2x2 tiles 4x4", {}, false, small_tiles, {2, 2}, 0.5});
  const std::string again = ", pruned before";
  all.push_back({"N:M", "keep 2:4" + again, "contiguous", {}, false, elements, {1, 4}, 0.5, true});
  all.push_back(
      {"N:M", "keep 2:4" + again, "strided axis", {}, false, elements, {4, 1}, 0.5, true});
  all.push_back({"N:M", "keep 2:4" + again, "blocks 1x2", {}, false, rows_of_2, {1, 4}, 0.5, true});
  all.push_back(
      {"N:M", "keep 8:16" + again, "blocks 1x2", {}, false, rows_of_2, {1, 16}, 0.5, true});
  all.push_back({"top-k", "keep_top 50 %", "per row of 4096", 4, false, elements, {1, 4096}, 0.5});
  all.push_back({"top-k", "keep_top 50 %", "per row of 64", {}, false, elements, {1, 64}, 0.5});
  all.push_back({"top-k", "keep_top 50 %", "per column of 64", {}, false, elements, {64, 1}, 0.5});
  all.push_back({"top-k", "keep_top 50 %", "per row of 256", {}, false, elements, {1, 256}, 0.5});
  all.push_back(
      {"top-k", "keep_top 50 %", "per column of 256", {}, false, elements, {256, 1}, 0.5});
  all.push_back(
      {"top-k", "keep_top 50 %", "per column of 4096", {}, false, elements, {4096, 1}, 0.5});
  all.push_back({"top-k", "keep_top 50 %", "all elements", 5, true, elements, {0, 0}, 0.5});
  all.push_back({"top-k", "keep_top 10 %", "all elements", 5, false, elements, {0, 0}, 0.9});
  all.push_back({"top-k", "keep_top 50 %", "all tiles 16x16", 1.5, true, tiles, {0, 0}, 0.5});
  all.push_back({"top-k", "keep_top 10 %", "all tiles 16x16", 1.5, false, tiles, {0, 0}, 0.9});
  return all;
}

}  // namespace

std::vector<Case> select_cases() {
  std::vector<Case> cases;
  for (const Selection &selection : selections()) {
    cases.push_back({selection.group, selection.operation, selection.layout, Figure::kRatio,
                     selection.goal, selection.any_size, [selection](const Setting &setting) {
                       return make_trial(setting, selection);
                     }});
  }
  return cases;
}

}  // namespace bench
