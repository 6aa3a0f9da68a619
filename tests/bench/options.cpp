#include "options.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

#include "machine.hpp"

namespace bench {
namespace {

constexpr int64_t kDefaultSize = int64_t{64} << 20;
const std::vector<int64_t> kSweptSizes = {int64_t{4} << 10,  int64_t{64} << 10, int64_t{1} << 20,
                                          int64_t{16} << 20, int64_t{64} << 20, int64_t{256} << 20,
                                          int64_t{1} << 30,  int64_t{4} << 30};

// The command line as it is written.
struct Arguments {
  std::vector<std::string> dtypes;
  std::vector<std::string> executors;
  std::vector<int> threads;
  std::vector<uint64_t> sizes;
  CacheState cache = CacheState::kBySize;
  std::string filter;
};

std::vector<Execution> executions_of(const std::vector<std::string> &executors,
                                     const std::vector<int> &threads) {
  std::vector<Execution> executions;
  for (const std::string &executor : executors) {
    if (executor == "serial") {
      executions.push_back({SPK_EXECUTOR_SERIAL, 1});
      continue;
    }
    for (const int count : threads) executions.push_back({executor_named(executor), count});
  }
  return executions;
}

std::vector<Dtype> dtypes_of(const std::vector<std::string> &names) {
  std::vector<Dtype> all;
  for (const std::string &name : names) all.push_back(dtype_named(name));
  return all;
}

// Left to itself, a run measures every dtype on the default executor, and f32 on the others too.
std::vector<Plan> plans_of(const Arguments &arguments, bool size_sweep) {
  const bool chosen = !arguments.executors.empty() || !arguments.threads.empty() || size_sweep;
  const auto or_default = [](auto given, decltype(given) otherwise) {
    return given.empty() ? otherwise : given;
  };
  const int cores = usable_cores();
  const auto threads = or_default(arguments.threads, {cores});
  if (chosen) {
    const std::vector<std::string> one_dtype = {"f32"};
    const std::vector<std::string> every_dtype = {"f32", "f64", "f16", "bf16"};
    return {{dtypes_of(or_default(arguments.dtypes, size_sweep ? one_dtype : every_dtype)),
             executions_of(or_default(arguments.executors, {"tbb"}), threads)}};
  }
  const auto dtypes = or_default(arguments.dtypes, {"f32", "f64", "f16", "bf16"});
  std::vector<Plan> plans = {{dtypes_of(dtypes), executions_of({"tbb"}, threads)}};
  if (arguments.dtypes.empty()) {
    plans.push_back({dtypes_of({"f32"}), executions_of({"serial", "openmp"}, threads)});
  }
  return plans;
}

void add_what(CLI::App &app, Arguments &arguments, Options &options) {
  app.add_option("--dtypes", arguments.dtypes, "f32, f64, f16, bf16 (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "f64", "f16", "bf16"}));
  app.add_option("--executors", arguments.executors,
                 "serial, openmp, tbb (default: tbb; f32 also with the others)")
      ->delimiter(',')
      ->check(CLI::IsMember({"serial", "openmp", "tbb"}));
  app.add_option("--threads", arguments.threads, "numbers of threads (default: all cores)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  auto *sizes = app.add_option("--sizes", arguments.sizes,
                               "sizes of the tensor, such as 4KiB,64MiB (default: 64MiB)")
                    ->delimiter(',')
                    ->transform(CLI::AsSizeValue(false));
  app.add_flag("--size-sweep", options.size_sweep,
               "a few operations from 4 KiB to 4 GiB, f32 unless --dtypes says otherwise")
      ->excludes(sizes);
  app.add_option("--filter", arguments.filter,
                 "only rows whose \"group: operation / layout\" matches this regular expression");
}

void add_how(CLI::App &app, Arguments &arguments, Options &options) {
  const std::map<std::string, CacheState> states = {
      {"by-size", CacheState::kBySize}, {"cold", CacheState::kCold}, {"warm", CacheState::kWarm}};
  app.add_option("--cache", arguments.cache,
                 "where data are when timing begins; by-size: cold unless a core's cache holds "
                 "them (default)")
      ->transform(CLI::CheckedTransformer(states));
  app.add_option("--repetitions", options.budget.repetitions, "of each row (default: 15)")
      ->check(CLI::Range(kFewestRepetitions, 100000));
  app.add_option("--budget", options.budget.seconds,
                 "seconds after which a row stops early, with 3 repetitions at least (default: 2)")
      ->check(CLI::PositiveNumber);
}

void add_output(CLI::App &app, Options &options) {
  app.add_option("--text", options.text_path, "also write the table to this file");
  app.add_option("--json", options.json_path, "write all results to this file");
  app.add_flag("--list", options.list, "name the rows and measure nothing");
}

std::regex regex_of(const std::string &text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error &) {
    throw CLI::ValidationError("--filter", "not a regular expression: " + text);
  }
}

Options options_of(const Arguments &arguments, Options options) {
  options.plans = plans_of(arguments, options.size_sweep);
  options.cache = arguments.cache;
  if (!arguments.filter.empty()) options.filter = regex_of(arguments.filter);
  for (const uint64_t size : arguments.sizes) options.sizes.push_back(static_cast<int64_t>(size));
  if (options.sizes.empty()) {
    options.sizes = options.size_sweep ? kSweptSizes : std::vector<int64_t>{kDefaultSize};
  }
  return options;
}

}  // namespace

bool Options::wants(const Case &made) const {
  if (size_sweep && !made.any_size) return false;
  return !filter || std::regex_search(title_of(made), *filter);
}

std::string title_of(const Case &made) {
  return made.group + ": " + made.operation + " / " + made.layout;
}

Options parse_options(int argc, char **argv) {
  CLI::App app("Times every operation of SparseKit against a sweep over the same bytes.");
  Arguments arguments;
  Options options;
  add_what(app, arguments, options);
  add_how(app, arguments, options);
  add_output(app, options);
  try {
    app.parse(argc, argv);
    return options_of(arguments, options);
  } catch (const CLI::ParseError &error) {
    std::exit(app.exit(error));
  }
}

}  // namespace bench
