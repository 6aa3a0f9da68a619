// Small work: what a call and a handle cost beyond the arithmetic.
#include <cmath>
#include <memory>

#include "case.hpp"
#include "layout.hpp"
#include "random_data.hpp"
#include "session.hpp"
#include "skip.hpp"

namespace bench {
namespace {

constexpr int64_t kRows = 64;
constexpr int64_t kCols = 64;
constexpr int64_t kBlock = 8;

// A matrix in blocks of 1x8 and its elements in scopes of 1x4.
class Subject {
 public:
  Subject(const Setting &setting, int64_t rows)
      : dtype_(setting.pool.dtype()),
        session_(setting.execution),
        block_(make_block(dtype_, {{rows, kCols}, {}, {1, kBlock}})),
        elements_(make_block(dtype_, {{rows, kCols}, {}, {1, 1}})),
        leaf_(leaf_buffer(setting.pool, 0, rows * kCols)),
        norms_(spk_block_numblk(block_.get()) * dtype_.score_size()),
        mask_(spk_block_numblk(block_.get())),
        threshold_(std::sqrt(static_cast<double>(kBlock))) {
    const int64_t scope[2] = {1, 4};
    check(spk_scope_create(elements_.get(), 2, scope, nullptr, scope_.out()));
    fill_mask(mask_.as<uint8_t>(), spk_block_numblk(block_.get()));
  }

  int64_t peak_bytes() const { return session_.peak_bytes(); }

  void norms() {
    const spk_buffer out = array(norms_.as(), dtype_.score_code());
    check(spk_block_norms(session_.context(), block_.get(), &leaf_, 1, 2, &out));
  }
  void soft_threshold() {
    const spk_buffer thresholds = array_buffer(&threshold_, 1, SPK_F64);
    check(spk_block_soft_threshold(session_.context(), block_.get(), &leaf_, nullptr, 1,
                                   &thresholds, nullptr, nullptr));
  }
  void mask() {
    const spk_buffer prune = array(mask_.as(), SPK_U8);
    check(spk_block_apply_mask(session_.context(), block_.get(), &leaf_, nullptr, 1, &prune));
  }
  void keep_top() {
    const int64_t kept = 2;
    check(spk_scope_keep_top(session_.context(), scope_.get(), &leaf_, nullptr, 1, &kept, 1,
                             nullptr, nullptr));
  }

 private:
  spk_buffer array(void *data, int32_t code) const {
    return array_buffer(data, spk_block_numblk(block_.get()), code);
  }

  Dtype dtype_;
  Session session_;
  BlockHandle block_;
  BlockHandle elements_;
  ScopeHandle scope_;
  spk_buffer leaf_;
  Memory norms_;
  Memory mask_;
  double threshold_;
};

struct Operation {
  const char *name;
  const char *layout;
  void (Subject::*run)();
};

constexpr Operation kOperations[] = {
    {"norms p=2", "64x64, blocks 1x8", &Subject::norms},
    {"soft_threshold", "64x64, blocks 1x8", &Subject::soft_threshold},
    {"apply_mask", "64x64, blocks 1x8", &Subject::mask},
    {"keep 2:4", "64x64, contiguous", &Subject::keep_top},
};

// The yardstick is the same call with twice the rows. Both fit in the first cache, so the
// difference is the arithmetic of the first, and what is left of it is what a call costs.
Trial make_call_trial(const Setting &setting, const Operation &operation) {
  constexpr int64_t kNumel = kRows * kCols;
  if (setting.pool.numel() < 2 * kNumel) throw Skip("too little data for twice 64x64");
  auto once = std::make_shared<Subject>(setting, kRows);
  auto twice = std::make_shared<Subject>(setting, 2 * kRows);
  Trial trial;
  trial.bytes = kNumel * setting.pool.dtype().size;
  trial.traffic = 0;
  trial.restore = [&pool = setting.pool, execution = setting.execution, bytes = trial.bytes] {
    pool.restore(execution, 2 * bytes);
  };
  trial.operation = [once, run = operation.run] { ((*once).*run)(); };
  trial.yardstick = [twice, run = operation.run] { ((*twice).*run)(); };
  trial.yardstick_name = "arithmetic";
  trial.peak_bytes = [once] { return once->peak_bytes(); };
  return trial;
}

void create_handles(const Dtype &dtype) {
  const int64_t scope_shape[2] = {1, 4};
  const BlockHandle block = make_block(dtype, {{kRows, kCols}, {}, {1, 1}});
  ScopeHandle scope;
  check(spk_scope_create(block.get(), 2, scope_shape, nullptr, scope.out()));
}

Trial make_handles_trial(const Setting &setting) {
  Trial trial;
  trial.calls = 100;
  trial.restore = [] {};
  trial.operation = [dtype = setting.pool.dtype(), calls = trial.calls] {
    for (int64_t i = 0; i < calls; ++i) create_handles(dtype);
  };
  trial.peak_bytes = [] { return int64_t{0}; };
  return trial;
}

}  // namespace

std::vector<Case> small_cases() {
  constexpr double kCallGoal = 2;
  constexpr double kHandlesGoal = 3;
  std::vector<Case> cases;
  for (const Operation &operation : kOperations) {
    cases.push_back(
        {"small", operation.name, operation.layout, Figure::kOverhead, kCallGoal, false,
         [&operation](const Setting &setting) { return make_call_trial(setting, operation); }});
  }
  cases.push_back({"small", "create and release", "view, block, scope", Figure::kTime, kHandlesGoal,
                   false, make_handles_trial});
  return cases;
}

}  // namespace bench
