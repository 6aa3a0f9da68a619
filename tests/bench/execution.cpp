#include "execution.hpp"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

namespace bench {
namespace {

void run_openmp(int threads, const std::function<void(int)> &task) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int i = 0; i < threads; ++i) task(i);
}

// Arenas live as long as the process: making one costs more than a small sweep.
tbb::task_arena &arena_of(int threads) {
  static std::map<int, std::unique_ptr<tbb::task_arena>> arenas;
  std::unique_ptr<tbb::task_arena> &arena = arenas[threads];
  if (!arena) arena = std::make_unique<tbb::task_arena>(threads);
  return *arena;
}

void run_tbb(int threads, const std::function<void(int)> &task) {
  arena_of(threads).execute(
      [&] { tbb::parallel_for(0, threads, task, tbb::static_partitioner()); });
}

}  // namespace

std::string Execution::name() const {
  switch (executor) {
    case SPK_EXECUTOR_TBB:
      return "tbb";
    case SPK_EXECUTOR_OPENMP:
      return "openmp";
    default:
      return "serial";
  }
}

int32_t executor_named(const std::string &name) {
  if (name == "serial") return SPK_EXECUTOR_SERIAL;
  if (name == "openmp") return SPK_EXECUTOR_OPENMP;
  if (name == "tbb") return SPK_EXECUTOR_TBB;
  throw std::invalid_argument("no executor is called " + name);
}

void for_pieces(const Execution &execution, int64_t count, const Piece &piece) {
  constexpr int64_t kGrain = 64;
  const int threads = execution.threads;
  const int64_t share = (count / threads + kGrain - 1) / kGrain * kGrain;
  const auto task = [&](int i) {
    const int64_t begin = std::min(count, i * share);
    const int64_t end = i + 1 == threads ? count : std::min(count, begin + share);
    if (begin < end) piece(begin, end);
  };
  if (threads == 1) {
    task(0);
  } else if (execution.executor == SPK_EXECUTOR_OPENMP) {
    run_openmp(threads, task);
  } else {
    run_tbb(threads, task);
  }
}

}  // namespace bench
