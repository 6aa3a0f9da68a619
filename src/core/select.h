// Exact selection: which scores are the k largest. Equal scores are ranked by
// position, NaN above +inf; nothing is sorted.
#pragma once

#include "core/call.h"
#include "core/grid.h"

namespace spk {

// Scores as integers of the same order (Kernels::rank_keys); NaN highest, -0 as +0. And back.
const uint64_t *rank_keys(const Kernels &kernels, const double *scores, int64_t n,
                          Scratch &scratch);
double score_of(uint64_t key);

// The k-th largest key among some scores, how many are above it and how many equal to it.
struct Cut {
  uint64_t key = 0;
  int64_t above = 0;
  int64_t equal = 0;

  // Of the `equal`, how many belong to the k largest.
  int64_t quota(int64_t k) const { return k - above; }
  bool splits_ties(int64_t k) const { return quota(k) < equal; }
};

struct Selected {
  int64_t kept = 0;
  int64_t ties = 0;  // see spk_report
};

// Keys of one scope that lie in memory: its k largest into keep bytes.
Selected select_top(const uint64_t *keys, int64_t n, int64_t k, int32_t ties, Scratch &scratch,
                    uint8_t *keep);
// The k-th largest and, if `next` is not NULL, the (k+1)-th.
double kth_largest(const uint64_t *keys, int64_t n, int64_t k, Scratch &scratch, double *next);

// Scores of one scope that are too many for that: they come in chunks, boxes of positions of one
// member, each as often as asked for.
class ScoreStream {
 public:
  struct Chunk {
    size_t member;
    Rect positions;
  };

  virtual ~ScoreStream() = default;
  virtual int64_t count() const = 0;
  virtual int64_t chunks() const = 0;
  virtual Chunk chunk(int64_t number) const = 0;
  // The scores of a chunk, or of any other box of a member's positions, row-major, in `scratch`.
  virtual const double *load(Scratch &scratch, const Chunk &chunk) const = 0;
  // The same as keys.
  const uint64_t *keys(const Kernels &kernels, Scratch &scratch, const Chunk &chunk) const {
    return rank_keys(kernels, load(scratch, chunk), chunk.positions.count(), scratch);
  }
  // The positions in the scope of a chunk's entries, in `scratch`.
  virtual const int64_t *positions(Scratch &scratch, const Chunk &chunk) const = 0;
};

// The k largest of a stream: all with a key above `key`, and those equal to it before `position`.
struct StreamCut {
  uint64_t key = 0;
  int64_t position = 0;
  Selected selected;
};

StreamCut select_top(Call &call, const ScoreStream &stream, int64_t k, int32_t ties);
double kth_largest(Call &call, const ScoreStream &stream, int64_t k, double *next);

}  // namespace spk
