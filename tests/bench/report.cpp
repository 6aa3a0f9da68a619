#include "report.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "machine.hpp"
#include "statistics.hpp"
#include "units.hpp"

namespace bench {
namespace {

using Json = nlohmann::ordered_json;

template <class... Values>
std::string format(const char *pattern, Values... values) {
  char text[320];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

// --- figures ------------------------------------------------------------------------------------

double value_of(Figure figure, double operation, double yardstick) {
  constexpr double kMicro = 1e6;
  switch (figure) {
    case Figure::kRatio:
      return operation / yardstick;
    case Figure::kSpeedUp:
      return yardstick / operation;
    case Figure::kOverhead:
      return (2 * operation - yardstick) * kMicro;
    default:
      return operation * kMicro;
  }
}

const char *figure_name(Figure figure) {
  switch (figure) {
    case Figure::kRatio:
      return "ratio";
    case Figure::kSpeedUp:
      return "speed-up";
    case Figure::kOverhead:
      return "overhead";
    default:
      return "time";
  }
}

// Goals of ratios are about memory. A sweep over data in a core's cache takes less time than any
// call, and the goals of small work are about those.
std::optional<double> goal_of(const Case &made, int64_t bytes) {
  if (made.figure == Figure::kRatio && bytes <= core_cache_bytes()) return std::nullopt;
  return made.goal;
}

const char *unit_of(Figure figure) {
  return figure == Figure::kRatio || figure == Figure::kSpeedUp ? "x" : "us";
}

// --- one row as text ----------------------------------------------------------------------------

constexpr const char *kNames = "%-27s %-19s %-5s %-9s %-9s";

std::string names_of(const Row &row) {
  const std::string execution = row.execution.name() + " " + std::to_string(row.execution.threads);
  const bool without_data = row.skipped.empty() && row.bytes == 0;
  const std::string size = without_data ? "-" : bytes_text(row.bytes ? row.bytes : row.size);
  return format(kNames, row.made.operation.c_str(), row.made.layout.c_str(), row.dtype.c_str(),
                execution.c_str(), size.c_str());
}

std::string goal_text(const Row &row) {
  return row.goal ? format("%g", *row.goal) : "-";
}

std::string verdict_text(const Row &row) {
  const std::optional<bool> met = row.goal_met();
  return !met ? "-" : *met ? "yes" : "NO";
}

std::string text_of(const Row &row) {
  if (!row.skipped.empty()) {
    return names_of(row) + (row.failed ? " FAILED: " : " skipped: ") + row.skipped;
  }
  const std::string rate =
      row.gigabytes_per_second ? format("%.1f", *row.gigabytes_per_second) : "-";
  const std::string yardstick = row.yardstick_ms ? format("%.4g", *row.yardstick_ms) : "-";
  return names_of(row) + format(" %5zu %9.4g %6s  %-10s %8s %7.3g %-2s %5s %-3s %7.1f",
                                row.repetitions, row.median_ms, rate.c_str(), row.yardstick.c_str(),
                                yardstick.c_str(), row.value, unit_of(row.made.figure),
                                goal_text(row).c_str(), verdict_text(row).c_str(),
                                row.extra_memory_percent);
}

// --- JSON ---------------------------------------------------------------------------------------

template <class T>
Json json_or_null(const std::optional<T> &value) {
  return value ? Json(*value) : Json(nullptr);
}

Json json_of(const Row &row) {
  Json json = {{"group", row.made.group},
               {"operation", row.made.operation},
               {"layout", row.made.layout},
               {"dtype", row.dtype},
               {"executor", row.execution.name()},
               {"threads", row.execution.threads},
               {"size", row.size}};
  if (!row.skipped.empty()) {
    json[row.failed ? "failed" : "skipped"] = row.skipped;
    return json;
  }
  json.update({{"bytes", row.bytes},
               {"repetitions", row.repetitions},
               {"median_ms", row.median_ms},
               {"lower_quartile_ms", row.lower_quartile_ms},
               {"upper_quartile_ms", row.upper_quartile_ms},
               {"gb_per_s", json_or_null(row.gigabytes_per_second)},
               {"yardstick", row.yardstick},
               {"yardstick_ms", json_or_null(row.yardstick_ms)},
               {"figure", figure_name(row.made.figure)},
               {"value", row.value},
               {"unit", unit_of(row.made.figure)},
               {"goal", json_or_null(row.goal)},
               {"goal_met", json_or_null(row.goal_met())},
               {"extra_memory_percent", row.extra_memory_percent}});
  return json;
}

Json json_of(const Sweep &sweep) {
  Json ways = Json::array();
  for (const SweepWay &way : sweep.ways()) {
    ways.push_back({{"way", way.name}, {"gb_per_s", sweep.gigabytes_per_second(way)}});
  }
  return {{"name", sweep.name()},
          {"dtype", sweep.dtype().name},
          {"executor", sweep.execution().name()},
          {"threads", sweep.execution().threads},
          {"bytes", sweep.bytes()},
          {"ways", ways}};
}

std::string text_of(const Sweep &sweep) {
  std::string text = format("%-10s %-5s %-6s %d  %-10s", sweep.name().c_str(), sweep.dtype().name,
                            sweep.execution().name().c_str(), sweep.execution().threads,
                            bytes_text(sweep.bytes()).c_str());
  for (const SweepWay &way : sweep.ways()) {
    text += format("  %s %.1f", way.name.c_str(), sweep.gigabytes_per_second(way));
  }
  return text;
}

}  // namespace

// Figures without a goal have nothing to meet.
std::optional<bool> Row::goal_met() const {
  if (!goal) return std::nullopt;
  return value <= *goal;
}

void summarise(const Trial &trial, const Timings &timings, Row &row) {
  const auto calls = static_cast<double>(trial.calls);
  const double operation = median(timings.operation) / calls;
  const double yardstick = timings.yardstick.empty() ? 0 : median(timings.yardstick) / calls;
  row.bytes = trial.bytes;
  row.repetitions = timings.operation.size();
  row.median_ms = operation * 1e3;
  row.lower_quartile_ms = quantile(timings.operation, 0.25) / calls * 1e3;
  row.upper_quartile_ms = quantile(timings.operation, 0.75) / calls * 1e3;
  row.yardstick = trial.yardstick_name.empty() ? "-" : trial.yardstick_name;
  if (yardstick > 0) row.yardstick_ms = yardstick * 1e3;
  if (trial.traffic > 0) row.gigabytes_per_second = trial.traffic / operation * 1e-9;
  row.value = value_of(row.made.figure, operation, yardstick);
  row.goal = goal_of(row.made, trial.bytes);
  if (trial.bytes > 0) {
    row.extra_memory_percent =
        100 * static_cast<double>(trial.peak_bytes()) / static_cast<double>(trial.bytes);
  }
}

Report::Report(const std::string &text_path, const std::string &json_path)
    : text_(open(text_path)), json_(open(json_path)) {}

Report::File Report::open(const std::string &path) {
  if (path.empty()) return nullptr;
  File file(std::fopen(path.c_str(), "w"));
  if (!file) throw std::runtime_error("cannot write " + path);
  return file;
}

void Report::print(const std::string &line) {
  for (std::FILE *file : {stdout, text_.get()}) {
    if (!file) continue;
    std::fprintf(file, "%s\n", line.c_str());
    std::fflush(file);
  }
}

void Report::print_facts() {
  for (const auto &[name, fact] : machine_facts()) print(format("%-17s ", name.c_str()) + fact);
  print("");
}

void Report::print_heading() {
  print(format(kNames, "operation", "layout", "dtype", "executor", "tensor") +
        format(" %5s %9s %6s  %-10s %8s %10s %5s %-3s %7s", "reps", "ms", "GB/s", "against", "ms",
               "figure", "goal", "met", "extra %"));
}

void Report::add(const Row &row) {
  print(text_of(row));
  rows_.push_back(row);
}

void Report::skip_table(const Dtype &dtype, int64_t size, const std::string &why) {
  skipped_tables_.push_back(std::string(dtype.name) + ", " + bytes_text(size) +
                            ": all rows skipped: " + why);
  print(skipped_tables_.back());
}

void Report::print_sweeps(const SweepBook &sweeps) {
  if (sweeps.all().empty()) return;
  print("\nThe sweeps, each way at its best, in GB/s read and written; the first is the yardstick");
  for (const Sweep &sweep : sweeps.all()) print(text_of(sweep));
}

void Report::print_summary() {
  int with_goal = 0;
  int met = 0;
  for (const Row &row : rows_) {
    with_goal += row.goal_met().has_value();
    met += row.goal_met().value_or(false);
  }
  print(format("\n%zu rows; %d of %d goals met; %d failures", rows_.size(), met, with_goal,
               failures()));
}

void Report::write_json(const SweepBook &sweeps) const {
  if (!json_) return;
  Json json;
  for (const auto &[name, fact] : machine_facts()) json["machine"][name] = fact;
  json["sweeps"] = Json::array();
  for (const Sweep &sweep : sweeps.all()) json["sweeps"].push_back(json_of(sweep));
  json["skipped_tables"] = skipped_tables_;
  json["rows"] = Json::array();
  for (const Row &row : rows_) json["rows"].push_back(json_of(row));
  std::fprintf(json_.get(), "%s\n", json.dump(1).c_str());
}

int Report::failures() const {
  return static_cast<int>(
      std::count_if(rows_.begin(), rows_.end(), [](const Row &row) { return row.failed; }));
}

}  // namespace bench
