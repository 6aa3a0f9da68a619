// The table as text, row by row, and as JSON at the end.
#ifndef SPARSEKIT_TESTS_BENCH_REPORT_HPP_
#define SPARSEKIT_TESTS_BENCH_REPORT_HPP_

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "case.hpp"
#include "runner.hpp"

namespace bench {

// A case as it was run: names for the table, and what was found.
struct Row {
  const Case &made;
  std::string dtype;
  Execution execution;
  int64_t size;  // that was asked for, in bytes

  // Empty, or why there are no numbers.
  std::string skipped = {};
  bool failed = false;

  int64_t bytes = 0;  // of the tensor
  size_t repetitions = 0;
  double median_ms = 0;
  double lower_quartile_ms = 0;
  double upper_quartile_ms = 0;
  std::string yardstick = {};
  std::optional<double> yardstick_ms = {};
  std::optional<double> gigabytes_per_second = {};
  double value = 0;
  std::optional<double> goal = {};
  double extra_memory_percent = 0;

  std::optional<bool> goal_met() const;
};

// Fills in what the timings say.
void summarise(const Trial &trial, const Timings &timings, Row &row);

class Report {
 public:
  // `text_path` and `json_path` may be empty. Throws std::runtime_error if a file cannot be opened.
  Report(const std::string &text_path, const std::string &json_path);

  void print_facts();
  void print_heading();
  void add(const Row &row);
  // For all rows of a dtype and a size in bytes.
  void skip_table(const Dtype &dtype, int64_t size, const std::string &why);
  void print_sweeps(const SweepBook &sweeps);
  void print_summary();
  void write_json(const SweepBook &sweeps) const;

  int failures() const;

 private:
  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;

  static File open(const std::string &path);
  void print(const std::string &line);

  File text_;
  File json_;
  std::vector<Row> rows_;
  std::vector<std::string> skipped_tables_;
};

}  // namespace bench

#endif  // SPARSEKIT_TESTS_BENCH_REPORT_HPP_
