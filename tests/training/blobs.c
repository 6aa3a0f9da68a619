/* Saved states: training that goes on as if it had never stopped, and bytes that are no state. */
#include "net.h"

static void make(struct net *net, int32_t prune, int32_t redistribute, int32_t grow) {
  const spk_masking_options options = options_of(prune, redistribute, grow);
  create_net(net, kStrided, falling_rate(), &options);
}

static void train(struct net *net, uint64_t from, uint64_t to) {
  for (uint64_t t = from; t < to; ++t) {
    refill(net, t);
    if (t % 2 == 0) update(net);
    step(net);
  }
}

/* Whether a run that was saved, and restored elsewhere, ends as the one that was never stopped. */
static bool goes_on(int32_t prune, int32_t redistribute, int32_t grow) {
  static struct net whole, resumed;
  static unsigned char blob[MOST_BLOB], end[MOST_BLOB], resumed_end[MOST_BLOB];
  make(&whole, prune, redistribute, grow);
  make(&resumed, prune, redistribute, grow);
  initialise(&whole, SPK_INIT_ERDOS_RENYI_KERNEL, 0.4);
  train(&whole, 1, 7);
  const size_t length = save(whole.masking, blob);
  resumed.a = whole.a;
  assert_ok(spk_masking_restore(resumed.masking, blob, length));
  bool same =
      spk_schedule_position(resumed.schedule) == spk_schedule_position(whole.schedule) &&
      spk_masking_baseline(resumed.masking) == spk_masking_baseline(whole.masking) &&
      spk_masking_adjusted_growth(resumed.masking) == spk_masking_adjusted_growth(whole.masking);
  train(&whole, 7, 13);
  train(&resumed, 7, 13);
  same = same && memcmp(&whole.a, &resumed.a, sizeof whole.a) == 0;
  const size_t end_length = save(whole.masking, end);
  same = same && save(resumed.masking, resumed_end) == end_length &&
         memcmp(end, resumed_end, end_length) == 0;
  release_net(&whole);
  release_net(&resumed);
  return same;
}

static void a_restored_run_goes_on_bit_for_bit(void **state) {
  (void)state;
  for (int32_t prune = 0; prune <= SPK_PRUNE_CALLBACK; ++prune) {
    for (int32_t redistribute = 0; redistribute <= SPK_REDISTRIBUTE_CALLBACK; ++redistribute) {
      for (int32_t grow = 0; grow <= SPK_GROW_CALLBACK; ++grow) {
        if (goes_on(prune, redistribute, grow)) continue;
        print_error("prune %d, redistribute %d, grow %d\n", prune, redistribute, grow);
        fail();
      }
    }
  }
}

/* A masking that was never initialised, or lost layers, has a state too. */
static void any_state_can_be_saved(void **state) {
  (void)state;
  static struct net net, other;
  static unsigned char blob[MOST_BLOB], again[MOST_BLOB];
  make(&net, 0, 0, SPK_GROW_RANDOM);
  make(&other, 0, 0, SPK_GROW_RANDOM);
  size_t length = save(net.masking, blob);
  assert_ok(spk_masking_restore(other.masking, blob, length));
  assert_int_equal(save(other.masking, again), length);
  assert_memory_equal(blob, again, length);
  initialise(&net, SPK_INIT_RANDOM, 0.5);
  assert_ok(spk_masking_remove(net.masking, "fc.weight"));
  train(&net, 1, 5);
  length = save(net.masking, blob);
  other.a = net.a;
  assert_ok(spk_masking_restore(other.masking, blob, length));
  assert_int_equal(spk_masking_has_layer(other.masking, 0), 0);
  assert_int_equal(spk_masking_has_layer(other.masking, 1), 0);
  assert_int_equal(spk_masking_has_layer(other.masking, 2), 1);
  train(&net, 5, 9);
  train(&other, 5, 9);
  assert_memory_equal(&net.a, &other.a, sizeof net.a);
  release_net(&net);
  release_net(&other);
}

/* --- a state and its damages ------------------------------------------------------------------ */

static struct net n;
static unsigned char good[MOST_BLOB];
static size_t good_length;

static int create(void **state) {
  note_handles(state);
  make(&n, SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_GRADIENT, SPK_GROW_RANDOM);
  initialise(&n, SPK_INIT_ERDOS_RENYI, 0.4);
  train(&n, 1, 5);
  good_length = save(n.masking, good);
  /* What a refusal must leave alone is another state than the one in the bytes. */
  train(&n, 5, 8);
  return 0;
}

static int destroy(void **state) {
  release_net(&n);
  return check_handles(state);
}

#define BLOB_TEST(name) cmocka_unit_test_setup_teardown(name, create, destroy)

/* The bytes lie at the very end of their memory, so that reading further is noticed. */
static spk_status restore_copy(spk_masking *masking, const unsigned char *bytes, size_t length) {
  unsigned char *copy = malloc(length == 0 ? 1 : length);
  assert_non_null(copy);
  memcpy(copy, bytes, length);
  const spk_status status = spk_masking_restore(masking, copy, length);
  free(copy);
  return status;
}

static void every_damaged_byte_is_noticed(void **state) {
  (void)state;
  static unsigned char bad[MOST_BLOB];
  static const unsigned char flips[] = {0x01, 0x80, 0xff};
  static struct picture before, after;
  take_picture(&n, &before);
  for (size_t i = 0; i < good_length; ++i) {
    for (int64_t f = 0; f < COUNT(flips); ++f) {
      memcpy(bad, good, good_length);
      bad[i] ^= flips[f];
      const spk_status status = restore_copy(n.masking, bad, good_length);
      if (status == SPK_OK) print_error("byte %zu may be 0x%02x\n", i, bad[i]);
      assert_int_not_equal(status, SPK_OK);
      assert_int_not_equal(status, SPK_INTERNAL);
    }
  }
  take_picture(&n, &after);
  assert_memory_equal(&before, &after, sizeof before);
}

static void every_length_but_its_own_is_refused(void **state) {
  (void)state;
  static unsigned char longer[MOST_BLOB];
  memcpy(longer, good, good_length);
  static struct picture before, after;
  take_picture(&n, &before);
  for (size_t length = 0; length < good_length; ++length) {
    assert_int_not_equal(restore_copy(n.masking, good, length), SPK_OK);
  }
  for (size_t more = 1; more <= 64; ++more) {
    assert_int_not_equal(restore_copy(n.masking, longer, good_length + more), SPK_OK);
  }
  take_picture(&n, &after);
  assert_memory_equal(&before, &after, sizeof before);
  assert_ok(restore_copy(n.masking, good, good_length));
}

static void blobs_are_refused_with_a_reason(void **state) {
  (void)state;
  const spk_status bad = SPK_INVALID_ARGUMENT;
  assert_refused(&n, bad, "blob|NULL", spk_masking_restore(n.masking, NULL, good_length));
  assert_refused(&n, bad, "masking|NULL", spk_masking_restore(NULL, good, good_length));
  assert_refused(&n, bad, "blob", spk_masking_restore(n.masking, good, 0));
  assert_refused(&n, bad, "blob", spk_masking_restore(n.masking, good, good_length - 1));
  assert_refused(&n, bad, "blob", spk_masking_restore(n.masking, "no state at all", 15));
}

static void saving_needs_room(void **state) {
  (void)state;
  unsigned char blob[MOST_BLOB];
  unsigned char untouched[MOST_BLOB];
  memset(blob, 0xab, sizeof blob);
  memset(untouched, 0xab, sizeof untouched);
  size_t length = 0;
  assert_ok(spk_masking_save(n.masking, NULL, 0, &length));
  char parts[64];
  snprintf(parts, sizeof parts, "capacity|%zu|%zu", length - 1, length);
  assert_refused(&n, SPK_OUT_OF_BOUNDS, parts, spk_masking_save(n.masking, blob, length - 1, NULL));
  assert_memory_equal(blob, untouched, sizeof blob);
  assert_ok(spk_masking_save(n.masking, blob, length, NULL));
  assert_memory_equal(blob + length, untouched, sizeof blob - length);
  assert_refused(&n, SPK_INVALID_ARGUMENT, "masking|NULL",
                 spk_masking_save(NULL, blob, sizeof blob, &length));
}

/* --- states that do not fit -------------------------------------------------------------------- */

/* A masking that differs from the saved one in a single thing. */
struct other {
  spk_schedule *schedule;
  spk_masking *masking;
};

static void refuse_other(const char *parts, struct other other) {
  const int64_t baseline = spk_masking_baseline(other.masking);
  assert_told(SPK_INVALID_ARGUMENT, parts, restore_copy(other.masking, good, good_length));
  assert_int_equal(spk_schedule_position(other.schedule), 0);
  assert_int_equal(spk_masking_baseline(other.masking), baseline);
  assert_near(spk_masking_adjusted_growth(other.masking), 0, 0);
  spk_masking_release(other.masking);
  spk_schedule_release(other.schedule);
}

static struct other with_options(spk_masking_options options) {
  struct other other = {falling_rate(), NULL};
  other.masking = masking_of(&n, other.schedule, &options);
  return other;
}

static spk_masking_options same_options(void) {
  return options_of(SPK_PRUNE_MAGNITUDE, SPK_REDISTRIBUTE_GRADIENT, SPK_GROW_RANDOM);
}

static void other_modes_do_not_fit(void **state) {
  (void)state;
  spk_masking_options options = same_options();
  options.prune = SPK_PRUNE_GLOBAL_MAGNITUDE;
  refuse_other("prune", with_options(options));
  options = same_options();
  options.redistribute = SPK_REDISTRIBUTE_NONZERO;
  refuse_other("redistribute", with_options(options));
  options = same_options();
  options.grow = SPK_GROW_GRADIENT;
  refuse_other("grow", with_options(options));
  options = same_options();
  options.dense_gradients = 1;
  refuse_other("dense_gradients", with_options(options));
}

static void another_seed_is_replaced(void **state) {
  (void)state;
  spk_masking_options options = same_options();
  options.seed = 4711;
  struct other other = with_options(options);
  unsigned char blob[MOST_BLOB];
  assert_ok(restore_copy(other.masking, good, good_length));
  assert_int_equal(save(other.masking, blob), good_length);
  assert_memory_equal(blob, good, good_length);
  spk_masking_release(other.masking);
  spk_schedule_release(other.schedule);
}

static void another_kind_of_schedule_does_not_fit(void **state) {
  (void)state;
  const spk_masking_options options = same_options();
  struct other other = {NULL, NULL};
  assert_ok(spk_schedule_create_linear(0.4, 40, &other.schedule));
  other.masking = masking_of(&n, other.schedule, &options);
  refuse_other("schedule", other);
}

/* Layers of these names and views. */
static struct other with_layers(const char *const *names, const char *const *views,
                                const int32_t *dtypes, int count) {
  const spk_masking_options options = same_options();
  struct other other = {falling_rate(), NULL};
  assert_ok(spk_masking_create(other.schedule, &options, &other.masking));
  for (int l = 0; l < count; ++l) {
    spk_view *view = view_of(dtypes[l], views[l]);
    assert_ok(spk_masking_add(other.masking, names[l], view, NULL));
    spk_view_release(view);
  }
  return other;
}

static void other_layers_do_not_fit(void **state) {
  (void)state;
  const int32_t dtypes[] = {SPK_F32, SPK_F32, SPK_F32};
  const int32_t wide[] = {SPK_F32, SPK_F64, SPK_F32};
  const char *const names[] = {"conv1.weight", "fc.weight", "conv3.weight"};
  const char *const shapes[] = {"(4,3,2,2)", "(6,8)", "(6,4,3,1)"};
  const char *const order[] = {"fc.weight", "conv1.weight", "conv2.weight"};
  refuse_other("conv2.weight|conv3.weight", with_layers(names, kPlain, dtypes, LAYERS));
  refuse_other("blob|shape", with_layers(kNames, shapes, dtypes, LAYERS));
  refuse_other("blob|dtype", with_layers(kNames, kPlain, wide, LAYERS));
  refuse_other("conv1.weight|fc.weight", with_layers(order, kPlain, dtypes, LAYERS));
  refuse_other("2|3", with_layers(kNames, kPlain, dtypes, 2));
  refuse_other("layers", with_layers(kNames, kPlain, dtypes, 0));
  /* Strides are the caller's. */
  struct other plain = with_layers(kNames, kPlain, dtypes, LAYERS);
  assert_ok(restore_copy(plain.masking, good, good_length));
  spk_masking_release(plain.masking);
  spk_schedule_release(plain.schedule);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_restored_run_goes_on_bit_for_bit),
      TEST(any_state_can_be_saved),
      BLOB_TEST(every_damaged_byte_is_noticed),
      BLOB_TEST(every_length_but_its_own_is_refused),
      BLOB_TEST(blobs_are_refused_with_a_reason),
      BLOB_TEST(saving_needs_room),
      BLOB_TEST(other_modes_do_not_fit),
      BLOB_TEST(another_seed_is_replaced),
      BLOB_TEST(another_kind_of_schedule_does_not_fit),
      BLOB_TEST(other_layers_do_not_fit),
  };
  return exit_code(cmocka_run_group_tests(tests, NULL, NULL));
}
