// Prune rates that change with the position, a number of steps.
#pragma once

#include <memory>

#include "base/handle.h"
#include "sparsekit/training.h"

namespace spk {

// The kinds, as saved states name them.
enum class ScheduleKind : int32_t { kCosine = 0, kLinear = 1, kMagnitude = 2, kCustom = 3 };

// What a position means: one class per kind.
class RateLaw {
 public:
  virtual ~RateLaw() = default;
  virtual ScheduleKind kind() const = 0;
  virtual double rate(int64_t t) const = 0;
  // The sparsity to have reached; NaN where the law knows of none.
  virtual double cumulative_sparsity(int64_t t) const;
};

}  // namespace spk

struct spk_schedule final : spk::RefCounted {
  spk_schedule(std::unique_ptr<spk::RateLaw> rate_law, int64_t first)
      : law(std::move(rate_law)), position(first) {}

  spk::ScheduleKind kind() const { return law->kind(); }
  double rate() const { return law->rate(position); }
  void step();

  const std::unique_ptr<const spk::RateLaw> law;
  int64_t position;
};

namespace spk {

using Schedule = ::spk_schedule;

Ref<Schedule> make_cosine_schedule(double prune_rate, int64_t t_max, double eta_min,
                                   int64_t last_epoch);
Ref<Schedule> make_linear_schedule(double prune_rate, int64_t t_max);
Ref<Schedule> make_magnitude_schedule(double initial, double final, int64_t t_max, int64_t t_start,
                                      int64_t interval);
Ref<Schedule> make_custom_schedule(spk_schedule_fn fn, void *user);

// The sparsity to have reached at t; refuses schedules that know of none.
double cumulative_sparsity(const Schedule &schedule, int64_t t);
// What the rate is if the sparsity is `current`.
double rate_from(const Schedule &schedule, double current);

// Refuses what is not in [0, 1]; `name` is the argument's.
void check_share(const char *name, double share);

}  // namespace spk
