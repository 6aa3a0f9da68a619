#include "machine.hpp"

#include <sched.h>
#include <sparsekit/sparsekit.h>
#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "memory.hpp"
#include "units.hpp"

namespace bench {
namespace {

constexpr int64_t kUsualCoreCache = int64_t{1} << 20;
constexpr int64_t kUsualLastCache = int64_t{32} << 20;

std::string first_line(const std::string &path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "1024K" as bytes.
int64_t parse_size(const std::string &text) {
  const int64_t number = std::stoll(text);
  return text.back() == 'M' ? number << 20 : text.back() == 'K' ? number << 10 : number;
}

std::vector<Cache> read_data_caches() {
  std::vector<Cache> caches;
  for (int i = 0;; ++i) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string type = first_line(folder + "type");
    const std::string size = first_line(folder + "size");
    if (type.empty() || size.empty()) return caches;
    if (type == "Instruction") continue;
    const std::string level = first_line(folder + "level");
    caches.push_back(
        {"L" + level + (type == "Data" ? "d" : ""), std::stoi(level), parse_size(size)});
  }
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

std::string caches_text() {
  std::string text;
  for (const Cache &cache : data_caches()) {
    text += (text.empty() ? "" : ", ") + cache.name + " " + bytes_text(cache.bytes);
  }
  return text.empty() ? "unknown" : text;
}

std::string system_text() {
  utsname name = {};
  uname(&name);
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
  return text;
}

}  // namespace

const std::vector<Cache> &data_caches() {
  static const std::vector<Cache> caches = read_data_caches();
  return caches;
}

int64_t core_cache_bytes() {
  for (const Cache &cache : data_caches()) {
    if (cache.level == 2) return cache.bytes;
  }
  return kUsualCoreCache;
}

int64_t last_cache_bytes() {
  int64_t largest = 0;
  for (const Cache &cache : data_caches()) largest = std::max(largest, cache.bytes);
  return largest > 0 ? largest : kUsualLastCache;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::vector<std::pair<std::string, std::string>> machine_facts() {
  return {
      {"date", now_text()},
      {"cpu", cpu_model()},
      {"cores", std::to_string(usable_cores())},
      {"caches", caches_text()},
      {"memory available", bytes_text(available_memory())},
      {"huge pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled")},
      {"system", system_text()},
      {"compiler", BENCH_COMPILER " " BENCH_BUILD_TYPE},
      {"library", spk_build_info()},
  };
}

}  // namespace bench
