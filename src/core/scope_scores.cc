#include "core/scope_scores.h"

#include <algorithm>

#include "base/dtype.h"
#include "core/nest.h"

namespace spk {
namespace {

// Scopes of more blocks are streamed.
constexpr int64_t kScopeBlocks = int64_t{1} << 16;
// Scopes of more elements are streamed, unless there are enough of them to share out whole.
constexpr int64_t kScopeElements = int64_t{1} << 18;
constexpr int64_t kManyScopes = 16;
// Keys are kept from pass to pass if blocks have this many elements: then they cost less than 1/64
// of a sweep of memory, or 1/32 for 16-bit weights. Else they are computed again.
constexpr int64_t kStoredBlock = 64;
// Scores of the scopes of a box take about this many bytes at most, if there is more than one.
constexpr int64_t kBoxBytes = int64_t{1} << 20;
// Bytes that a tile spans along its innermost dimension (see Tiling).
constexpr int64_t kTileRow = 256;
constexpr int64_t kLine = 64;

bool are_keys_stored(const Scope &scope) {
  return scope.numel_per_scope >= kStoredBlock * scope.numblk_per_scope;
}

// A part of a box, about one in `rate` of its entries.
Rect part_of(const Rect &box, int64_t rate, uint64_t random) {
  Rect part = box;
  while (rate > 1) {
    const auto *longest = std::max_element(part.extent.begin(), part.extent.end());
    const auto d = static_cast<int>(longest - part.extent.begin());
    const int64_t extent = part.extent[d];
    if (extent == 1) break;
    part.extent[d] = std::max<int64_t>(extent / rate, 1);
    part.low[d] += below(random, extent - part.extent[d] + 1);
    rate = (rate * part.extent[d] + extent - 1) / extent;  // rather too few than too many
    random = mixed(random);
  }
  return part;
}

}  // namespace

Rect member_rect(const ScopeMember &member, const Rect &scopes) {
  return {concat(scopes.low, Extents(member.shape.size(), 0)), concat(scopes.extent, member.shape)};
}

Visits visits_of(const Scope &scope) {
  const bool are_elements = scope.numel_per_scope == scope.numblk_per_scope;
  const bool once = scope.numscope == 1 && (are_elements || are_keys_stored(scope));
  return once ? Visits::kOnce : Visits::kTwice;
}

Tiling position_tiles(const Grid &grid, const ScopeMember &member) {
  return Tiling(member.shape, last_of(grid.leaves[0].grid_x, member.shape.size()),
                grid.numel_per_block, grid.tile_elements);
}

Rect position_rect(const Extents &scope_index, const Rect &positions) {
  return {concat(scope_index, positions.low),
          concat(Extents(scope_index.size(), 1), positions.extent)};
}

bool is_run(const Extents &extent, const Extents &step, int64_t size) {
  int64_t run = size;
  for (int d = extent.size() - 1; d >= 0; --d) {
    if (extent[d] == 1) continue;
    if (step[d] != run) return false;
    run *= extent[d];
  }
  return true;
}

// --- scopes in memory -------------------------------------------------------------------------

ScopeScores::ScopeScores(const Scope &scope, const Grids &grids) : scope_(scope), grids_(grids) {
  form_ = are_elements() ? KeyForm::of_elements(grids_[0].leaves[0].dtype)
                         : KeyForm::of_scores(scope.score_dtype);
}

ScopeScores::ScopeScores(const Scope &scope, const ArrayData &scores)
    : scope_(scope), scores_(scores), form_(KeyForm::of_scores(scope.score_dtype)) {}

// Are the scores the magnitudes of elements of one dtype? Those of doubles may have to be rounded.
bool ScopeScores::are_elements() const {
  const int32_t dtype = grids_[0].leaves[0].dtype;
  return (dtype != SPK_F64 || scope_.score_dtype == SPK_F64) &&
         std::all_of(grids_.begin(), grids_.end(), [&](const Grid &grid) {
           return grid.numel_per_block == 1 && grid.leaves[0].dtype == dtype;
         });
}

// Few blocks hold many elements: their scores fit in memory, and are best computed all at once.
bool ScopeScores::has_deep_blocks() const {
  if (grids_.empty()) return false;
  return std::any_of(grids_.begin(), grids_.end(), [](const Grid &g) { return g.is_large(); }) ||
         std::all_of(grids_.begin(), grids_.end(), [](const Grid &g) { return g.is_deep(); });
}

bool ScopeScores::fit_in_memory() const {
  if (has_deep_blocks()) return true;
  if (scope_.numblk_per_scope > kScopeBlocks) return false;
  const int64_t size = grids_.empty() ? scope_.numblk_per_scope : scope_.numel_per_scope;
  return size <= kScopeElements || scope_.numscope >= kManyScopes;
}

Tiling ScopeScores::scope_tiles() const {
  if (grids_.empty()) {
    return Tiling(scope_.grid_shape, scope_.grid_shape.row_major(), scope_.numel_per_scope,
                  kTileElements);
  }
  const GridLeaf &leaf = grids_[0].leaves[0];
  const Extents step(leaf.grid_x.data(), scope_.grid_shape.size());
  // Where scopes interleave, a tile has as many as fill a row; but not of very long ones: then
  // steps are told longer than they are.
  const int64_t most = std::max<int64_t>(
      kBoxBytes / (scope_.numblk_per_scope * static_cast<int64_t>(sizeof(double))), 1);
  const int64_t longer = std::max<int64_t>(kTileRow / (size_of(leaf.dtype) * most), 1);
  return Tiling(scope_.grid_shape, step.times(longer), scope_.numel_per_scope, kTileElements);
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
  const bool is_joint = grids_.size() > 1;  // else positions are blocks
  for (size_t m = 0; m < grids_.size(); ++m) {
    const Grid &grid = grids_[m];
    const Scratch::Frame frame(call.scratch());
    double *local = is_joint ? call.scratch().take<double>(grid.numblk()) : scores;
    norms(call, grid, 2.0,
          {reinterpret_cast<std::byte *>(local), SPK_F64,
           grid.shape.row_major().times(sizeof(double))});
    round_scores(grid, grid.numblk(), local);
    if (is_joint) put_member(scope_, scope_.members[m], scope_.numscope, local, scores);
  }
}

BoxWords ScopeScores::words_of_scores(const Kernels &kernels, Scratch &scratch, const Rect &scopes,
                                      const double *scores) const {
  const int64_t n = scope_.numblk_per_scope;
  const int64_t count = scopes.count() * n;
  auto *keys = scratch.take<std::byte>(count * form_.bytes());
  form_.kernels(kernels).score_keys(scores, count, keys);
  return {kernels, form_, n, keys, n * form_.bytes()};
}

BoxWords ScopeScores::words_of_elements(const Kernels &kernels, Scratch &scratch,
                                        const Rect &scopes) const {
  const int64_t n = scope_.numblk_per_scope;
  const int64_t size = form_.bytes();
  const GridLeaf &first = grids_[0].leaves[0];
  const ScopeMember &member = scope_.members[0];
  if (grids_.size() == 1 &&
      is_run(member.shape, last_of(first.grid_x, member.shape.size()), size)) {
    return {kernels, form_, n, first.x + dot(scopes.low, first.grid_x), first};
  }
  // An odd number of lines apart, because neighbouring scopes are often written in turn.
  const int64_t pitch = (n * size / kLine | 1) * kLine + 2 * kLine;
  auto *words = scratch.take<std::byte>(scopes.count() * pitch);
  for (size_t m = 0; m < grids_.size(); ++m) {
    const ScopeMember &part = scope_.members[m];
    const Rect rect = member_rect(part, scopes);
    const Extents &step = grids_[m].leaves[0].grid_x;
    read_box(rect.extent, size, grids_[m].leaves[0].x + dot(rect.low, step), step,
             words + part.first_position * size, steps_of_copies(part, scopes, pitch));
  }
  return {kernels, form_, n, words, pitch};
}

Extents ScopeScores::steps_of_copies(const ScopeMember &member, const Rect &scopes,
                                     int64_t pitch) const {
  return concat(scopes.extent.row_major().times(pitch),
                member.shape.row_major().times(form_.bytes()));
}

void ScopeScores::put_elements(const Rect &scopes, const BoxWords &words) const {
  const int64_t size = form_.bytes();
  for (size_t m = 0; m < grids_.size(); ++m) {
    const ScopeMember &part = scope_.members[m];
    const Rect rect = member_rect(part, scopes);
    const GridLeaf &leaf = grids_[m].leaves[0];
    copy_box(rect.extent, size, words.own() + part.first_position * size,
             steps_of_copies(part, scopes, words.pitch()), leaf.y + dot(rect.low, leaf.grid_y),
             leaf.grid_y);
  }
}

const double *ScopeScores::load_positions(const Kernels &kernels, Scratch &scratch, size_t member,
                                          const Extents &scope_index, const Rect &positions) const {
  double *scores = scratch.take<double>(positions.count());
  if (grids_.empty()) {
    const ScopeMember &part = scope_.members[member];
    const int64_t scope = dot(scope_index, scope_.grid_shape.row_major());
    const int64_t first = scope * scope_.numblk_per_scope + part.first_position;
    const int64_t size = size_of(scores_.dtype);
    load(kernels, positions,
         {scores_.data + first * size, scores_.dtype, part.shape.row_major().times(size)}, scores);
    return scores;
  }
  const Grid &grid = grids_[member];
  const Rect rect = position_rect(scope_index, positions);
  norms_rect(kernels, scratch, grid, rect, 2.0, scores);
  round_scores(grid, rect.count(), scores);
  return scores;
}

KeyStream ScopeScores::stream(Call &call, const Extents &scope_index) const {
  KeyStream stream(call, *this, scope_index);
  if (!grids_.empty() && are_keys_stored(scope_)) stream.store(call);
  return stream;
}

// --- streams ----------------------------------------------------------------------------------

KeyStream::KeyStream(Call &call, const ScopeScores &scores, const Extents &scope_index)
    : scores_(scores),
      kernels_(call.kernels()),
      scope_index_(scope_index),
      form_(scores.form_),
      tiles_(call.memory()) {
  tiles_.reserve(scores.scope_.members.size());
  tile_by(scores.grids_);
}

void KeyStream::tile_by(std::span<const Grid> grids) {
  tiles_.clear();
  chunks_ = 0;
  in_order_ = true;
  for (size_t m = 0; m < scores_.scope_.members.size(); ++m) {
    const ScopeMember &member = scores_.scope_.members[m];
    const Tiling tiles = grids.empty()
                             ? Tiling(member.shape, member.shape.row_major(), 1, kTileElements)
                             : position_tiles(grids[m], member);
    tiles_.push_back(tiles);
    chunks_ += tiles.count();
    // All tiles are like the first.
    in_order_ = in_order_ && is_consecutive(tiles[0], member.shape);
  }
}

int64_t KeyStream::data_bytes() const {
  if (scores_.grids_.empty()) {
    return scores_.scope_.numscope * count() * size_of(scores_.scores_.dtype);
  }
  int64_t bytes = 0;
  for (const Grid &grid : scores_.grids_) bytes += grid.bytes();
  return bytes;
}

void KeyStream::store(Call &call) {
  const int64_t size = form_.bytes();
  auto *stored = call.scratch().take<std::byte>(count() * size);
  call.for_each(chunks_, [&](Scratch &scratch, int64_t number) {
    const Chunk box = chunk(number);
    const auto *keys = static_cast<const std::byte *>(words(scratch, box).words().data);
    for_each_run(box, [&](int64_t first, int64_t n, int64_t position) {
      std::copy_n(keys + first * size, n * size, stored + position * size);
    });
  });
  stored_ = stored;
  tile_by({});
}

KeyStream::Chunk KeyStream::chunk(int64_t number) const {
  size_t member = 0;
  while (number >= tiles_[member].count()) number -= tiles_[member++].count();
  return {member, tiles_[member][number]};
}

GridArray KeyStream::place_of(size_t member) const {
  const ScopeMember &part = scores_.scope_.members[member];
  if (stored_) {
    const int64_t size = form_.bytes();
    return {const_cast<std::byte *>(stored_) + part.first_position * size, form_.dtype,
            part.shape.row_major().times(size)};
  }
  const GridLeaf &leaf = scores_.grids_[member].leaves[0];
  return {const_cast<std::byte *>(leaf.x) + dot(scope_index_, leaf.grid_x), form_.dtype,
          last_of(leaf.grid_x, part.shape.size())};
}

ScopeWords KeyStream::words(Scratch &scratch, const Chunk &chunk) const {
  const int64_t n = chunk.positions.count();
  const int64_t size = form_.bytes();
  if (!lies_in_memory()) {
    const double *scores =
        scores_.load_positions(kernels_, scratch, chunk.member, scope_index_, chunk.positions);
    auto *keys = scratch.take<std::byte>(n * size);
    form_.kernels(kernels_).score_keys(scores, n, keys);
    return {kernels_, form_, keys, n};
  }
  const GridArray place = place_of(chunk.member);
  const std::byte *from = place.data + dot(chunk.positions.low, place.step);
  const Extents &extent = chunk.positions.extent;
  if (is_run(extent, place.step, size)) return {kernels_, form_, from, n};
  auto *words = scratch.take<std::byte>(n * size);
  const Extents local = extent.row_major().times(size);
  read_box(extent, size, from, place.step, words, local);
  return {kernels_, form_, words, n};
}

int64_t KeyStream::sample(Scratch &scratch, int64_t number, int64_t rate, int64_t room,
                          std::byte *out) const {
  const int64_t size = form_.bytes();
  const Chunk box = chunk(number);
  const auto seed = static_cast<uint64_t>(number);
  const int64_t n = box.positions.count();
  const bool is_there =
      lies_in_memory() && is_run(box.positions.extent, place_of(box.member).step, size);
  if (!is_there) {
    const Chunk part{box.member, part_of(box.positions, rate, mixed(seed))};
    const Words some = words(scratch, part).words();
    const int64_t taken = std::min(some.count, room);
    std::copy_n(static_cast<const std::byte *>(some.data), taken * size, out);
    return taken;
  }
  const void *from = words(scratch, box).words().data;
  return sample_lines(static_cast<const std::byte *>(from), n, size, seed, rate, room, out);
}

int64_t KeyStream::first_position(const Chunk &chunk) const {
  const ScopeMember &member = scores_.scope_.members[chunk.member];
  return member.first_position + dot(chunk.positions.low, member.shape.row_major());
}

void KeyStream::keep(const Chunk &chunk, const ScopeWords &words, const Selection &selection,
                     uint8_t *keep) const {
  if (selection.position == Selection::kNoPosition) return words.keep(selection, 0, keep);
  for_each_run(chunk, [&](int64_t first, int64_t n, int64_t position) {
    words.part(first, n).keep(selection, position, keep + first);
  });
}

// Only the first dimension that is longer than 1 may be cut.
bool KeyStream::is_consecutive(const Rect &positions, const Extents &shape) {
  bool whole = false;
  for (int d = 0; d < shape.size(); ++d) {
    if (whole && positions.extent[d] != shape[d]) return false;
    whole = whole || positions.extent[d] > 1;
  }
  return true;
}

}  // namespace spk
