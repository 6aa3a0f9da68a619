// How many threads this process may use. TBB and OpenMP ignore cgroup quotas, and a pool larger
// than its quota is throttled for most of each period.
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "parallel/executor.h"

namespace spk {
namespace {

int32_t affinity_count() {
  // The mask of a machine with more processors than cpu_set_t holds needs a larger set.
  for (int capacity = 1024; capacity <= (1 << 20); capacity *= 4) {
    cpu_set_t *set = CPU_ALLOC(static_cast<size_t>(capacity));
    if (!set) return 1;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    const int count = ok ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (ok) return std::max(count, 1);
  }
  return 1;
}

// Reads the first line of a file; empty if there is none.
std::string first_line(const std::string &path) {
  char line[256] = "";
  if (FILE *file = std::fopen(path.c_str(), "re")) {
    if (!std::fgets(line, sizeof line, file)) line[0] = 0;
    std::fclose(file);
  }
  return line;
}

// Processors granted by quota / period, rounded up; 0 = no limit.
int32_t processors(long long quota, long long period) {
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int32_t>(std::min<long long>((quota + period - 1) / period, 1 << 20));
}

int32_t tighter(int32_t a, int32_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

// cgroup v2: "max 100000" or "150000 100000" in each group from the process's own up to the root.
int32_t quota_v2(std::string group) {
  int32_t limit = 0;
  for (;;) {
    const std::string line = first_line("/sys/fs/cgroup" + group + "/cpu.max");
    char *rest = nullptr;
    const long long quota = std::strtoll(line.c_str(), &rest, 10);  // 0 for "max"
    limit = tighter(limit, processors(quota, std::strtoll(rest, nullptr, 10)));
    if (group.empty()) return limit;
    group.resize(group.find_last_of('/'));
  }
}

// cgroup v1, as mounted in a container.
int32_t quota_v1() {
  auto number_in = [](const char *file) {
    return std::strtoll(first_line(std::string("/sys/fs/cgroup/cpu/") + file).c_str(), nullptr, 10);
  };
  return processors(number_in("cpu.cfs_quota_us"), number_in("cpu.cfs_period_us"));
}

// The process's group in the unified hierarchy: the line "0::/path" of /proc/self/cgroup.
std::string own_group() {
  std::string group;
  if (FILE *file = std::fopen("/proc/self/cgroup", "re")) {
    char line[4096];
    while (std::fgets(line, sizeof line, file)) {
      if (std::strncmp(line, "0::", 3) != 0) continue;
      group.assign(line + 3, std::strcspn(line + 3, "\n"));
    }
    std::fclose(file);
  }
  if (group.empty() || group[0] != '/' || group == "/") return "";
  return group;
}

}  // namespace

int32_t available_threads() {
  const int32_t quota = tighter(quota_v2(own_group()), quota_v1());
  const int32_t affinity = affinity_count();
  return quota > 0 ? std::min(affinity, quota) : affinity;
}

}  // namespace spk
