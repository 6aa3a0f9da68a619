// Benchmarks of SparseKit; see README.md.
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <vector>

#include "case.hpp"
#include "options.hpp"
#include "report.hpp"
#include "runner.hpp"
#include "skip.hpp"

namespace bench {
namespace {

std::vector<Case> wanted_cases(const Options &options) {
  std::vector<Case> wanted;
  for (Case &made : all_cases()) {
    if (options.wants(made)) wanted.push_back(std::move(made));
  }
  if (wanted.empty()) throw std::invalid_argument("no row matches the filter; --list names them");
  return wanted;
}

class Run {
 public:
  explicit Run(const Options &options)
      : options_(options),
        cases_(wanted_cases(options)),
        sweeps_(options.budget.repetitions),
        report_(options.text_path, options.json_path) {}

  int execute() {
    report_.print_facts();
    report_.print_heading();
    for (const int64_t size : options_.sizes) {
      for (const Plan &plan : options_.plans) run_plan(plan, size);
    }
    report_.print_sweeps(sweeps_);
    report_.print_summary();
    report_.write_json(sweeps_);
    return report_.failures() > 0 ? 1 : 0;
  }

  void list() const {
    for (const Case &made : cases_) std::printf("%s\n", title_of(made).c_str());
  }

 private:
  void run_plan(const Plan &plan, int64_t size) {
    for (const Dtype &dtype : plan.dtypes) {
      try {
        Pool pool(dtype, size, options_.cache);
        for (const Execution &execution : plan.executions) run_table({pool, sweeps_, execution});
      } catch (const Skip &skip) {
        report_.skip_table(dtype, size, skip.what());
      }
    }
  }

  void run_table(const Setting &setting) {
    for (const Case &made : cases_) run_case(made, setting);
  }

  void run_case(const Case &made, const Setting &setting) {
    Row row = {made, setting.pool.dtype().name, setting.execution, setting.pool.bytes()};
    try {
      const Trial trial = made.make(setting);
      summarise(trial, measure(trial, options_.budget), row);
    } catch (const Skip &skip) {
      row.skipped = skip.what();
    } catch (const std::exception &error) {
      row.skipped = error.what();
      row.failed = true;
    }
    report_.add(row);
  }

  const Options &options_;
  const std::vector<Case> cases_;
  SweepBook sweeps_;
  Report report_;
};

}  // namespace
}  // namespace bench

int main(int argc, char **argv) {
  const bench::Options options = bench::parse_options(argc, argv);
  try {
    bench::Run run(options);
    if (options.list) {
      run.list();
      return 0;
    }
    return run.execute();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return 2;
  }
}
