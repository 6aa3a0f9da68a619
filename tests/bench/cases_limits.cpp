// What the memory alone costs: operations that must read or write more or less than a sweep does
// can be no faster than these.
#include <atomic>
#include <memory>

#include "case.hpp"

namespace bench {
namespace {

void read_in_pieces(const Setting &setting) {
  const auto *x = static_cast<const std::byte *>(setting.pool.work());
  const int64_t size = setting.pool.dtype().size;
  for_pieces(setting.execution, setting.pool.numel(), [&](int64_t begin, int64_t end) {
    static std::atomic<uint64_t> seen;
    seen += read_all(x + begin * size, (end - begin) * size);
  });
}

Trial limit_trial(const Setting &setting, int times, std::function<void()> operation) {
  Trial trial = against_sweep(setting, setting.pool.bytes());
  trial.traffic = times * static_cast<double>(trial.bytes);
  trial.operation = std::move(operation);
  trial.peak_bytes = [] { return int64_t{0}; };
  return trial;
}

// As norms do.
Trial reading(const Setting &setting) {
  return limit_trial(setting, 1, [setting] { read_in_pieces(setting); });
}

// As blocks larger than caches need it, and elements, whose thresholds are checked first.
Trial reading_and_sweep(const Setting &setting) {
  const Sweep &sweep =
      setting.sweeps.fastest(setting.pool, setting.execution, setting.pool.bytes(), false);
  return limit_trial(setting, 3, [setting, &sweep] {
    read_in_pieces(setting);
    sweep.run(setting.pool);
  });
}

// As norms of elements do: the result is as large as the input.
Trial copying(const Setting &setting) {
  auto copy = std::make_shared<Memory>(setting.pool.bytes());
  return limit_trial(setting, 2, [setting, copy] {
    const auto *from = static_cast<const std::byte *>(setting.pool.work());
    auto *to = static_cast<std::byte *>(copy->as());
    const int64_t size = setting.pool.dtype().size;
    for_pieces(setting.execution, setting.pool.numel(), [&](int64_t begin, int64_t end) {
      copy_streaming(to + begin * size, from + begin * size, (end - begin) * size);
    });
  });
}

}  // namespace

std::vector<Case> limit_cases() {
  const auto limit = [](const char *operation, Trial (*make)(const Setting &)) {
    return Case{"limits", operation, "contiguous", Figure::kRatio, std::nullopt, false, make};
  };
  return {limit("reading alone", reading), limit("reading, then a sweep", reading_and_sweep),
          limit("copying", copying)};
}

}  // namespace bench
