// Randomised suite of dynamic sparse training: whole runs against an independent oracle.
//
//     training_property [--cases N] [--seed S] [--only SEED]
//
// A case is one number, drawn from the base seed and its turn; --only repeats it alone.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../property/options.hpp"
#include "checks.hpp"

namespace training {

namespace {

constexpr int64_t kDefaultCases = 10000;
constexpr uint64_t kDefaultSeed = 20261121;
constexpr int64_t kMostFailures = 10;
// One case in so many has layers that cross the pieces into which the library may cut its work.
constexpr int64_t kLargeRarity = 200;
// Of a hundred questions, so many may stay open.
constexpr double kMostDoubts = 2;

// One run: the first masks, then updates with steps and what else happens in training.
void train(Case &c, Doubts &doubts) {
  World world(c);
  check_initialise(world);
  const int64_t updates = c.random.between(1, 4);
  for (int64_t u = 0; u < updates; ++u) {
    for (int64_t s = c.random.between(0, 3); s > 0; --s) check_step(world);
    if (c.random.one_in(6)) check_apply(world);
    if (c.random.one_in(8)) check_removal(world);
    if (c.random.one_in(6)) world.restore(world.save(), true);
    check_update(world, doubts);
  }
}

class Runner {
 public:
  explicit Runner(const prop::Contexts &contexts) : contexts_(contexts) {}

  void run(uint64_t seed) {
    ++cases_;
    std::string description;
    const std::string problem = attempt(seed, false, description);
    if (problem.empty()) return;
    ++failed_;
    attempt(seed, true, description);
    std::printf("FAILED --only %llu\n%s  %s\n", static_cast<unsigned long long>(seed),
                description.c_str(), problem.c_str());
    std::fflush(stdout);
  }

  void tell(uint64_t seed) {
    std::string description;
    ++cases_;
    const std::string problem = attempt(seed, true, description);
    if (!problem.empty()) ++failed_;
    std::printf("%s  %s\n", description.c_str(), problem.empty() ? "passed" : problem.c_str());
  }

  int64_t failed() const { return failed_; }

  int finish() {
    std::printf("%lld cases, %lld failed; %lld of %lld counts left to the library\n",
                static_cast<long long>(cases_), static_cast<long long>(failed_),
                static_cast<long long>(doubts_.doubts), static_cast<long long>(doubts_.questions));
    const double share = 100 * static_cast<double>(doubts_.doubts);
    if (cases_ > 100 && share > kMostDoubts * static_cast<double>(doubts_.questions)) {
      std::printf("too many counts were left to the library\n");
      return EXIT_FAILURE;
    }
    return failed_ == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  std::string attempt(uint64_t seed, bool talking, std::string &description) {
    prop::Random choices(~seed);
    const bool large = choices.one_in(kLargeRarity);
    const auto layout =
        static_cast<prop::LayoutClass>(choices.between(prop::kContiguous, prop::kNegative));
    std::string problem;
    {
      Case c(seed, SPK_F32, layout, large, talking, contexts_);
      try {
        train(c, doubts_);
      } catch (const prop::Mismatch &mismatch) {
        problem = mismatch.what();
      }
      if (talking) description = c.description();
    }
    const int64_t left = spk_live_handles() - contexts_.handles();
    if (problem.empty() && left != 0) problem = std::to_string(left) + " handles leaked";
    return problem;
  }

  const prop::Contexts &contexts_;
  Doubts doubts_;
  int64_t cases_ = 0;
  int64_t failed_ = 0;
};

int run(const prop::Options &options) {
  const std::string wrong = check_training_oracle();
  if (!wrong.empty()) {
    std::printf("the oracle itself is wrong: %s\n", wrong.c_str());
    return EXIT_FAILURE;
  }
  int result = EXIT_FAILURE;
  {
    const prop::Contexts contexts;
    Runner runner(contexts);
    if (options.only) {
      runner.tell(options.only_seed);
      return runner.finish();
    }
    for (int64_t turn = 0; turn < options.cases && runner.failed() < kMostFailures; ++turn) {
      runner.run(prop::mix(prop::mix(options.seed) ^ static_cast<uint64_t>(turn)));
    }
    result = runner.finish();
  }
  if (spk_live_handles() == 0) return result;
  std::printf("%lld handles are alive in the end\n", static_cast<long long>(spk_live_handles()));
  return EXIT_FAILURE;
}

}  // namespace

}  // namespace training

int main(int argc, char **argv) {
  prop::Options options{training::kDefaultCases, training::kDefaultSeed};
  if (!prop::parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: training_property [--cases N] [--seed S] [--only SEED]\n");
    return EXIT_FAILURE;
  }
  return training::run(options);
}
