// Block operations on every layout.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "case.hpp"
#include "layout.hpp"
#include "random_data.hpp"
#include "session.hpp"

namespace bench {
namespace {

// What an operation works on. `array` is its norms, multipliers or mask, one for each block.
struct Subject {
  Subject(const Setting &setting, const Layout &layout)
      : pool(setting.pool),
        session(setting.execution),
        block(make_block(pool.dtype(), layout)),
        leaf(leaf_buffer(pool, 0, layout.numel())) {}

  int64_t blocks() const { return spk_block_numblk(block.get()); }
  // About half of the blocks have a smaller norm.
  double middling_norm() const {
    const auto numel = static_cast<double>(spk_block_numel_per_block(block.get()));
    return root_mean_square(pool.dtype(), pool.pristine(), leaf.numel) * std::sqrt(numel);
  }

  const Pool &pool;
  Session session;
  BlockHandle block;
  spk_buffer leaf;
  Memory memory;
  spk_buffer array = {};
};

void make_score_array(Subject &subject) {
  const Dtype &dtype = subject.pool.dtype();
  subject.memory = Memory(subject.blocks() * dtype.score_size());
  subject.array = array_buffer(subject.memory.as(), subject.blocks(), dtype.score_code());
}

void make_multipliers(Subject &subject) {
  make_score_array(subject);
  const Dtype score_dtype = {subject.array.dtype, "", 0};
  fill_multipliers(score_dtype, subject.array.data, subject.blocks());
}

void make_mask(Subject &subject) {
  subject.memory = Memory(subject.blocks());
  subject.array = array_buffer(subject.memory.as(), subject.blocks(), SPK_U8);
  fill_mask(subject.memory.as<uint8_t>(), subject.blocks());
}

// One for each block, of which about half are below it.
void make_thresholds(Subject &subject) {
  make_score_array(subject);
  if (subject.array.dtype == SPK_F64) {
    std::fill_n(subject.memory.as<double>(), subject.blocks(), subject.middling_norm());
  } else {
    std::fill_n(subject.memory.as<float>(), subject.blocks(),
                static_cast<float>(subject.middling_norm()));
  }
}

template <int P>
void run_norms(Subject &s) {
  const double p = P > 0 ? P : std::numeric_limits<double>::infinity();
  check(spk_block_norms(s.session.context(), s.block.get(), &s.leaf, 1, p, &s.array));
}

void run_soft_threshold(Subject &s) {
  check(spk_block_soft_threshold(s.session.context(), s.block.get(), &s.leaf, nullptr, 1, &s.array,
                                 nullptr, nullptr));
}

void run_hard_threshold(Subject &s) {
  check(spk_block_hard_threshold(s.session.context(), s.block.get(), &s.leaf, nullptr, 1, &s.array,
                                 nullptr, nullptr));
}

void run_apply_multiplier(Subject &s) {
  check(spk_block_apply_multiplier(s.session.context(), s.block.get(), &s.leaf, nullptr, 1,
                                   &s.array));
}

void run_apply_mask(Subject &s) {
  check(spk_block_apply_mask(s.session.context(), s.block.get(), &s.leaf, nullptr, 1, &s.array));
}

struct Operation {
  const char *group;
  const char *name;
  bool writes;
  void (*prepare)(Subject &);
  void (*run)(Subject &);
};

constexpr Operation kOperations[] = {
    {"norms", "norms p=2", false, make_score_array, run_norms<2>},
    {"norms", "norms p=1", false, make_score_array, run_norms<1>},
    {"norms", "norms p=inf", false, make_score_array, run_norms<0>},
    {"thresholds", "soft_threshold", true, make_thresholds, run_soft_threshold},
    {"thresholds", "hard_threshold", true, make_thresholds, run_hard_threshold},
    {"masks", "apply_multiplier", true, make_multipliers, run_apply_multiplier},
    {"masks", "apply_mask", true, make_mask, run_apply_mask},
};

double goal_of(const Operation &operation, BlockKind kind) {
  if (!operation.writes) return kind == BlockKind::kElement ? 1.5 : 0.8;
  switch (kind) {
    case BlockKind::kElement:
      return 2.2;
    case BlockKind::kBeyondCache:
      return 1.7;
    default:
      return 1.2;
  }
}

Trial make_trial(const Setting &setting, const Operation &operation, const LayoutFamily &family) {
  const Layout layout = family.fit(setting.pool.numel());
  auto subject = std::make_shared<Subject>(setting, layout);
  operation.prepare(*subject);
  Trial trial = against_sweep(setting, layout.numel() * setting.pool.dtype().size);
  trial.traffic = static_cast<double>(trial.bytes) * (operation.writes ? 2 : 1);
  trial.operation = [subject, run = operation.run] { run(*subject); };
  trial.peak_bytes = [subject] { return subject->session.peak_bytes(); };
  return trial;
}

bool any_size(const Operation &operation, const LayoutFamily &family) {
  const std::string name = operation.name;
  if (family.name == "rows 1x64") return name == "norms p=2" || name == "soft_threshold";
  return family.name == "elements" && name == "apply_mask";
}

}  // namespace

std::vector<Case> block_cases() {
  std::vector<Case> cases;
  const auto add = [&](const Operation &operation, const LayoutFamily &family,
                       std::optional<double> goal) {
    cases.push_back({operation.group, operation.name, family.name, Figure::kRatio, goal,
                     any_size(operation, family), [&operation, &family](const Setting &setting) {
                       return make_trial(setting, operation, family);
                     }});
  };
  for (const Operation &operation : kOperations) {
    for (const LayoutFamily &family : layout_families()) {
      add(operation, family, goal_of(operation, family.kind));
    }
    for (const LayoutFamily &family : further_families()) add(operation, family, {});
  }
  return cases;
}

}  // namespace bench
