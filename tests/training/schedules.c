/* Schedules: published numbers, ranges, and refusals. */
#include "net.h"

static double rate_of(const spk_schedule *schedule) {
  double rate = -1;
  assert_ok(spk_schedule_rate(schedule, &rate));
  return rate;
}

static double rate_at(spk_schedule *schedule, int64_t t) {
  assert_ok(spk_schedule_step_to(schedule, t));
  assert_int_equal(spk_schedule_position(schedule), t);
  return rate_of(schedule);
}

static void cosine_falls_to_its_end(void **state) {
  (void)state;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_cosine(0.3, 1000, 0.05, -1, &schedule));
  assert_int_equal(spk_schedule_position(schedule), 0);
  assert_near(rate_of(schedule), 0.3, 1e-15);
  assert_near(rate_at(schedule, 100), 0.2938820645, 1e-10);
  assert_near(rate_at(schedule, 500), 0.175, 1e-15);
  for (int64_t t = 1000; t < 100000; t += 777) assert_near(rate_at(schedule, t), 0.05, 0);
  for (int64_t t = 1; t <= 1000; ++t) {
    assert_true(rate_at(schedule, t) <= rate_at(schedule, t - 1));
  }
  assert_near(rate_at(schedule, INT64_MAX), 0.05, 0);
  spk_schedule_release(schedule);
}

static void cosine_starts_after_its_last_epoch(void **state) {
  (void)state;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_cosine(0.3, 1000, 0.05, 99, &schedule));
  assert_int_equal(spk_schedule_position(schedule), 100);
  assert_near(rate_of(schedule), 0.2938820645, 1e-10);
  spk_schedule_release(schedule);
  /* It may rise, too. */
  assert_ok(spk_schedule_create_cosine(0, 10, 1, -1, &schedule));
  assert_near(rate_at(schedule, 5), 0.5, 1e-15);
  assert_near(rate_at(schedule, 10), 1, 0);
  spk_schedule_release(schedule);
}

static void linear_falls_to_nothing(void **state) {
  (void)state;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_linear(0.3, 1000, &schedule));
  assert_int_equal(spk_schedule_position(schedule), 0);
  for (int i = 0; i < 500; ++i) assert_ok(spk_schedule_step(schedule));
  assert_int_equal(spk_schedule_position(schedule), 500);
  assert_near(rate_of(schedule), 0.15, 1e-15);
  for (int64_t t = 1000; t < 100000; t += 777) assert_near(rate_at(schedule, t), 0, 0);
  assert_near(rate_at(schedule, 0), 0.3, 0);
  spk_schedule_release(schedule);
}

static spk_schedule *gradual(void) {
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_magnitude(0, 0.8, 65000, 700, 100, &schedule));
  return schedule;
}

static double sparsity_at(const spk_schedule *schedule, int64_t t) {
  double sparsity = -1;
  assert_ok(spk_schedule_cumulative_sparsity(schedule, t, &sparsity));
  return sparsity;
}

static void magnitude_follows_the_cubic(void **state) {
  (void)state;
  spk_schedule *schedule = gradual();
  assert_int_equal(spk_schedule_position(schedule), 0);
  assert_near(sparsity_at(schedule, 0), 0, 0);
  assert_near(sparsity_at(schedule, 700), 0, 0);
  assert_near(sparsity_at(schedule, 5000), 0.1500037975, 1e-10);
  assert_near(sparsity_at(schedule, 25000), 0.6074085325, 1e-10);
  assert_near(sparsity_at(schedule, 65000), 0.8, 0);
  assert_near(sparsity_at(schedule, INT64_MAX), 0.8, 0);
  assert_near(rate_at(schedule, 900), 0.0037151105, 1e-10);
  assert_near(rate_at(schedule, 0), 0, 0);
  assert_near(rate_at(schedule, 700000), 0, 0);
  double rate = -1;
  assert_ok(spk_schedule_step_to(schedule, 5000));
  assert_ok(spk_schedule_rate_from(schedule, 0.1, &rate));
  assert_near(rate, 0.0500037975, 1e-10);
  assert_ok(spk_schedule_rate_from(schedule, 0.2, &rate));
  assert_near(rate, 0, 0);
  spk_schedule_release(schedule);
}

static int32_t tenth_of_position(void *user, int64_t t, double *rate) {
  ++*(int *)user;
  *rate = (double)t / 10;
  return 0;
}

static void custom_schedules_are_asked(void **state) {
  (void)state;
  int asked = 0;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_custom(tenth_of_position, &asked, &schedule));
  assert_int_equal(spk_schedule_position(schedule), 0);
  assert_near(rate_at(schedule, 0), 0, 0);
  assert_near(rate_at(schedule, 10), 1, 0);
  assert_int_equal(asked, 2);
  double rate = -1;
  assert_ok(spk_schedule_step_to(schedule, 11));
  assert_told(SPK_INVALID_ARGUMENT, "1.1|0 to 1", spk_schedule_rate(schedule, &rate));
  assert_near(rate, -1, 0);
  spk_schedule_release(schedule);
}

static int32_t bad_rate(void *user, int64_t t, double *rate) {
  (void)t;
  *rate = *(const double *)user;
  return 0;
}
static int32_t stops(void *user, int64_t t, double *rate) {
  (void)user;
  (void)t;
  *rate = 0.5;
  return 3;
}

static void custom_rates_must_be_rates(void **state) {
  (void)state;
  static const double bad[] = {NAN, -1e-9, 1.0000001, INFINITY, -INFINITY};
  for (int64_t i = 0; i < COUNT(bad); ++i) {
    double told = bad[i];
    double rate = -1;
    spk_schedule *schedule = NULL;
    assert_ok(spk_schedule_create_custom(bad_rate, &told, &schedule));
    assert_told(SPK_INVALID_ARGUMENT, "rate", spk_schedule_rate(schedule, &rate));
    assert_near(rate, -1, 0);
    spk_schedule_release(schedule);
  }
  double rate = -1;
  spk_schedule *schedule = NULL;
  assert_ok(spk_schedule_create_custom(stops, NULL, &schedule));
  assert_told(SPK_CANCELLED, "3", spk_schedule_rate(schedule, &rate));
  assert_near(rate, -1, 0);
  spk_schedule_release(schedule);
}

/* --- refusals --------------------------------------------------------------------------------- */

/* A refused call creates nothing. */
#define assert_no_schedule(parts, call)             \
  do {                                              \
    out = NULL;                                     \
    assert_told(SPK_INVALID_ARGUMENT, parts, call); \
    assert_null(out);                               \
  } while (0)

static void creation_refuses_cosine(void **state) {
  (void)state;
  spk_schedule *out = NULL;
  static const double bad[] = {-0.1, 1.1, NAN, INFINITY};
  for (int64_t i = 0; i < COUNT(bad); ++i) {
    assert_no_schedule("prune_rate|0 to 1", spk_schedule_create_cosine(bad[i], 10, 0, -1, &out));
    assert_no_schedule("eta_min|0 to 1", spk_schedule_create_cosine(0.3, 10, bad[i], -1, &out));
  }
  assert_no_schedule("t_max|0", spk_schedule_create_cosine(0.3, 0, 0, -1, &out));
  assert_no_schedule("t_max|-5", spk_schedule_create_cosine(0.3, -5, 0, -1, &out));
  assert_no_schedule("last_epoch|-2", spk_schedule_create_cosine(0.3, 10, 0, -2, &out));
  /* The position after it has no number. */
  assert_no_schedule("last_epoch", spk_schedule_create_cosine(0.3, 10, 0, INT64_MAX, &out));
  assert_told(SPK_INVALID_ARGUMENT, "out|NULL", spk_schedule_create_cosine(0.3, 10, 0, -1, NULL));
}

static void creation_refuses_linear_and_custom(void **state) {
  (void)state;
  spk_schedule *out = NULL;
  static const double bad[] = {-0.1, 1.1, NAN, INFINITY};
  for (int64_t i = 0; i < COUNT(bad); ++i) {
    assert_no_schedule("prune_rate|0 to 1", spk_schedule_create_linear(bad[i], 10, &out));
  }
  assert_no_schedule("t_max|0", spk_schedule_create_linear(0.3, 0, &out));
  assert_told(SPK_INVALID_ARGUMENT, "out|NULL", spk_schedule_create_linear(0.3, 10, NULL));
  assert_no_schedule("fn|NULL", spk_schedule_create_custom(NULL, NULL, &out));
  assert_told(SPK_INVALID_ARGUMENT, "out|NULL", spk_schedule_create_custom(stops, NULL, NULL));
}

static void creation_refuses_magnitude(void **state) {
  (void)state;
  spk_schedule *out = NULL;
  static const double bad[] = {-0.1, 1.1, NAN, INFINITY};
  for (int64_t i = 0; i < COUNT(bad); ++i) {
    assert_no_schedule("initial|0 to 1",
                       spk_schedule_create_magnitude(bad[i], 0.5, 10, 0, 1, &out));
    assert_no_schedule("final|0 to 1", spk_schedule_create_magnitude(0, bad[i], 10, 0, 1, &out));
  }
  assert_no_schedule("t_max|10", spk_schedule_create_magnitude(0, 0.5, 10, 10, 1, &out));
  assert_no_schedule("t_start|-1", spk_schedule_create_magnitude(0, 0.5, 10, -1, 1, &out));
  assert_no_schedule("interval|0", spk_schedule_create_magnitude(0, 0.5, 10, 0, 0, &out));
  assert_told(SPK_INVALID_ARGUMENT, "out|NULL",
              spk_schedule_create_magnitude(0, 0.5, 10, 0, 1, NULL));
}

static void positions_are_refused(void **state) {
  (void)state;
  spk_schedule *schedule = gradual();
  assert_ok(spk_schedule_step_to(schedule, 7));
  assert_told(SPK_INVALID_ARGUMENT, "t|-1", spk_schedule_step_to(schedule, -1));
  assert_int_equal(spk_schedule_position(schedule), 7);
  assert_told(SPK_INVALID_ARGUMENT, "schedule|NULL", spk_schedule_step(NULL));
  assert_told(SPK_INVALID_ARGUMENT, "schedule|NULL", spk_schedule_step_to(NULL, 3));
  assert_int_equal(spk_schedule_position(NULL), -1);
  /* There is no step after the last one. */
  assert_ok(spk_schedule_step_to(schedule, INT64_MAX));
  spk_schedule_step(schedule);
  assert_int_equal(spk_schedule_position(schedule), INT64_MAX);
  spk_schedule_release(schedule);
}

static void rates_are_refused(void **state) {
  (void)state;
  double out = -1;
  spk_schedule *schedule = gradual();
  spk_schedule *other = NULL;
  assert_ok(spk_schedule_create_linear(0.3, 10, &other));
  const spk_status bad = SPK_INVALID_ARGUMENT;
  assert_told(bad, "schedule|NULL", spk_schedule_rate(NULL, &out));
  assert_told(bad, "rate|NULL", spk_schedule_rate(schedule, NULL));
  assert_told(bad, "schedule|NULL", spk_schedule_rate_from(NULL, 0.5, &out));
  assert_told(bad, "rate|NULL", spk_schedule_rate_from(schedule, 0.5, NULL));
  assert_told(bad, "current|0 to 1", spk_schedule_rate_from(schedule, 1.5, &out));
  assert_told(bad, "current|0 to 1", spk_schedule_rate_from(schedule, -0.5, &out));
  assert_told(bad, "current|0 to 1", spk_schedule_rate_from(schedule, NAN, &out));
  assert_told(bad, "schedule|magnitude", spk_schedule_rate_from(other, 0.5, &out));
  assert_told(bad, "schedule|NULL", spk_schedule_cumulative_sparsity(NULL, 1, &out));
  assert_told(bad, "sparsity|NULL", spk_schedule_cumulative_sparsity(schedule, 1, NULL));
  assert_told(bad, "schedule|magnitude", spk_schedule_cumulative_sparsity(other, 1, &out));
  assert_near(out, -1, 0);
  spk_schedule_release(schedule);
  spk_schedule_release(other);
}

static void owners_are_counted(void **state) {
  (void)state;
  const int64_t before = spk_live_handles();
  spk_schedule *schedule = gradual();
  spk_schedule_retain(schedule);
  spk_schedule_release(schedule);
  assert_int_equal(spk_live_handles(), before + 1);
  assert_int_equal(spk_schedule_position(schedule), 0);
  spk_schedule_release(schedule);
  spk_schedule_retain(NULL);
  spk_schedule_release(NULL);
  assert_int_equal(spk_live_handles(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(cosine_falls_to_its_end),    TEST(cosine_starts_after_its_last_epoch),
      TEST(linear_falls_to_nothing),    TEST(magnitude_follows_the_cubic),
      TEST(custom_schedules_are_asked), TEST(custom_rates_must_be_rates),
      TEST(creation_refuses_cosine),    TEST(creation_refuses_linear_and_custom),
      TEST(creation_refuses_magnitude), TEST(positions_are_refused),
      TEST(rates_are_refused),          TEST(owners_are_counted),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
