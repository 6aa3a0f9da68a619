// What the memory alone costs: operations that must read or write more or less than a sweep does
// can be no faster than these.
#include <atomic>
#include <memory>

#include "case.hpp"
#include "layout.hpp"

namespace bench {
namespace {

void read_in_pieces(const Setting &setting, const void *tensor, int64_t numel) {
  const auto *x = static_cast<const std::byte *>(tensor);
  const int64_t size = setting.pool.dtype().size;
  for_pieces(setting.execution, numel, [&](int64_t begin, int64_t end) {
    static std::atomic<uint64_t> seen;
    seen += read_all(x + begin * size, (end - begin) * size);
  });
}

Trial limit_trial(const Setting &setting, int64_t numel, int times,
                  std::function<void()> operation) {
  Trial trial = against_sweep(setting, numel * setting.pool.dtype().size);
  trial.traffic = times * static_cast<double>(trial.bytes);
  trial.operation = std::move(operation);
  trial.peak_bytes = [] { return int64_t{0}; };
  return trial;
}

// As norms do.
Trial reading(const Setting &setting, int64_t numel) {
  return limit_trial(setting, numel, 1,
                     [setting, numel] { read_in_pieces(setting, setting.pool.work(), numel); });
}

const Sweep &sweep_of(const Setting &setting, int64_t numel, bool by_another) {
  return setting.sweeps.fastest(setting.pool, setting.execution, numel * setting.pool.dtype().size,
                                by_another);
}

// As blocks larger than caches need it.
Trial reading_and_sweep(const Setting &setting, int64_t numel) {
  const Sweep &sweep = sweep_of(setting, numel, false);
  return limit_trial(setting, numel, 3, [setting, numel, &sweep] {
    read_in_pieces(setting, setting.pool.work(), numel);
    sweep.run(setting.pool);
  });
}

// As multipliers of elements do.
Trial sweeping_by_another(const Setting &setting, int64_t numel) {
  const Sweep &sweep = sweep_of(setting, numel, true);
  return limit_trial(setting, numel, 3, [setting, &sweep] { sweep.run(setting.pool); });
}

// As thresholds of elements do, which are checked before anything is written.
Trial reading_another_and_sweeping_by_it(const Setting &setting, int64_t numel) {
  const Sweep &sweep = sweep_of(setting, numel, true);
  return limit_trial(setting, numel, 4, [setting, numel, &sweep] {
    read_in_pieces(setting, setting.pool.conditioners(), numel);
    sweep.run(setting.pool);
  });
}

// As norms of elements do: the result is as large as the input.
Trial copying(const Setting &setting, int64_t numel) {
  const int64_t size = setting.pool.dtype().size;
  auto copy = std::make_shared<Memory>(numel * size);
  return limit_trial(setting, numel, 2, [setting, numel, size, copy] {
    const auto *from = static_cast<const std::byte *>(setting.pool.work());
    auto *to = static_cast<std::byte *>(copy->as());
    for_pieces(setting.execution, numel, [&](int64_t begin, int64_t end) {
      copy_streaming(to + begin * size, from + begin * size, (end - begin) * size);
    });
  });
}

using MakeTrial = Trial (*)(const Setting &setting, int64_t numel);

Case limit(const char *operation, const char *layout, const LayoutFamily &family, MakeTrial make) {
  return {"limits",
          operation,
          layout,
          Figure::kRatio,
          std::nullopt,
          false,
          [&family, make](const Setting &setting) {
            return make(setting, family.fit(setting.pool.numel()).numel());
          }};
}

}  // namespace

// Of matrices, and of convolutions, which are fewer bytes.
std::vector<Case> limit_cases() {
  std::vector<Case> cases;
  const auto add = [&cases](const char *layout, const LayoutFamily &family) {
    cases.push_back(limit("reading alone", layout, family, reading));
    cases.push_back(limit("reading, then a sweep", layout, family, reading_and_sweep));
    cases.push_back(limit("copying", layout, family, copying));
    cases.push_back(limit("x *= h", layout, family, sweeping_by_another));
    cases.push_back(
        limit("reading h, then x *= h", layout, family, reading_another_and_sweeping_by_it));
  };
  add("contiguous", layout_family("elements"));
  add("convolution", layout_family("conv kernels"));
  return cases;
}

}  // namespace bench
