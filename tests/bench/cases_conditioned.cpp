// Conditioned soft thresholding to full accuracy.
#include <cmath>
#include <memory>

#include "case.hpp"
#include "layout.hpp"
#include "random_data.hpp"
#include "session.hpp"

namespace bench {
namespace {

// As many steps as can be useful.
constexpr int32_t kMaxSteps = 64;

struct Subject {
  Subject(const Setting &setting, const Layout &layout)
      : session(setting.execution),
        block(make_block(setting.pool.dtype(), layout)),
        leaf(leaf_buffer(setting.pool, 0, layout.numel())),
        conditioners(leaf) {
    // Read only; the interface has one type for both.
    conditioners.data = const_cast<void *>(setting.pool.conditioners());
  }

  Session session;
  BlockHandle block;
  spk_buffer leaf;
  spk_buffer conditioners;
  double threshold = 0;
};

// Low enough that most blocks survive, and have to be solved for.
double threshold_of(Pool &pool, const Layout &layout, const spk_block *block) {
  const double rms =
      root_mean_square(pool.dtype(), pool.pristine(), pool.conditioners(), layout.numel());
  return 0.5 * rms * std::sqrt(static_cast<double>(spk_block_numel_per_block(block)));
}

void run(Subject &subject) {
  const spk_buffer threshold = array_buffer(&subject.threshold, 1, SPK_F64);
  spk_soft_options options = SPK_SOFT_OPTIONS_INIT;
  options.conditioners = &subject.conditioners;
  options.atol = 0;
  options.max_iter = kMaxSteps;
  const spk_status status =
      spk_block_soft_threshold(subject.session.context(), subject.block.get(), &subject.leaf,
                               nullptr, 1, &threshold, &options, nullptr);
  // Asked for the last bit, a few blocks of many may take all the steps there are.
  if (status != SPK_NOT_CONVERGED) check(status);
}

Trial make_trial(const Setting &setting, const LayoutFamily &family) {
  const Layout layout = family.fit(setting.pool.numel());
  auto subject = std::make_shared<Subject>(setting, layout);
  subject->threshold = threshold_of(setting.pool, layout, subject->block.get());
  constexpr bool kReadsConditioners = true;  // as the operation does
  Trial trial =
      against_sweep(setting, layout.numel() * setting.pool.dtype().size, kReadsConditioners);
  trial.traffic = 3 * static_cast<double>(trial.bytes);
  trial.operation = [subject] { run(*subject); };
  trial.peak_bytes = [subject] { return subject->session.peak_bytes(); };
  return trial;
}

}  // namespace

std::vector<Case> conditioned_cases() {
  struct Row {
    const char *layout;
    double goal;
  };
  std::vector<Case> cases;
  for (const auto &[layout, goal] :
       {Row{"rows 1x64", 5}, Row{"tiles 16x16", 5}, Row{"elements", 2}}) {
    const LayoutFamily &family = layout_family(layout);
    cases.push_back({"conditioned", "conditioned soft_threshold", layout, Figure::kRatio, goal,
                     false,
                     [&family](const Setting &setting) { return make_trial(setting, family); }});
  }
  return cases;
}

}  // namespace bench
