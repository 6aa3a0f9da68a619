#include "training/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "base/fp_mode.h"

namespace spk {
namespace {

// cos and sin of |x| <= pi / 4 by their series, innermost term first: the C library's functions
// differ from processor to processor. The terms left out are below 2^-58.
constexpr int kTerms = 9;

double cos_near_zero(double x) {
  double sum = 1.0;
  for (int k = 2 * kTerms; k > 0; k -= 2) sum = 1.0 - x * x / (k * (k - 1)) * sum;
  return sum;
}

double sin_near_zero(double x) {
  double sum = 1.0;
  for (int k = 2 * kTerms + 1; k > 1; k -= 2) sum = 1.0 - x * x / (k * (k - 1)) * sum;
  return x * sum;
}

// cos(pi x) for x in [0, 1].
double cos_of_pi_times(double x) {
  constexpr double kPi = std::numbers::pi;
  if (x <= 0.25) return cos_near_zero(kPi * x);
  if (x < 0.75) return sin_near_zero(kPi * (0.5 - x));
  return -cos_near_zero(kPi * (1.0 - x));
}

double ratio(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

class Cosine final : public RateLaw {
 public:
  Cosine(double prune_rate, int64_t t_max, double eta_min)
      : prune_rate_(prune_rate), t_max_(t_max), eta_min_(eta_min) {}

  ScheduleKind kind() const override { return ScheduleKind::kCosine; }
  double rate(int64_t t) const override {
    if (t >= t_max_) return eta_min_;
    const double share = (1.0 + cos_of_pi_times(ratio(t, t_max_))) / 2.0;
    return eta_min_ + (prune_rate_ - eta_min_) * share;
  }

 private:
  double prune_rate_;
  int64_t t_max_;
  double eta_min_;
};

class Linear final : public RateLaw {
 public:
  Linear(double prune_rate, int64_t t_max) : prune_rate_(prune_rate), t_max_(t_max) {}

  ScheduleKind kind() const override { return ScheduleKind::kLinear; }
  double rate(int64_t t) const override {
    return t >= t_max_ ? 0.0 : prune_rate_ * (1.0 - ratio(t, t_max_));
  }

 private:
  double prune_rate_;
  int64_t t_max_;
};

class Magnitude final : public RateLaw {
 public:
  Magnitude(double initial, double final, int64_t t_max, int64_t t_start, int64_t interval)
      : initial_(initial), final_(final), t_max_(t_max), t_start_(t_start), interval_(interval) {}

  ScheduleKind kind() const override { return ScheduleKind::kMagnitude; }
  double rate(int64_t t) const override {
    return std::max(0.0, cumulative_sparsity(t) - cumulative_sparsity(t - interval_));
  }
  double cumulative_sparsity(int64_t t) const override {
    if (t <= t_start_) return initial_;
    if (t >= t_max_) return final_;
    const double left = 1.0 - ratio(t - t_start_, t_max_ - t_start_);
    return final_ + (initial_ - final_) * (left * left * left);
  }

 private:
  double initial_;
  double final_;
  int64_t t_max_;
  int64_t t_start_;
  int64_t interval_;
};

class Custom final : public RateLaw {
 public:
  Custom(spk_schedule_fn fn, void *user) : fn_(fn), user_(user) {}

  ScheduleKind kind() const override { return ScheduleKind::kCustom; }
  double rate(int64_t t) const override {
    double rate = 0.0;
    int32_t stop = 0;
    {
      const HostMode mode;
      stop = fn_(user_, t, &rate);
    }
    if (stop != 0) {
      fail(SPK_CANCELLED, "schedule callback: returned ", stop, " at position ", t,
           ", which cancels the call");
    }
    check_share("schedule callback: rate", rate);
    return rate;
  }

 private:
  spk_schedule_fn fn_;
  void *user_;
};

void check_t_max(int64_t t_max) {
  if (t_max < 1) fail(SPK_INVALID_ARGUMENT, "t_max: got ", t_max, ", expected >= 1");
}

template <typename Law, typename... Arguments>
Ref<Schedule> make(int64_t first, Arguments... arguments) {
  return Ref<Schedule>::adopt(new Schedule(std::make_unique<Law>(arguments...), first));
}

}  // namespace

double RateLaw::cumulative_sparsity(int64_t) const {
  return std::numeric_limits<double>::quiet_NaN();
}

void check_share(const char *name, double share) {
  if (!(share >= 0.0 && share <= 1.0)) {
    fail(SPK_INVALID_ARGUMENT, name, ": got ", share, ", expected 0 to 1");
  }
}

Ref<Schedule> make_cosine_schedule(double prune_rate, int64_t t_max, double eta_min,
                                   int64_t last_epoch) {
  check_share("prune_rate", prune_rate);
  check_t_max(t_max);
  check_share("eta_min", eta_min);
  if (last_epoch < -1 || last_epoch == std::numeric_limits<int64_t>::max()) {
    fail(SPK_INVALID_ARGUMENT, "last_epoch: got ", last_epoch, ", expected -1 to 2^63 - 2");
  }
  return make<Cosine>(last_epoch + 1, prune_rate, t_max, eta_min);
}

Ref<Schedule> make_linear_schedule(double prune_rate, int64_t t_max) {
  check_share("prune_rate", prune_rate);
  check_t_max(t_max);
  return make<Linear>(0, prune_rate, t_max);
}

Ref<Schedule> make_magnitude_schedule(double initial, double final, int64_t t_max, int64_t t_start,
                                      int64_t interval) {
  check_share("initial", initial);
  check_share("final", final);
  if (t_start < 0 || t_start >= t_max) {
    fail(SPK_INVALID_ARGUMENT, "t_start: got ", t_start, ", expected >= 0 and < t_max, which is ",
         t_max);
  }
  if (interval < 1) fail(SPK_INVALID_ARGUMENT, "interval: got ", interval, ", expected >= 1");
  return make<Magnitude>(0, initial, final, t_max, t_start, interval);
}

Ref<Schedule> make_custom_schedule(spk_schedule_fn fn, void *user) {
  return make<Custom>(0, fn, user);
}

double cumulative_sparsity(const Schedule &schedule, int64_t t) {
  if (schedule.kind() != ScheduleKind::kMagnitude) {
    fail(SPK_INVALID_ARGUMENT, "schedule: got one that knows no sparsity, expected one of ",
         "spk_schedule_create_magnitude");
  }
  return schedule.law->cumulative_sparsity(t);
}

double rate_from(const Schedule &schedule, double current) {
  return std::max(0.0, cumulative_sparsity(schedule, schedule.position) - current);
}

}  // namespace spk

// It stays at the last position that there is.
void spk_schedule::step() {
  if (position < std::numeric_limits<int64_t>::max()) ++position;
}
