#include "workload.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <compare>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>

namespace {

void check(spk_status status, const char *what) {
  if (status == SPK_OK || status == SPK_NOT_CONVERGED) return;
  char message[SPK_MESSAGE_SIZE];
  spk_last_error_copy(message, sizeof message, nullptr);
  std::fprintf(stderr, "%s: %s: %s\n", what, spk_status_string(status), message);
  std::exit(1);
}

// xorshift64*: the same data in every run.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

using Bytes = std::vector<unsigned char>;

size_t size_of(int32_t dtype) {
  return static_cast<size_t>(dtype & 0xff) / 8;
}

// Numbers of many magnitudes, with ties and zeros; finite in every dtype. 16-bit words are made
// from the upper half of a float, which is a bf16, and for f16 from small integers times 2^-6.
void put(Bytes &bytes, size_t i, int32_t dtype, double value) {
  unsigned char *at = bytes.data() + i * size_of(dtype);
  if (dtype == SPK_F64) {
    std::memcpy(at, &value, 8);
    return;
  }
  const auto single = static_cast<float>(value);
  uint32_t word;
  std::memcpy(&word, &single, 4);
  if (dtype == SPK_F32) {
    std::memcpy(at, &word, 4);
  } else if (dtype == SPK_BF16) {
    const auto half = static_cast<uint16_t>(word >> 16);
    std::memcpy(at, &half, 2);
  } else {
    // Normal f16 numbers only: exponent rebiased, mantissa cut.
    const uint32_t exponent = (word >> 23) & 0xff;
    const uint32_t clamped = exponent < 113 ? 0 : exponent - 112;
    const auto half =
        static_cast<uint16_t>((word >> 31) << 15 | clamped << 10 | ((word >> 13) & 0x3ff));
    std::memcpy(at, &half, 2);
  }
}

struct Values {
  int32_t dtype;
  size_t count;
  uint64_t seed;
  bool positive;
  auto operator<=>(const Values &) const = default;
};

Bytes make_values(const Values &wanted) {
  Random random(wanted.seed);
  Bytes bytes(wanted.count * size_of(wanted.dtype));
  for (size_t i = 0; i < wanted.count; ++i) {
    const double magnitude = std::exp2(random.uniform() * 12 - 9) * (1 + random.uniform());
    const uint64_t kind = random.next() % 16;
    double value = kind < 3 ? 0.25 * static_cast<double>(random.next() % 8) : magnitude;
    if (wanted.positive) value = value + 0.0625;
    if (!wanted.positive && kind % 2) value = -value;
    put(bytes, i, wanted.dtype, value);
  }
  return bytes;
}

// Made once: all runs start from the same.
const Bytes &random_values(const Values &wanted) {
  static std::map<Values, Bytes> made;
  const auto found = made.find(wanted);
  return found != made.end() ? found->second
                             : made.emplace(wanted, make_values(wanted)).first->second;
}

// After FNV-1a, of words of eight bytes, and with upper halves mixed into lower ones, where products
// never move them.
uint64_t hash_of(const Bytes &bytes) {
  uint64_t hash = 1469598103934665603ULL;
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    hash = (hash ^ word) * 1099511628211ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

// A view over its own buffer, with the conditioners of its elements.
struct Tensor {
  int32_t dtype;
  std::vector<int64_t> shape;
  std::vector<int64_t> stride;
  int64_t offset;
  size_t numel;  // of the buffer
};

struct Structure {
  std::string name;
  std::vector<Tensor> leaves;
  std::vector<std::vector<int64_t>> block_shapes;
  std::vector<int32_t> orders;  // one after the other; empty = identity
  std::vector<int64_t> scope_shape;
};

class Subject {
 public:
  Subject(const Structure &structure, uint64_t seed) : structure_(structure) {
    std::vector<spk_block *> members;
    for (size_t i = 0; i < structure.leaves.size(); ++i) {
      const Tensor &t = structure.leaves[i];
      spk_view *view = nullptr;
      check(spk_view_create(t.dtype, static_cast<int32_t>(t.shape.size()), t.shape.data(),
                            t.stride.empty() ? nullptr : t.stride.data(), t.offset, &view),
            "view");
      spk_block *member = nullptr;
      const auto &shape = structure.block_shapes[i];
      check(spk_block_create(view, static_cast<int32_t>(shape.size()), shape.data(), nullptr,
                             &member),
            "block");
      spk_view_release(view);
      members.push_back(member);
      original_.push_back(random_values({t.dtype, t.numel, seed + i, false}));
      metric_.push_back(random_values({t.dtype, t.numel, seed + 100 + i, true}));
    }
    check(spk_block_couple(members.data(), static_cast<int32_t>(members.size()),
                           structure.orders.empty() ? nullptr : structure.orders.data(), nullptr,
                           &block_),
          "couple");
    for (spk_block *member : members) spk_block_release(member);
    check(spk_scope_create(block_, static_cast<int32_t>(structure.scope_shape.size()),
                           structure.scope_shape.data(), nullptr, &scope_),
          "scope");
    factors_ = random_values({SPK_F32, static_cast<size_t>(spk_block_numblk(block_)), 7, false});
    // Near the median norm: a good share of blocks on either side.
    threshold_ = 0.6 * std::sqrt(static_cast<double>(spk_block_numel_per_block(block_)));
  }
  ~Subject() {
    spk_scope_release(scope_);
    spk_block_release(block_);
  }
  Subject(const Subject &) = delete;
  Subject &operator=(const Subject &) = delete;

  void run(spk_context *context, std::vector<Fingerprint> *out) {
    context_ = context;
    out_ = out;
    measure();
    write();
    select();
  }

 private:
  void measure() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (double p : {0.0, 1.0, 2.0, 3.5, 0.3, kInfinity, -kInfinity}) {
      // Powers are slow; small structures take the same road, and p = 0.3 the one of 3.5.
      if (p == 3.5 && spk_block_numel(block_) > 60000) continue;
      if (p == 0.3 && spk_block_numel(block_) > 10000) continue;
      Bytes scores = block_scores();
      const spk_buffer result = score_buffer(scores);
      restore();
      check(spk_block_norms(context_, block_, leaves_.data(), count(), p, &result), "norms");
      record("norms p=" + std::to_string(p), scores);
    }
    Bytes scores = block_scores();
    const spk_buffer result = score_buffer(scores);
    restore();
    check(spk_block_min(context_, block_, leaves_.data(), count(), &result), "min");
    record("min", scores);
    check(spk_block_max(context_, block_, leaves_.data(), count(), &result), "max");
    record("max", scores);
  }

  void write() {
    const spk_buffer thresholds = {&threshold_, 1, SPK_F64, SPK_LAYOUT_VIEW, nullptr};
    restore();
    check(spk_block_hard_threshold(context_, block_, leaves_.data(), nullptr, count(), &thresholds,
                                   nullptr, nullptr),
          "hard_threshold");
    record_leaves("hard_threshold");
    restore();
    check(spk_block_soft_threshold(context_, block_, leaves_.data(), nullptr, count(), &thresholds,
                                   nullptr, nullptr),
          "soft_threshold");
    record_leaves("soft_threshold");

    std::vector<spk_buffer> metric = buffers(metric_);
    spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
    options.conditioners = metric.data();
    options.atol = 0.0;
    options.max_iter = 64;
    restore();
    check(spk_block_soft_threshold(context_, block_, leaves_.data(), nullptr, count(), &thresholds,
                                   &options, nullptr),
          "conditioned soft_threshold");
    record_leaves("conditioned soft_threshold");

    const spk_buffer multiplier = {factors_.data(), spk_block_numblk(block_), SPK_F32,
                                   SPK_LAYOUT_VIEW, nullptr};
    restore();
    check(
        spk_block_apply_multiplier(context_, block_, leaves_.data(), nullptr, count(), &multiplier),
        "apply_multiplier");
    record_leaves("apply_multiplier");
  }

  void select() {
    const int64_t n = spk_scope_numblk_per_scope(scope_);
    const int64_t half = n / 2;
    for (int32_t ties : {SPK_TIES_BY_POSITION, SPK_TIES_KEEP_ALL}) {
      spk_select_options options = {sizeof options, nullptr, nullptr, ties};
      restore();
      check(spk_scope_keep_top(context_, scope_, leaves_.data(), nullptr, count(), &half, 1,
                               &options, nullptr),
            "keep_top");
      record_leaves("keep_top ties=" + std::to_string(ties));
    }
    if (n < 2) return;
    Bytes mids(static_cast<size_t>(spk_scope_numscope(scope_)) *
               size_of(spk_scope_score_dtype(scope_)));
    const spk_buffer result = {mids.data(), spk_scope_numscope(scope_),
                               spk_scope_score_dtype(scope_), SPK_LAYOUT_VIEW, nullptr};
    restore();
    spk_score_source source = {sizeof source, leaves_.data(), nullptr, nullptr};
    const int64_t k = half > 0 ? half : 1;
    check(spk_scope_kth_mid(context_, scope_, &source, count(), &k, 1, 1.0, &result), "kth_mid");
    record("kth_mid", mids);
  }

  int32_t count() const { return static_cast<int32_t>(structure_.leaves.size()); }

  std::vector<spk_buffer> buffers(std::vector<Bytes> &data) {
    std::vector<spk_buffer> result;
    for (size_t i = 0; i < data.size(); ++i) {
      const Tensor &t = structure_.leaves[i];
      result.push_back(
          {data[i].data(), static_cast<int64_t>(t.numel), t.dtype, SPK_LAYOUT_VIEW, nullptr});
    }
    return result;
  }

  void restore() {
    current_ = original_;
    leaves_ = buffers(current_);
  }

  Bytes block_scores() {
    return Bytes(static_cast<size_t>(spk_block_numblk(block_)) *
                 size_of(spk_block_score_dtype(block_)));
  }
  spk_buffer score_buffer(Bytes &scores) {
    return {scores.data(), spk_block_numblk(block_), spk_block_score_dtype(block_), SPK_LAYOUT_VIEW,
            nullptr};
  }

  void record(const std::string &what, const Bytes &bytes) {
    out_->push_back({structure_.name + ": " + what, hash_of(bytes)});
  }
  void record_leaves(const std::string &what) {
    for (size_t i = 0; i < current_.size(); ++i) {
      record(what + ", leaf " + std::to_string(i), current_[i]);
    }
  }

  const Structure &structure_;
  std::vector<Bytes> original_;
  std::vector<Bytes> metric_;
  std::vector<Bytes> current_;
  std::vector<spk_buffer> leaves_;
  spk_block *block_ = nullptr;
  spk_scope *scope_ = nullptr;
  double threshold_ = 0.0;
  Bytes factors_;
  spk_context *context_ = nullptr;
  std::vector<Fingerprint> *out_ = nullptr;
};

// Layouts that take each road through the library: rows, tiles, columns, elements, short runs,
// blocks larger than a part, scopes larger than memory, transposed, reversed, padded, coupled.
std::vector<Structure> structures(int32_t dtype, const std::string &name) {
  auto matrix = [&](int64_t rows, int64_t cols) {
    return Tensor{dtype, {rows, cols}, {}, 0, static_cast<size_t>(rows * cols)};
  };
  const Tensor reversed = {dtype, {96, 80}, {-96, 1}, 95 * 96 + 3, 96 * 96 + 3};
  const Tensor transposed = {dtype, {80, 96}, {1, 96}, 0, 96 * 96};
  const Tensor strided = {dtype, {64, 4, 8, 2}, {64, 16, 1, 8}, 0, 64 * 64};
  return {
      {name + " rows 1x64", {matrix(300, 256)}, {{1, 64}}, {}, {1, -1}},
      {name + " rows 1x21", {matrix(300, 126)}, {{1, 21}}, {}, {100, 2}},
      {name + " rows 1x100", {matrix(300, 300)}, {{1, 100}}, {}, {1, -1}},
      {name + " rows 1x300", {matrix(300, 300)}, {{1, 300}}, {}, {100, 1}},
      {name + " rows 1x8", {matrix(300, 248)}, {{1, 8}}, {}, {1, -1}},
      {name + " rows 1x4", {matrix(300, 252)}, {{1, 4}}, {}, {1, -1}},
      {name + " tiles 4x4", {matrix(256, 252)}, {{4, 4}}, {}, {1, -1}},
      {name + " tiles 16x16", {matrix(256, 256)}, {{16, 16}}, {}, {}},
      {name + " tiles 20x24", {matrix(60, 264)}, {{20, 24}}, {}, {}},
      {name + " tiles 2x24", {matrix(12, 7200)}, {{2, 24}}, {}, {}},
      {name + " tiles 5x8", {matrix(20, 88)}, {{5, 8}}, {}, {}},
      {name + " tiles 12x32", {matrix(24, 352)}, {{12, 32}}, {}, {}},
      {name + " tiles 5x44", {matrix(10, 484)}, {{5, 44}}, {}, {}},
      {name + " tiles 128x64", {matrix(128, 192)}, {{128, 64}}, {}, {}},
      {name + " tiles 17x4", {matrix(34, 180)}, {{17, 4}}, {}, {}},
      {name + " tiles 3x3", {matrix(30, 99)}, {{3, 3}}, {}, {}},
      {name + " columns", {matrix(300, 200)}, {{-1, 1}}, {}, {1, 50}},
      {name + " long columns", {matrix(1500, 37)}, {{-1, 1}}, {}, {1, -1}},
      {name + " input channels",
       {{dtype, {300, 7, 3, 3}, {}, 0, 18900}},
       {{-1, 1, -1, -1}},
       {},
       {}},
      {name + " elements 2:4", {matrix(256, 256)}, {{1, 1}}, {}, {1, 4}},
      {name + " elements, scopes of 99", {matrix(60, 297)}, {{1, 1}}, {}, {1, 99}},
      {name + " elements along columns", {matrix(256, 256)}, {{1, 1}}, {}, {4, 1}},
      {name + " elements, one scope", {matrix(400, 400)}, {{1, 1}}, {}, {}},
      {name + " pairs, one scope", {matrix(500, 400)}, {{1, 2}}, {}, {}},
      {name + " tiles 10x10, one scope", {matrix(1000, 500)}, {{10, 10}}, {}, {}},
      {name + " large blocks", {matrix(4, 100000)}, {{1, -1}}, {}, {}},
      {name + " kernels 3x3", {{dtype, {20, 30, 3, 3}, {}, 0, 5400}}, {{1, 1, 3, 3}}, {}, {1, -1}},
      {name + " reversed rows", {reversed}, {{1, 16}}, {}, {-1, 1}},
      {name + " transposed tiles", {transposed}, {{8, 8}}, {}, {}},
      {name + " strided view", {strided}, {{1, 1, 1, 2}}, {}, {1, 1, 4, 1}},
      {name + " coupled", {matrix(96, 64), transposed}, {{1, 64}, {80, 1}}, {0, 1, 1, 0}, {}},
      {name + " coupled, large",
       {matrix(300, 1024), matrix(1024, 300)},
       {{1, 64}, {64, 1}},
       {0, 1, 1, 0},
       {}},
      {name + " coupled, four",
       {matrix(300, 256), matrix(256, 300), matrix(300, 256), matrix(256, 300)},
       {{1, 64}, {64, 1}, {1, 64}, {64, 1}},
       {0, 1, 1, 0, 0, 1, 1, 0},
       {}},
  };
}

}  // namespace

std::vector<Fingerprint> run_workload(spk_context *context, int rounding_mode) {
  std::vector<Fingerprint> result;
  const std::pair<int32_t, const char *> dtypes[] = {
      {SPK_F32, "f32"}, {SPK_F64, "f64"}, {SPK_F16, "f16"}, {SPK_BF16, "bf16"}};
  for (const auto &[dtype, name] : dtypes) {
    for (const Structure &structure : structures(dtype, name)) {
      Subject subject(structure, 42);
      const int mode = std::fegetround();
      std::fesetround(rounding_mode);
      subject.run(context, &result);
      if (std::fegetround() != rounding_mode) result.push_back({"rounding mode not restored", 0});
      std::fesetround(mode);
    }
  }
  return result;
}
