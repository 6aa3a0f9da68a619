#include "training/schedule.h"

#include "capi/guard.h"

using namespace spk;
using namespace spk::capi;

extern "C" {

spk_status spk_schedule_create_cosine(double prune_rate, int64_t t_max, double eta_min,
                                      int64_t last_epoch, spk_schedule **out) {
  return guarded([&] {
    required(out, "out");
    *out = make_cosine_schedule(prune_rate, t_max, eta_min, last_epoch).detach();
  });
}

spk_status spk_schedule_create_linear(double prune_rate, int64_t t_max, spk_schedule **out) {
  return guarded([&] {
    required(out, "out");
    *out = make_linear_schedule(prune_rate, t_max).detach();
  });
}

spk_status spk_schedule_create_magnitude(double initial, double final, int64_t t_max,
                                         int64_t t_start, int64_t interval, spk_schedule **out) {
  return guarded([&] {
    required(out, "out");
    *out = make_magnitude_schedule(initial, final, t_max, t_start, interval).detach();
  });
}

spk_status spk_schedule_create_custom(spk_schedule_fn fn, void *user, spk_schedule **out) {
  return guarded([&] {
    required(out, "out");
    required(fn, "fn");
    *out = make_custom_schedule(fn, user).detach();
  });
}

void spk_schedule_retain(spk_schedule *schedule) {
  if (schedule) schedule->retain();
}

void spk_schedule_release(spk_schedule *schedule) {
  if (schedule) schedule->release();
}

spk_status spk_schedule_step(spk_schedule *schedule) {
  return guarded([&] { required(schedule, "schedule").step(); });
}

spk_status spk_schedule_step_to(spk_schedule *schedule, int64_t t) {
  return guarded([&] {
    required(schedule, "schedule");
    if (t < 0) fail(SPK_INVALID_ARGUMENT, "t: got ", t, ", expected >= 0");
    schedule->position = t;
  });
}

int64_t spk_schedule_position(const spk_schedule *schedule) {
  return schedule ? schedule->position : -1;
}

spk_status spk_schedule_rate(const spk_schedule *schedule, double *rate) {
  return guarded([&] {
    required(rate, "rate");
    *rate = required(schedule, "schedule").rate();
  });
}

spk_status spk_schedule_rate_from(const spk_schedule *schedule, double current, double *rate) {
  return guarded([&] {
    required(rate, "rate");
    check_share("current", current);
    *rate = rate_from(required(schedule, "schedule"), current);
  });
}

spk_status spk_schedule_cumulative_sparsity(const spk_schedule *schedule, int64_t t,
                                            double *sparsity) {
  return guarded([&] {
    required(sparsity, "sparsity");
    *sparsity = cumulative_sparsity(required(schedule, "schedule"), t);
  });
}

}  // extern "C"
