// Randomised property suite: every operation against an independent oracle.
//
//     property [--cases N] [--seed S] [--only SEED]
//
// A case is one number. It is drawn from the base seed and its turn, and it names its cell of the
// table (dtype, operation, layout class) by its remainder, so that the cells take turns and
// --only SEED repeats one case without anything else. A new operation makes new cells, and so gives
// old numbers another meaning.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "operations.hpp"
#include "options.hpp"
#include "self_check.hpp"

namespace prop {

namespace {

constexpr int kDtypes[] = {SPK_F32, SPK_F64, SPK_F16, SPK_BF16};
constexpr const char *kClassNames[] = {"contiguous", "strided", "permuted", "negative", "coupled"};
constexpr int64_t kDefaultCases = 1200000;
constexpr uint64_t kDefaultSeed = 20240229;
constexpr int64_t kMostFailures = 10;
// One case in so many is large.
constexpr int64_t kLargeRarity = 1000;
// Neighbouring turns work on different operations; a prime that divides no number of cells.
constexpr uint64_t kStride = 7919;

struct Cell {
  const Operation *operation;
  int dtype;
  LayoutClass layout_class;
};

Operations all_operations() {
  Operations all;
  for (const Operations &some :
       {measuring_operations(), writing_operations(), soft_operations(), arranging_operations(),
        describing_operations(), selecting_operations(), one_call_operations(),
        refusing_operations()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<Cell> all_cells(const Operations &operations) {
  std::vector<Cell> cells;
  for (const Operation &operation : operations) {
    for (int dtype : kDtypes) {
      for (int k = 0; k < kLayoutClasses; ++k) {
        const LayoutClass layout_class = static_cast<LayoutClass>(k);
        if (layout_class == kCoupled && !operation.couples) continue;
        cells.push_back({&operation, dtype, layout_class});
      }
    }
  }
  return cells;
}

class Runner {
 public:
  explicit Runner(const Contexts &contexts)
      : operations_(all_operations()),
        cells_(all_cells(operations_)),
        counts_(cells_.size(), 0),
        contexts_(contexts) {}

  // The seed of a case: its remainder is the cell whose turn it is.
  uint64_t seed_of(uint64_t base, int64_t turn) const {
    const uint64_t count = cells_.size();
    const uint64_t drawn = mix(mix(base) ^ static_cast<uint64_t>(turn)) >> 16;
    return drawn / count * count + static_cast<uint64_t>(turn) * kStride % count;
  }

  void run(uint64_t seed) {
    std::string description;
    const std::string problem = attempt(seed, false, description);
    ++counts_[seed % cells_.size()];
    if (problem.empty()) {
      ++passed_;
      return;
    }
    ++failed_;
    const std::string again = attempt(seed, true, description);
    std::printf("FAILED --only %llu\n%s  %s\n", static_cast<unsigned long long>(seed),
                description.c_str(), problem.c_str());
    if (again != problem) std::printf("  a second run: %s\n", again.c_str());
    std::fflush(stdout);
  }

  void tell(uint64_t seed) {
    std::string description;
    const std::string problem = attempt(seed, true, description);
    ++(problem.empty() ? passed_ : failed_);
    std::printf("%s  %s\n", description.c_str(), problem.empty() ? "passed" : problem.c_str());
  }

  // Prints how often each cell ran; false if one never did.
  bool print_table() const {
    std::printf("%-18s %-5s", "operation", "dtype");
    for (const char *name : kClassNames) std::printf(" %10s", name);
    bool full = true;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const Cell &cell = cells_[i];
      if (cell.layout_class == kContiguous) {
        std::printf("\n%-18s %-5s", cell.operation->name, dtype_name(cell.dtype));
      }
      std::printf(" %10lld", static_cast<long long>(counts_[i]));
      full = full && counts_[i] > 0;
    }
    std::printf("\n");
    if (!full) std::printf("some cells of the table are empty\n");
    return full;
  }

  int64_t failed() const { return failed_; }
  void fail(const std::string &problem) {
    ++failed_;
    std::printf("FAILED: %s\n", problem.c_str());
  }
  int finish() const {
    std::printf("%lld passed, %lld failed\n", static_cast<long long>(passed_),
                static_cast<long long>(failed_));
    return failed_ == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  std::string attempt(uint64_t seed, bool talking, std::string &description) const {
    const Cell &cell = cells_[seed % cells_.size()];
    const bool large = Random(~seed).one_in(kLargeRarity);
    std::string problem;
    {
      Case c(seed, cell.dtype, cell.layout_class, large, talking, contexts_);
      try {
        cell.operation->run(c);
      } catch (const Mismatch &mismatch) {
        problem = mismatch.what();
      }
      if (talking) {
        description = "  " + std::string(cell.operation->name) + " " + dtype_name(cell.dtype) +
                      " " + kClassNames[cell.layout_class] + "\n" + c.description();
      }
    }
    const int64_t left = spk_live_handles() - contexts_.handles();
    if (problem.empty() && left != 0) problem = std::to_string(left) + " handles leaked";
    return problem;
  }

  Operations operations_;
  std::vector<Cell> cells_;
  std::vector<int64_t> counts_;
  const Contexts &contexts_;
  int64_t passed_ = 0;
  int64_t failed_ = 0;
};

int run(const Options &options) {
  const std::string wrong = check_oracle();
  if (!wrong.empty()) {
    std::printf("the oracle itself is wrong: %s\n", wrong.c_str());
    return EXIT_FAILURE;
  }
  std::printf("%s\n", spk_build_info());
  int result;
  {
    const Contexts contexts;
    Runner runner(contexts);
    if (options.only) {
      runner.tell(options.only_seed);
      return runner.finish();
    }
    for (int64_t turn = 0; turn < options.cases && runner.failed() < kMostFailures; ++turn) {
      runner.run(runner.seed_of(options.seed, turn));
    }
    const bool stopped = runner.failed() >= kMostFailures;
    if (!stopped && !runner.print_table()) runner.fail("empty cells");
    result = runner.finish();
  }
  if (spk_live_handles() != 0) {
    std::fprintf(stderr, "%lld handles are alive in the end\n",
                 static_cast<long long>(spk_live_handles()));
    result = EXIT_FAILURE;
  }
  return result;
}

}  // namespace

}  // namespace prop

int main(int argc, char **argv) {
  prop::Options options{prop::kDefaultCases, prop::kDefaultSeed};
  if (!prop::parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: property [--cases N] [--seed S] [--only SEED]\n");
    return EXIT_FAILURE;
  }
  return prop::run(options);
}
