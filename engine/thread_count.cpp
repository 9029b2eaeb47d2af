#include "engine/thread_count.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "engine/error.h"

namespace gle {

namespace {

constexpr int kMost = 1024;

int available_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    return std::max(1, CPU_COUNT(&set));
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int parse_count(std::string_view name, std::string_view text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  // OMP_NUM_THREADS may be a list, one number per nesting level: the first counts.
  const bool whole =
      problem == std::errc() && (end == text.data() + text.size() || (name == "OMP_NUM_THREADS" && *end == ','));
  if (!whole || value < 1 || value > kMost) {
    fail(ErrorCode::usage, name, "=", text, ": expected a number of threads from 1 to ", kMost);
  }
  return value;
}

}  // namespace

int thread_count(int wanted) { return thread_count_among(wanted, 1); }

int thread_count_among(int wanted, int processes) {
  require(wanted >= 0 && wanted <= kMost, "threads", "expected 0 (choose) or 1 to ", kMost, ", got ", wanted);
  if (wanted > 0) {
    return wanted;
  }
  for (const char* name : {"GLE_NUM_THREADS", "OMP_NUM_THREADS"}) {
    const char* text = std::getenv(name);
    if (text && *text) {
      return parse_count(name, text);
    }
  }
  const int cores = std::min(available_cores(), kMost);
  const bool divided = cores < sysconf(_SC_NPROCESSORS_ONLN);
  return divided ? cores : std::max(1, cores / processes);
}

}  // namespace gle
