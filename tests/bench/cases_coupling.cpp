// Couplings of rows and columns, against the same operation on each leaf alone.
#include <cmath>
#include <memory>

#include "case.hpp"
#include "layout.hpp"
#include "random_data.hpp"
#include "session.hpp"

namespace bench {
namespace {

constexpr int64_t kBlock = 64;

// What is coupled.
struct Coupling {
  const char *layout;
  int leaves;
  bool whole_rows;  // blocks are whole rows, and whole columns of transposes, as of hidden neurons
};

constexpr Coupling kCouplings[] = {
    {"2 coupled leaves", 2, false},
    {"4 coupled leaves", 4, false},
    {"coupled neurons", 2, true},
};

// Leaves lie one after another in the working copy. Even ones have blocks of 1 x 64, or whole rows;
// odd ones are their transposes, with blocks of 64 x 1, and join with their axes exchanged.
class Subject {
 public:
  Subject(const Setting &setting, const Coupling &coupling)
      : pool_(setting.pool), session_(setting.execution) {
    Layout layout = matrix(pool_.numel() / coupling.leaves, 1, kBlock);
    if (coupling.whole_rows) layout.block[1] = layout.shape[1];
    for (int i = 0; i < coupling.leaves; ++i) add_leaf(layout, i);
    couple();
    make_arrays();
  }

  const Session &session() const { return session_; }
  int64_t numel() const { return spk_block_numel(coupling_.get()); }

  void norms_coupled() { norms(coupling_.get(), leaves_.data(), leaf_count()); }
  void norms_alone() {
    for (size_t i = 0; i < leaves_.size(); ++i) norms(blocks_[i].get(), &leaves_[i], 1);
  }
  void soft_threshold_coupled() {
    soft_threshold(coupling_.get(), leaves_.data(), leaf_count(), threshold_);
  }
  void soft_threshold_alone() {
    const double share = threshold_ / std::sqrt(static_cast<double>(leaf_count()));
    for (size_t i = 0; i < leaves_.size(); ++i) {
      soft_threshold(blocks_[i].get(), &leaves_[i], 1, share);
    }
  }
  void multiply_coupled() { multiply(coupling_.get(), leaves_.data(), leaf_count(), 0); }
  void multiply_alone() {
    for (size_t i = 0; i < leaves_.size(); ++i) multiply(blocks_[i].get(), &leaves_[i], 1, i % 2);
  }
  void mask_coupled() { mask(coupling_.get(), leaves_.data(), leaf_count(), 0); }
  void mask_alone() {
    for (size_t i = 0; i < leaves_.size(); ++i) mask(blocks_[i].get(), &leaves_[i], 1, i % 2);
  }

 private:
  int32_t leaf_count() const { return static_cast<int32_t>(leaves_.size()); }

  void add_leaf(Layout layout, int index) {
    if (index % 2 == 1) {
      std::swap(layout.shape[0], layout.shape[1]);
      std::swap(layout.block[0], layout.block[1]);
    }
    leaves_.push_back(leaf_buffer(pool_, index * layout.numel(), layout.numel()));
    blocks_.push_back(make_block(pool_.dtype(), layout));
  }

  void couple() {
    std::vector<spk_block *> members;
    std::vector<int32_t> orders;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      members.push_back(blocks_[i].get());
      const bool exchanged = i % 2 == 1;
      orders.push_back(exchanged ? 1 : 0);
      orders.push_back(exchanged ? 0 : 1);
    }
    check(spk_block_couple(members.data(), leaf_count(), orders.data(), nullptr, coupling_.out()));
  }

  void make_arrays() {
    const int64_t blocks = spk_block_numblk(coupling_.get());
    norms_ = Memory(blocks * pool_.dtype().score_size());
    const auto numel = static_cast<double>(spk_block_numel_per_block(coupling_.get()));
    threshold_ =
        root_mean_square(pool_.dtype(), pool_.pristine(), leaves_[0].numel) * std::sqrt(numel);
    // Each leaf alone reads a mask, or multipliers, in its own order: the same blocks live and die.
    const int64_t *grid = spk_block_grid_shape(coupling_.get());
    for (Memory &mask : masks_) mask = Memory(blocks);
    for (Memory &factors : factors_) factors = Memory(blocks * static_cast<int64_t>(sizeof(float)));
    fill_mask(masks_[0].as<uint8_t>(), blocks);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t transposed = i % grid[1] * grid[0] + i / grid[1];
      masks_[1].as<uint8_t>()[transposed] = masks_[0].as<uint8_t>()[i];
      factors_[0].as<float>()[i] = factors_[1].as<float>()[transposed] =
          1.0F + static_cast<float>(i % 100) / 1000.0F;
    }
  }

  void norms(const spk_block *block, const spk_buffer *leaves, int32_t count) {
    const spk_buffer out =
        array_buffer(norms_.as(), spk_block_numblk(block), pool_.dtype().score_code());
    check(spk_block_norms(session_.context(), block, leaves, count, 2, &out));
  }

  void soft_threshold(const spk_block *block, const spk_buffer *leaves, int32_t count,
                      double threshold) {
    const spk_buffer thresholds = array_buffer(&threshold, 1, SPK_F64);
    check(spk_block_soft_threshold(session_.context(), block, leaves, nullptr, count, &thresholds,
                                   nullptr, nullptr));
  }

  void mask(const spk_block *block, const spk_buffer *leaves, int32_t count, size_t which) {
    const spk_buffer prune = array_buffer(masks_[which].as(), spk_block_numblk(block), SPK_U8);
    check(spk_block_apply_mask(session_.context(), block, leaves, nullptr, count, &prune));
  }

  void multiply(const spk_block *block, const spk_buffer *leaves, int32_t count, size_t which) {
    const spk_buffer factors = array_buffer(factors_[which].as(), spk_block_numblk(block), SPK_F32);
    check(spk_block_apply_multiplier(session_.context(), block, leaves, nullptr, count, &factors));
  }

  const Pool &pool_;
  Session session_;
  std::vector<spk_buffer> leaves_;
  std::vector<BlockHandle> blocks_;
  BlockHandle coupling_;
  Memory norms_;
  Memory masks_[2];
  Memory factors_[2];
  double threshold_ = 0;
};

struct Operation {
  const char *name;
  int traffic;  // times the tensor is read or written
  void (Subject::*coupled)();
  void (Subject::*alone)();
};

constexpr Operation kOperations[] = {
    {"norms p=2", 1, &Subject::norms_coupled, &Subject::norms_alone},
    {"soft_threshold", 2, &Subject::soft_threshold_coupled, &Subject::soft_threshold_alone},
    {"apply_multiplier", 2, &Subject::multiply_coupled, &Subject::multiply_alone},
    {"apply_mask", 2, &Subject::mask_coupled, &Subject::mask_alone},
};

Trial make_trial(const Setting &setting, const Operation &operation, const Coupling &coupling) {
  auto subject = std::make_shared<Subject>(setting, coupling);
  Trial trial;
  trial.bytes = subject->numel() * setting.pool.dtype().size;
  trial.traffic = static_cast<double>(trial.bytes) * operation.traffic;
  trial.restore = [&pool = setting.pool, execution = setting.execution, bytes = trial.bytes] {
    pool.restore(execution, bytes);
  };
  trial.operation = [subject, run = operation.coupled] { ((*subject).*run)(); };
  trial.yardstick = [subject, run = operation.alone] { ((*subject).*run)(); };
  trial.yardstick_name = "uncoupled";
  trial.peak_bytes = [subject] { return subject->session().peak_bytes(); };
  return trial;
}

}  // namespace

std::vector<Case> coupling_cases() {
  constexpr double kGoal = 1.3;
  std::vector<Case> cases;
  for (const Coupling &coupling : kCouplings) {
    for (const Operation &operation : kOperations) {
      cases.push_back({"couplings", operation.name, coupling.layout, Figure::kRatio, kGoal, false,
                       [&operation, &coupling](const Setting &setting) {
                         return make_trial(setting, operation, coupling);
                       }});
    }
  }
  return cases;
}

}  // namespace bench
