/* Schedules: rates and sparsities that are known, and arguments that are refused. */
#include <sparsekit/training.h>

#include "support.h"

static double rate_at(spk_schedule *schedule, int64_t t) {
  double rate = -1;
  assert_ok(spk_schedule_step_to(schedule, t));
  assert_ok(spk_schedule_rate(schedule, &rate));
  return rate;
}

static double sparsity_at(const spk_schedule *schedule, int64_t t) {
  double sparsity = -1;
  assert_ok(spk_schedule_cumulative_sparsity(schedule, t, &sparsity));
  return sparsity;
}

static void cosine_falls_to_its_end(void **state) {
  (void)state;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_cosine(0.3, 1000, 0.05, -1, &schedule));
  assert_int_equal(spk_schedule_position(schedule), 0);
  assert_near(rate_at(schedule, 0), 0.3, 1e-16);
  assert_near(rate_at(schedule, 100), 0.2938820645, 1e-10);
  assert_near(rate_at(schedule, 500), 0.175, 1e-16);
  assert_near(rate_at(schedule, 1000), 0.05, 0);
  assert_near(rate_at(schedule, 5000), 0.05, 0);
  for (int64_t t = 0; t <= 1000; ++t) {
    const double want = 0.05 + 0.25 * (1 + cos(3.14159265358979323846 * (double)t / 1000)) / 2;
    assert_near(rate_at(schedule, t), want, 1e-16);
  }
  spk_schedule_release(schedule);
}

static void positions_start_after_the_last_epoch(void **state) {
  (void)state;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_cosine(0.3, 1000, 0, 41, &schedule));
  assert_int_equal(spk_schedule_position(schedule), 42);
  assert_ok(spk_schedule_step(schedule));
  assert_int_equal(spk_schedule_position(schedule), 43);
  assert_int_equal(spk_schedule_position(NULL), -1);
  spk_schedule_release(schedule);
}

static void linear_falls_to_zero(void **state) {
  (void)state;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_linear(0.3, 1000, &schedule));
  assert_near(rate_at(schedule, 0), 0.3, 0);
  assert_near(rate_at(schedule, 500), 0.15, 0);
  assert_near(rate_at(schedule, 1000), 0, 0);
  assert_near(rate_at(schedule, INT64_MAX), 0, 0);
  spk_schedule_release(schedule);
}

static void magnitude_knows_sparsities(void **state) {
  (void)state;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_magnitude(0, 0.8, 65000, 700, 100, &schedule));
  assert_near(sparsity_at(schedule, INT64_MIN), 0, 0);
  assert_near(sparsity_at(schedule, 700), 0, 0);
  assert_near(sparsity_at(schedule, 5000), 0.1500037975, 1e-10);
  assert_near(sparsity_at(schedule, 25000), 0.6074085325, 1e-10);
  assert_near(sparsity_at(schedule, INT64_MAX), 0.8, 0);
  assert_near(rate_at(schedule, 900), 0.0037151105, 1e-10);
  double rate = -1;
  assert_ok(spk_schedule_rate_from(schedule, 0.5, &rate));
  assert_near(rate, 0, 0);
  assert_ok(spk_schedule_step_to(schedule, 65000));
  assert_ok(spk_schedule_rate_from(schedule, 0.5, &rate));
  assert_near(rate, 0.3, 1e-15);
  spk_schedule_release(schedule);
}

static int32_t tenth_of_position(void *user, int64_t t, double *rate) {
  *rate = (double)t / 10;
  return *(const int32_t *)user;
}

static void custom_asks_the_caller(void **state) {
  (void)state;
  int32_t stop = 0;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_custom(tenth_of_position, &stop, &schedule));
  assert_near(rate_at(schedule, 5), 0.5, 0);
  double rate = -1;
  assert_ok(spk_schedule_step_to(schedule, 11));
  assert_fails(SPK_INVALID_ARGUMENT, "schedule callback: rate: got 1.1, expected 0 to 1",
               spk_schedule_rate(schedule, &rate));
  stop = 7;
  assert_fails(SPK_CANCELLED,
               "schedule callback: returned 7 at position 11, which cancels the call",
               spk_schedule_rate(schedule, &rate));
  assert_near(rate, -1, 0);
  spk_schedule_release(schedule);
}

static void wrong_arguments_are_refused(void **state) {
  (void)state;
  spk_schedule *schedule = NULL;
  assert_fails(SPK_INVALID_ARGUMENT, "prune_rate: got 1.5, expected 0 to 1",
               spk_schedule_create_cosine(1.5, 1000, 0, -1, &schedule));
  assert_fails(SPK_INVALID_ARGUMENT, "eta_min: got NaN, expected 0 to 1",
               spk_schedule_create_cosine(0.3, 1000, NAN, -1, &schedule));
  assert_fails(SPK_INVALID_ARGUMENT, "last_epoch: got -2, expected -1 to 2^63 - 2",
               spk_schedule_create_cosine(0.3, 1000, 0, -2, &schedule));
  assert_fails(SPK_INVALID_ARGUMENT, "t_max: got 0, expected >= 1",
               spk_schedule_create_linear(0.3, 0, &schedule));
  assert_fails(SPK_INVALID_ARGUMENT, "t_start: got 10, expected >= 0 and < t_max, which is 10",
               spk_schedule_create_magnitude(0, 0.5, 10, 10, 1, &schedule));
  assert_fails(SPK_INVALID_ARGUMENT, "interval: got 0, expected >= 1",
               spk_schedule_create_magnitude(0, 0.5, 10, 0, 0, &schedule));
  assert_fails(SPK_INVALID_ARGUMENT, "fn: got NULL",
               spk_schedule_create_custom(NULL, NULL, &schedule));
  assert_null(schedule);
  assert_ok(spk_schedule_create_linear(0.3, 10, &schedule));
  double number = 0;
  assert_fails(SPK_INVALID_ARGUMENT,
               "schedule: got one that knows no sparsity, expected one of "
               "spk_schedule_create_magnitude",
               spk_schedule_cumulative_sparsity(schedule, 1, &number));
  assert_fails(SPK_INVALID_ARGUMENT, "t: got -1, expected >= 0",
               spk_schedule_step_to(schedule, -1));
  spk_schedule_release(schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(cosine_falls_to_its_end), TEST(positions_start_after_the_last_epoch),
      TEST(linear_falls_to_zero),    TEST(magnitude_knows_sparsities),
      TEST(custom_asks_the_caller),  TEST(wrong_arguments_are_refused),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
