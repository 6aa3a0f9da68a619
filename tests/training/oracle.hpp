// What dynamic sparse training has to compute, slowly and from the specification alone.
#ifndef SPARSEKIT_TESTS_TRAINING_ORACLE_HPP_
#define SPARSEKIT_TESTS_TRAINING_ORACLE_HPP_

#include <cstdint>
#include <string>
#include <vector>

#include "../property/model.hpp"

namespace training {

using prop::Dims;
using Places = std::vector<int64_t>;

// --- where a rate meets a count -----------------------------------------------------------------

int64_t floor_count(double x);
int64_t ceil_count(double x);
int64_t round_count(double x);

// --- schedules ----------------------------------------------------------------------------------

enum Kind { kCosine, kLinear, kMagnitude, kCustom, kKinds };

struct ScheduleModel {
  Kind kind = kCosine;
  double first = 0;  // prune rate, or initial sparsity
  double last = 0;   // eta_min, or final sparsity
  int64_t t_max = 1;
  int64_t t_start = 0;
  int64_t interval = 1;

  // Magnitude only: s(t).
  double cumulative(int64_t t) const;
  double rate(int64_t t) const;
  std::string text() const;
};

// What custom schedules of the tests say.
double custom_rate(int64_t t);

// --- densities ----------------------------------------------------------------------------------

// Elements of a kernel: what the dimensions after the first two hold.
int64_t kernel_size(const Dims &shape);

// Erdos-Renyi densities of layers; `kernel` takes all dimensions, not the first two only.
std::vector<double> erdos_renyi(const std::vector<Dims> &shapes, double density, bool kernel);

// One density per layer for a mode that draws: 1 for those that leave. Empty if it is unreachable.
std::vector<double> densities(const std::vector<Dims> &shapes, int mode, double density);

// Whether a layer leaves the masking at initialisation; `first` is the first of the layers.
bool leaves(int mode, const Dims &shape, bool first);
bool is_structured_init(int mode);

// --- handing out --------------------------------------------------------------------------------

struct Allotment {
  std::vector<int64_t> counts;
  // Two fractions were so near each other that their order is a matter of rounding.
  bool doubtful = false;
};

// Shares `total` places in proportion to `share`, none above its cap; what is over goes in equal
// shares to those below their cap; fractions by largest remainder, lower ones first.
Allotment hand_out(int64_t total, const std::vector<double> &share,
                   const std::vector<int64_t> &caps);

// --- layers -------------------------------------------------------------------------------------

// One layer as an update finds it, row-major in the shape of its view.
struct LayerData {
  Dims shape;
  std::vector<bool> mask;
  std::vector<double> weight;
  std::vector<double> gradient;  // empty: not given
  std::vector<double> momentum;

  int64_t numel() const { return static_cast<int64_t>(mask.size()); }
  int64_t nonzeros() const;
  int64_t inactive() const { return numel() - nonzeros(); }
};

// SGD's momentum as Adam's moments give it.
double adam_momentum(double m1, double m2);

// Mean magnitude over the active places; 0 of an empty layer.
double mean_magnitude(const LayerData &layer, const std::vector<double> &values);

// --- selection ----------------------------------------------------------------------------------

enum Criterion { kMean, kMax, kMin, kFirst };

// |criterion| of each kernel; NaN if it holds one (kFirst looks at its first element only).
std::vector<double> kernel_scores(const std::vector<double> &values, int64_t kernel, Criterion by);

// The `count` places of smallest score among the candidates: of equal ones the higher place first,
// NaN last.
Places weakest(const std::vector<double> &scores, const std::vector<bool> &candidate,
               int64_t count);
// The `count` of largest score: of equal ones the lower place first, NaN never.
Places strongest(const std::vector<double> &scores, const std::vector<bool> &candidate,
                 int64_t count);

// The `count` candidates with the smallest words of Philox, of equal ones the lower. The counter is
// (layer, purpose, draw, place), and a word is made of the first two numbers of a block.
struct Draw {
  uint64_t seed;
  int32_t layer;
  uint32_t purpose;  // 0 for first masks, 1 for growth
  uint32_t number;
};
Places drawn(const Draw &draw, const std::vector<bool> &candidate, int64_t count);

std::vector<double> magnitudes(const std::vector<double> &values);
// Kernels with an active place, and those with none.
std::vector<bool> active_kernels(const std::vector<bool> &mask, int64_t kernel);
std::vector<bool> negated(const std::vector<bool> &flags);

// Empty if every part of the oracle agrees with published numbers; else what does not.
std::string check_training_oracle();

}  // namespace training

#endif  // SPARSEKIT_TESTS_TRAINING_ORACLE_HPP_
