#include "core/scope_scores.h"

#include <algorithm>
#include <numeric>

#include "base/dtype.h"

namespace spk {
namespace {

// Scopes of more blocks are streamed.
constexpr int64_t kScopeBlocks = int64_t{1} << 16;
// Scopes of more elements are streamed, unless there are enough of them to share out whole.
constexpr int64_t kScopeElements = int64_t{1} << 18;
constexpr int64_t kManyScopes = 16;
// Scores are kept from pass to pass if blocks have this many elements: then they cost less than
// 1/64 of a sweep of memory, or 1/32 for 16-bit weights. Else they are computed again.
constexpr int64_t kStoredBlock = 64;

// The boxes of positions of all members of a scope, in turn.
class BoxStream : public ScoreStream {
 public:
  BoxStream(const Scope &scope, std::vector<Tiling> tiles)
      : scope_(scope), tiles_(std::move(tiles)) {
    for (const Tiling &tiles_of_member : tiles_) chunks_ += tiles_of_member.count();
  }

  int64_t count() const override { return scope_.numblk_per_scope; }
  int64_t chunks() const override { return chunks_; }

  Chunk chunk(int64_t number) const override {
    size_t member = 0;
    while (number >= tiles_[member].count()) number -= tiles_[member++].count();
    return {member, tiles_[member][number]};
  }

  const int64_t *positions(Scratch &scratch, const Chunk &chunk) const override {
    const ScopeMember &member = scope_.members[chunk.member];
    const Rect &box = chunk.positions;
    int64_t *positions = scratch.take<int64_t>(box.count());
    // Rows along the last axis are consecutive.
    const int last = box.extent.size() - 1;
    Extents rows = box.extent;
    rows[last] = 1;
    const Extents stride = member.shape.row_major();
    const int64_t first = member.first_position + dot(box.low, stride);
    for_each_index(rows, [&](int64_t row, const Extents &index) {
      std::iota(positions + row * box.extent[last], positions + (row + 1) * box.extent[last],
                first + dot(index, stride));
    });
    return positions;
  }

 protected:
  const Scope &scope_;

 private:
  std::vector<Tiling> tiles_;
  int64_t chunks_ = 0;
};

// Scores in memory, by position: doubles of ours, or floats or doubles of the caller's.
class ArrayStream final : public BoxStream {
 public:
  ArrayStream(const Kernels &kernels, const Scope &scope, const ArrayData &scores)
      : BoxStream(scope, tilings(scope)), kernels_(kernels), scores_(scores) {}

  const double *load(Scratch &scratch, const Chunk &chunk) const override {
    const ScopeMember &member = scope_.members[chunk.member];
    const int64_t size = size_of(scores_.dtype);
    double *scores = scratch.take<double>(chunk.positions.count());
    spk::load(kernels_, chunk.positions,
              {scores_.data + member.first_position * size, scores_.dtype,
               member.shape.row_major().times(size)},
              scores);
    return scores;
  }

 private:
  static std::vector<Tiling> tilings(const Scope &scope) {
    std::vector<Tiling> tiles;
    for (const ScopeMember &member : scope.members) {
      tiles.emplace_back(member.shape, member.shape.row_major(), 1, kTileElements);
    }
    return tiles;
  }

  const Kernels &kernels_;
  ArrayData scores_;
};

// Norms computed on the fly.
class NormStream final : public BoxStream {
 public:
  NormStream(const Kernels &kernels, const Scope &scope, std::span<const Grid> grids,
             const Extents &scope_index)
      : BoxStream(scope, tilings(scope, grids)),
        kernels_(kernels),
        grids_(grids),
        scope_index_(scope_index) {}

  const double *load(Scratch &scratch, const Chunk &chunk) const override {
    const Grid &grid = grids_[chunk.member];
    const Rect rect = position_rect(scope_index_, chunk.positions);
    double *scores = scratch.take<double>(rect.count());
    norms_rect(kernels_, scratch, grid, rect, 2.0, scores);
    round_scores(grid, rect.count(), scores);
    return scores;
  }

 private:
  static std::vector<Tiling> tilings(const Scope &scope, std::span<const Grid> grids) {
    std::vector<Tiling> tiles;
    for (size_t m = 0; m < grids.size(); ++m) {
      tiles.push_back(position_tiles(grids[m], scope.members[m]));
    }
    return tiles;
  }

  const Kernels &kernels_;
  std::span<const Grid> grids_;
  Extents scope_index_;
};

}  // namespace

Rect member_rect(const ScopeMember &member, const Rect &scopes) {
  return {concat(scopes.low, Extents(member.shape.size(), 0)), concat(scopes.extent, member.shape)};
}

Tiling position_tiles(const Grid &grid, const ScopeMember &member) {
  const int inner = member.shape.size();
  const Extents step(grid.leaves[0].grid_x.data() + (grid.shape.size() - inner), inner);
  return Tiling(member.shape, step, grid.numel_per_block, kTileElements);
}

Rect position_rect(const Extents &scope_index, const Rect &positions) {
  return {concat(scope_index, positions.low),
          concat(Extents(scope_index.size(), 1), positions.extent)};
}

bool ScopeScores::has_large_blocks() const {
  return std::any_of(grids_.begin(), grids_.end(), [](const Grid &g) { return g.is_large(); });
}

bool ScopeScores::fit_in_memory() const {
  if (has_large_blocks()) return true;
  if (scope_.numblk_per_scope > kScopeBlocks) return false;
  const int64_t size = grids_.empty() ? scope_.numblk_per_scope : scope_.numel_per_scope;
  return size <= kScopeElements || scope_.numscope >= kManyScopes;
}

Tiling ScopeScores::scope_tiles() const {
  if (grids_.empty()) {
    return Tiling(scope_.grid_shape, scope_.grid_shape.row_major(), scope_.numel_per_scope,
                  kTileElements);
  }
  const Extents step(grids_[0].leaves[0].grid_x.data(), scope_.grid_shape.size());
  return Tiling(scope_.grid_shape, step, scope_.numel_per_scope, kTileElements);
}

void ScopeScores::load_scopes(const Kernels &kernels, Scratch &scratch, const Rect &scopes,
                              double *scores) const {
  if (grids_.empty()) {
    const int64_t n = scope_.numblk_per_scope;
    Rect rect{scopes.low, scopes.extent};
    rect.low.push_back(0);
    rect.extent.push_back(n);
    Extents shape = scope_.grid_shape;
    shape.push_back(n);
    const Extents step = shape.row_major().times(size_of(scores_.dtype));
    load(kernels, rect, {scores_.data, scores_.dtype, step}, scores);
    return;
  }
  const Scratch::Frame frame(scratch);
  for (size_t m = 0; m < grids_.size(); ++m) {
    const ScopeMember &member = scope_.members[m];
    const Rect rect = member_rect(member, scopes);
    double *local = scratch.take<double>(rect.count());
    norms_rect(kernels, scratch, grids_[m], rect, 2.0, local);
    round_scores(grids_[m], rect.count(), local);
    put_member(scope_, member, scopes.count(), local, scores);
  }
}

void ScopeScores::load_all(Call &call, double *scores) const {
  for (size_t m = 0; m < grids_.size(); ++m) {
    const Grid &grid = grids_[m];
    const Scratch::Frame frame(call.scratch());
    double *local = call.scratch().take<double>(grid.numblk());
    norms(call, grid, 2.0,
          {reinterpret_cast<std::byte *>(local), SPK_F64,
           grid.shape.row_major().times(sizeof(double))});
    round_scores(grid, grid.numblk(), local);
    put_member(scope_, scope_.members[m], scope_.numscope, local, scores);
  }
}

std::unique_ptr<ScoreStream> ScopeScores::stream(Call &call, const Extents &scope_index) const {
  const int64_t n = scope_.numblk_per_scope;
  if (grids_.empty()) {
    const int64_t first = dot(scope_index, scope_.grid_shape.row_major()) * n;
    const ArrayData scores{scores_.data + first * size_of(scores_.dtype), scores_.dtype};
    return std::make_unique<ArrayStream>(call.kernels(), scope_, scores);
  }
  auto computed = std::make_unique<NormStream>(call.kernels(), scope_, grids_, scope_index);
  if (scope_.numel_per_scope < kStoredBlock * n) return computed;
  double *scores = call.scratch().take<double>(n);
  call.for_each(computed->chunks(), [&](Scratch &scratch, int64_t number) {
    const ScoreStream::Chunk chunk = computed->chunk(number);
    const double *loaded = computed->load(scratch, chunk);
    const int64_t *position = computed->positions(scratch, chunk);
    for (int64_t i = 0; i < chunk.positions.count(); ++i) scores[position[i]] = loaded[i];
  });
  const ArrayData stored{reinterpret_cast<std::byte *>(scores), SPK_F64};
  return std::make_unique<ArrayStream>(call.kernels(), scope_, stored);
}

}  // namespace spk
