// The SIMD kernels, as one table per instruction set. Every kernel gives the same bits on every
// instruction set: the order of a sum is fixed by virtual lanes, never by the width of a register,
// and no result depends on fused multiply-add.
//
// Kernels know rows of elements, not views: a row is `n` elements `step` apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/philox.h"
#include "kernels/select_many.h"

namespace spk {

enum DtypeIndex { kF32, kF64, kF16, kBf16, kDtypes };

// What a reduction accumulates, per block, in double or as if it did.
enum Reduction {
  kCount,            // of elements with !(|x| <= eps), so NaN counts
  kSum,              // of |x|
  kSumSquares,       // of x^2, for f32, f16 and bf16, whose products are exact (f64: roughly)
  kMaxMagnitude,     // NaN wins
  kMinMagnitude,     // NaN wins
  kMin,              // NaN wins, zeros become +0
  kMax,              // NaN wins, zeros become +0
  kSumSigned,        // of x
  kSumExact,         // of |x|, compensated: for f64
  kSumSquaresExact,  // of (x * scale)^2, compensated: for f64
  kReductions
};

inline constexpr bool is_compensated(Reduction r) {
  return r >= kSumExact;
}

// Accumulators start here: adding nothing to it changes nothing.
double identity_of(Reduction reduction);

// Sums along the rows of a block are kept in this many partial sums, the virtual lanes.
inline constexpr int64_t kLanes = 8;

// Blocks side by side: how many, bytes between neighbours, and doubles between their results.
struct BlockRow {
  int64_t count;
  int64_t step;
  int64_t out;
};

// Across, rows are added a few at a time to many neighbours: memory is read in long runs, and rows a
// power of two apart do not drive each other out of the cache.
inline constexpr int64_t kRowsAtOnce = 8;

// What lies in memory without gaps is a stream. This marks one in arguments, and is how many bytes
// ahead streams are asked for at least: 4096 + 512, measured. Nearer, main memory does not answer
// in time on some processors; further, some lose by it and others gain (prefetch.h).
inline constexpr int64_t kFar = 4608;
// A distance between rows or boxes is not taken for a stream's: one that is the same is made a line
// more.
constexpr int64_t not_in_stream(int64_t bytes) {
  return bytes == kFar ? kFar + 64 : bytes;
}

// Reduces the blocks of a two-dimensional box. Results are written, not added to.
struct ReduceArgs {
  const std::byte *x;  // where the first block begins
  const int64_t *row;  // bytes from there to each row of the block, in the order of the sum
  int64_t rows;
  // Along: elements of a row, and from one to the next. Across: rows are elements, n of which (fewer
  // than kLanes) lie together, followed by those of the next block.
  int64_t n, step;
  BlockRow inner;  // out is 1
  BlockRow outer;
  double *sum;
  double *error;        // compensation, laid out as sum; only where is_compensated
  const double *scale;  // kSumSquaresExact: one a block, laid out as sum; NULL: 1
  double eps;           // kCount
  bool roots;           // kSumSquares: results are the roots of the sums
  int64_t ahead;        // bytes to a box that is reduced soon after; 0: none is known
  int64_t soon;         // kFar in a stream, else bytes to the next box; 0: none is known
  // Results rounded to floats, laid out as sum, which is then not written; or NULL. Not of what is
  // compensated, nor across more than kRowsAtOnce rows.
  float *floats;
  bool past_caches;  // more floats than caches hold
  bool from_memory;  // blocks are of more data than caches hold
};

// y = factor * x; factor 1 copies bits, factor 0 writes +0. The product with a double is a double,
// rounded to the dtype; with `exact_product` it is rounded once, as if the double had been exact.
struct ScaleArgs {
  const std::byte *x;
  std::byte *y;
  int64_t n;
  int64_t x_step, y_step;  // elements
  int64_t rows;
  int64_t x_row, y_row;  // bytes
  int64_t groups;        // of rows
  int64_t x_group, y_group;
  const void *factor;  // doubles, floats (scale_by_floats), or bytes of a mask
  int64_t factor_step, factor_row, factor_group;  // elements; a step of 0: one factor for the row
  bool exact_product;
  bool prunes;       // bytes of a mask that are not 0 say what goes, rather than what stays
  int64_t soon;      // kFar in a stream, else bytes to what is read soon after; 0: nothing is known
  bool past_caches;  // more data than caches hold, and none of it in them now
  bool reads_on;     // what is read soon is so, whether or not what is here is
};

// Small blocks are thresholded while they are near: across rows those of up to so many elements, a
// multiple of kLanes of them side by side; along rows those of up to so many elements, or of up to
// so many rows of 2 or 4, at least kLanes of them one after the other.
inline constexpr int64_t kMostRowsAcross = 8;
// The same where caches do not hold rows that were asked for (Kernels::holds_rows_ahead): of more,
// lines would drive each other out.
inline constexpr int64_t kFewRowsAcross = 4;
inline constexpr int64_t kMostAlong = 31;
inline constexpr int64_t kMostTinyRows = 8;
constexpr bool is_tiny(int64_t row) {
  return row == 2 || row == 4;
}
// 3x3 kernels of convolutions are so common that loops for just so many elements pay.
inline constexpr int64_t kKernel = 9;
// Blocks of one row of at least and at most so many elements are thresholded in one go: read while
// others are written, or shortly before.
inline constexpr int64_t kLeastInRow = 32;
inline constexpr int64_t kMostInOneGo = int64_t{1} << 16;
// Tiles of up to so many elements, with rows of kLanes, 2 * kLanes, or kLeastInRow elements to so
// many bytes, are read while others are written.
struct TileSize {
  int64_t numel, row_bytes;
};
inline constexpr TileSize kMostInTile{int64_t{1} << 12, 512};
// The same of tiles from memory that are read, then written, while caches hold some that were asked
// for (Kernels::holds_rows_ahead), and the fewest bytes of their rows. Others lose. Measured.
inline constexpr TileSize kMostInTileAhead{kMostInOneGo, 2048};
inline constexpr int64_t kLeastInTileRowAhead = 32;

// Thresholding of such blocks.
struct ThresholdArgs {
  ReduceArgs blocks;       // of results, only how they are laid out
  int64_t to_y;            // bytes from where an element is read to where it is written
  const void *threshold;   // floats or doubles, one a block, laid out as results
  double threshold_scale;  // of soft thresholding
  double eps;              // of soft thresholding
};
using ThresholdKernel = int64_t (*)(const ThresholdArgs &args);

// Blocks of one element, contiguous, and another array with an entry for each, or one for all.
struct ElementArgs {
  const std::byte *x;
  std::byte *y;
  std::byte *others;
  int64_t n;
  bool one_for_all;
};

// Sums over one block for the conditioned proximal operator (core/conditioned.cc), of weights b and
// radii r; compensated, kLanes virtual lanes.
struct ConditionedSums {
  double weights;    // sum b^2
  double products;   // sum a^2 for a = b / r, scaled
  double quotients;  // sum b^2 r
  double cubes;      // sum a^2 / r
};
struct SecularSums {
  double square, square_error;  // sum q^2 for q = b / (r + nu), as an unevaluated sum
  double slope;                 // sum q^2 / (r + nu)
};

// A box of elements in memory, and the same box in a panel of floats or doubles (core/panel.h), in
// rows of `n`.
struct BoxArgs {
  std::byte *x;        // element 0 of row 0
  void *panel;         // the same element
  int64_t n;           // elements in a row
  int64_t step;        // elements between neighbours of a row
  int64_t panel_step;  // entries between them
  int64_t rows;
  int64_t row_step;        // bytes between rows
  int64_t panel_row_step;  // entries between rows
};

// Memory that is read soon: rows of `bytes`.
struct ReadSoon {
  const std::byte *first;
  int64_t rows;
  int64_t row_step;  // bytes
  int64_t bytes;
};

// What became of a block whose conditioned proximal operator was asked for.
enum PanelOutcome : uint8_t {
  kPanelUnchanged,
  kPanelDead,
  kPanelShrunk,
  kPanelOutOfSteps,  // shrunk, but not converged
  kPanelUnsolved,    // left as it was: NaN, or too extreme for plain doubles
};

// So many blocks of a panel are solved at once: as many whole groups of lanes as have about 2048
// elements. `rows` as in ConditionedPanel.
inline constexpr int64_t kMostPanelBatch = 4 * kLanes;
constexpr int64_t panel_batch(int64_t rows, bool across) {
  const int64_t numel_per_block = across ? rows : rows * kLanes;
  const int64_t groups = 2048 / numel_per_block / kLanes;
  const int64_t most = kMostPanelBatch / kLanes;
  return kLanes * (groups < 1 ? 1 : groups < most ? groups : most);
}

// Many blocks for the conditioned proximal operator, in a panel of weights and one of conditioners.
// A block is `rows` rows of kLanes entries, or a lane of each of `rows` rows (`across`).
struct ConditionedPanel {
  void *w;  // becomes the result
  const void *h;
  int64_t blocks;
  int64_t rows;
  int64_t row_step;         // entries between rows: kLanes, unless across
  int64_t block_step;       // entries between blocks; 1 if across
  bool across;              // blocks are then padded to a multiple of kLanes
  bool to_odd;              // results are floats that will be rounded once more, to fewer bits
  double *shares;           // of floats: room for those of panel_batch() blocks; else NULL
  const double *threshold;  // [blocks]
  double tolerance;         // relative, of the root
  int max_iter;
  PanelOutcome *outcome;  // [blocks]
  ReadSoon soon[2];       // what the next panel's weights and conditioners are gathered from
};

// A row of blocks of one element in a metric.
struct ConditionedElementsArgs {
  const std::byte *x;
  std::byte *y;
  const std::byte *h;
  int64_t n;
  int64_t x_step, y_step, h_step;  // elements
  const double *threshold;
  int64_t threshold_step;  // 0: one for the row
};

// Scopes of at most this many blocks are ranked in registers.
inline constexpr int64_t kFewBlocks = 32;

// The top blocks of many scopes of `n` <= kFewBlocks blocks each.
struct RankFewArgs {
  const double *scores;  // [scopes][n]
  int64_t scopes;
  int64_t n;
  const int64_t *counts;  // [scopes]: how many to keep, in [0, n]
  bool keep_ties;         // keep all that are tied with the last kept one
  uint8_t *keep;          // [scopes][n]
  int64_t *kept;          // added to
  int64_t *ties;          // added to; see spk_report
};

// Rows of words, of which column c becomes row c of y. Steps are bytes, a multiple of a word's.
struct TransposeArgs {
  const std::byte *x;
  std::byte *y;
  int64_t rows, columns;  // of x
  int64_t x_row, y_row;   // between rows
};

// Scopes of more elements than that, up to so many, are not sorted but cut by halving intervals of
// keys.
inline constexpr int64_t kHalvedBlocks = 256;

// Scopes in short rows have no more elements.
inline constexpr int64_t kMostInShortRows = 16;

// The top elements of many scopes of `n` elements each: the others become +0. Keys are the bits of
// magnitudes.
struct SelectFewArgs {
  const std::byte *x;   // position 0 of the first scope, read
  std::byte *y;         // the same, written; x, or memory of its own
  int64_t scopes;       // side by side, or one after the other
  int64_t n;            // elements of a scope
  const int64_t *x_at;  // [n]: bytes from position 0 to each; only of scopes side by side
  const int64_t *y_at;
  const int64_t *counts;  // how many each scope keeps, in [0, n]
  int64_t count_step;     // between the counts of two scopes; 0: one for all
  int64_t nan_key;        // of every NaN
  // The last key that stays and the first that goes must be this far apart, else they are tied.
  // Above 1 ties are counted, not settled: some scopes have then kept some of them.
  int64_t margin;
  bool keep_ties;   // keep all that are tied with the last kept one
  int64_t groups;   // of scopes side by side; only of short rows
  int64_t x_group;  // bytes between them
  int64_t y_group;
  int64_t *ties;    // added to; see spk_report
  int64_t *beyond;  // added to: kept because of keep_ties
};
using SelectFewKernel = void (*)(const SelectFewArgs &args);

// Rows of blocks are keyed in groups of this many.
inline constexpr int64_t kKeyGroup = 8;
// Keys of blocks this far apart order as the scores of the blocks, which then differ. In units of
// 2^-24 (f64: 2^-53): sums whose roots, rounded to float, agree are at most 4 apart, and a sum of
// up to kKeyedElements squares is at most 16 off. Scores of f64 are good to two units in the last
// place, which is a distance of 16.
inline constexpr int64_t kKeyMargin = 64;
inline constexpr int64_t kKeyedElements = 16;

// Blocks of few elements as int32 keys (int64 for f64): from x into keys; and masking by keys, from
// x to y: a block whose key is 0 becomes +0.
struct BlockKeysArgs {
  const std::byte *x;  // element 0 of the first block, read
  std::byte *y;        // the same, written; only for masking
  int64_t blocks;      // of a row: a multiple of kKeyGroup, but for scopes in lanes
  int64_t rows;
  int64_t x_row, y_row;  // bytes
  int64_t key_row;       // keys
  int64_t numel;         // elements of a block
  int64_t per_scope;     // blocks of a scope; only of scopes in lanes
  const int64_t *x_at;   // [numel]: bytes from element 0 to each; only of blocks side by side
  const int64_t *y_at;
  void *keys;
  int64_t *ties;  // NULL, or added to: blocks tied at norm 0, which then leave no doubt
};

// No register is larger. Scopes are taken one a lane where the squares of a scope fill whole
// registers and a row has a register of scopes: of the largest, so that all instruction sets choose
// alike.
inline constexpr int64_t kMostRegisterBytes = 64;

// Keeps k blocks of each scope, 0 < k < all. Returns false if kKeyMargin leaves a doubt: of registers
// of blocks with one all stay, registers of scopes with one are not written, and what follows the
// first may not be, either.
using KeepBlocks = bool (*)(const BlockKeysArgs &args, int64_t k);

// Keys that are numbers and nothing else: 0 for what is left out, this for what is kept in any case.
template <typename K>
inline constexpr K kKeptKey = static_cast<K>(~K{0} - 1);

// Elements that compete, by magnitude, as keys from 1 on.
struct MaskedKeysArgs {
  const void *words;    // as they lie in memory
  const uint8_t *mask;  // which are active
  int64_t n;
  KeyRule rule;  // of magnitudes
  void *keys;
};

// Inactive elements by Philox words of (counter, first + i), small ones first.
struct RandomKeysArgs {
  PhiloxKey key;
  uint32_t counter[3];
  uint32_t first;
  int64_t n;
  const uint8_t *mask;  // NULL: all are inactive
  uint64_t *keys;
};

inline constexpr double kAdamEps = 1e-8;

// Roots of plain sums of squares are right between this and its reciprocal; those of zeros are
// not.
inline constexpr double kLeastExactRoot = 0x1p-450;
constexpr bool is_exact_root(double root) {
  return root >= kLeastExactRoot && root <= 1 / kLeastExactRoot;
}

struct Kernels {
  // Sums run along the rows of a block.
  void (*reduce_along[kDtypes][kReductions])(const ReduceArgs &args);
  // Rows of a block are single elements: sums run across rows, several blocks at once.
  void (*reduce_across[kDtypes][kReductions])(const ReduceArgs &args);
  // Magnitudes in the score type; [1]: past the caches.
  void (*magnitudes[kDtypes][2])(const std::byte *x, int64_t n, std::byte *y);
  // Roots of compensated sums of squares, in place. Returns whether all are exact roots.
  bool (*exact_roots)(double *sums, const double *errors, int64_t n);
  // Square roots, and the nearest floats, of values in place.
  void (*roots)(double *values, int64_t n);
  void (*round_to_float)(double *values, int64_t n);
  // How many boxes ahead of the one that is written a coupling asks for.
  int64_t boxes_ahead;
  bool holds_rows_ahead;  // do caches, if tens of rows are asked for some time before?
  void (*scale[kDtypes])(const ScaleArgs &args);
  void (*scale_by_floats[kDtypes])(const ScaleArgs &args);  // all but f64
  void (*mask[kDtypes])(const ScaleArgs &args);
  // Conversions of a row; `from_double` rounds once, to nearest even.
  void (*to_double[kDtypes])(const std::byte *x, int64_t n, int64_t step, double *out,
                             int64_t out_step);
  void (*to_float[kDtypes])(const std::byte *x, int64_t n, int64_t step, float *out);  // not of f64
  void (*from_double[kDtypes])(const double *in, int64_t n, int64_t in_step, std::byte *y,
                               int64_t step);
  // The same to contiguous floats [0] or doubles [1], past the caches.
  void (*stream_doubles[2])(const double *in, int64_t n, std::byte *y);
  // Between memory and panels of floats [0], but not of f64, or doubles [1]. `scatter` rounds once,
  // to nearest even; floats that become fewer bits have been rounded to odd.
  void (*gather[kDtypes][2])(const BoxArgs &args);
  void (*scatter[kDtypes][2])(const BoxArgs &args);
  // Are all numbers of these rows > 0 and finite? The panel is left alone.
  bool (*all_positive[kDtypes])(const BoxArgs &args);
  // Panels of floats [0] or doubles [1].
  void (*conditioned_panel[2])(const ConditionedPanel &panel);
  // By the dtypes of weights and of conditioners. Returns how many of the elements live.
  int64_t (*conditioned_elements[kDtypes][kDtypes])(const ConditionedElementsArgs &args);
  ConditionedSums (*conditioned_sums)(const double *b, const double *r, int64_t n, double a_scale);
  // Soft and hard thresholding of blocks by Euclidean norms, which hard thresholding rounds to the
  // score dtype; NULL where registers hold one double, and along rows where they hold fewer than
  // four. Of f64 there are only the *_rows and drop_tiles; of 16-bit numbers no shrink_tiles, and
  // shrink_rows only where floats tell their products (narrow-inl.h). They return how many stay
  // alive. By dtypes, and by whether thresholds are doubles.
  ThresholdKernel shrink_across[kDtypes][2];
  ThresholdKernel drop_across[kDtypes][2];
  ThresholdKernel shrink_along[kDtypes][2];
  ThresholdKernel drop_along[kDtypes][2];
  ThresholdKernel shrink_rows[kDtypes][2];
  ThresholdKernel drop_rows[kDtypes][2];
  ThresholdKernel shrink_tiles[kDtypes][2];
  ThresholdKernel drop_tiles[kDtypes][2];
  // Thresholds, given in `factors` and scaled, to what blocks of these norms are multiplied by.
  // Returns how many are not 0.
  int64_t (*shrink)(const double *norms, int64_t n, double threshold_scale, double eps,
                    double *factors);
  // Which norms are not below their thresholds, and how many.
  int64_t (*keep_at_least)(const double *norms, const double *thresholds, int64_t n, uint8_t *keep);
  // Mask bytes to 0 or 1.
  void (*keep_bytes)(const uint8_t *mask, int64_t n, uint8_t *keep);
  // Are all n floats [0] or doubles [1] at least `least`, and none NaN?
  bool (*all_at_least[2])(const void *numbers, int64_t n, double least);
  // Soft thresholding of elements, with thresholds in float [0] or double [1]; returns how many
  // stay alive. Hard thresholding of floats by floats [0], of doubles by doubles [1].
  int64_t (*shrink_elements[kDtypes][2])(const ElementArgs &args, double eps);
  int64_t (*drop_elements[kDtypes][2])(const ElementArgs &args);
  KeyKernels keys[kKeyWidths];  // of scopes of more blocks
  void (*transpose[kKeyWidths])(const TransposeArgs &args);
  void (*rank_few)(const RankFewArgs &args);
  // Scopes whose elements are side by side with those of the next scope: one row a position.
  SelectFewKernel select_across[kDtypes];
  // The same in groups of short rows, of 2 to kMostInShortRows elements a scope; all scopes keep as
  // many, some but not all, and ties are settled. NULL where registers cannot be written in part.
  SelectFewKernel select_short_rows[kDtypes];
  // Scopes one after the other, each a row.
  SelectFewKernel select_along[kDtypes];
  // The same of more than kFewBlocks elements a scope, of which ties are settled.
  SelectFewKernel halve_across[kDtypes];
  SelectFewKernel halve_along[kDtypes];
  // Blocks whose elements are side by side with those of the next block.
  void (*block_keys_across[kDtypes])(const BlockKeysArgs &args);
  void (*mask_by_keys_across[kDtypes])(const BlockKeysArgs &args);
  // Contiguous blocks, one after the other, of 2, 4, 8 or 16 elements.
  void (*block_keys_along[kDtypes][4])(const BlockKeysArgs &args);
  void (*mask_by_keys_along[kDtypes][4])(const BlockKeysArgs &args);
  // Both at once, for scopes of 2 [0], 4 [1] or 8 [2] neighbours; NULL where registers hold none.
  KeepBlocks keep_blocks_across[kDtypes][3];
  KeepBlocks keep_blocks_along[kDtypes][3][4];
  // The same for scopes of up to kFewBlocks neighbours in one piece, one a lane, in rows of any
  // number of blocks (see kMostRegisterBytes). NULL in portable code.
  KeepBlocks keep_blocks_in_lanes[kDtypes][4];
  // Keys of the active elements, the others left out; of the inactive, the active kept and NaN left
  // out. They return how many compete.
  int64_t (*active_keys[kKeyWidths])(const MaskedKeysArgs &args);
  int64_t (*inactive_keys[kKeyWidths])(const MaskedKeysArgs &args);
  void (*random_keys)(const RandomKeysArgs &args);
  // Mask bytes that are not 0; the sum of |x| where they are, in virtual lanes.
  int64_t (*count_active)(const uint8_t *mask, int64_t n);
  double (*sum_active)(const double *x, const uint8_t *mask, int64_t n);
  // m1 / (sqrt(m2) + kAdamEps)
  void (*adam_momentum)(const double *m1, const double *m2, int64_t n, double *out);
  SecularSums (*secular_sums)(const double *b, const double *r, int64_t n, double nu);
};

// Instruction sets in this build, plainest first, and the one in use: names separated by blanks.
std::string target_names();
const char *target_in_use();

// The table of the best instruction set that this machine has.
const Kernels &kernels();

// Folds the kLanes accumulators of each of `count` blocks into sum[i] (and error[i]).
void fold_lanes(Reduction reduction, double *sum, double *error, int64_t count);
// Combines `count` more partial accumulators into sums (and errors) that are `step` apart.
void combine(Reduction reduction, int64_t count, const double *more, const double *more_error,
             double *sum, double *error, int64_t step);

DtypeIndex index_of_dtype(int32_t dtype);

}  // namespace spk
