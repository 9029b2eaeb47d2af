#include "simt/reports.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

namespace simt {

namespace {

constexpr size_t kMostReports = 1000;

std::mutex mutex;
std::vector<Report>& pending() {
  static auto& reports = *new std::vector<Report>;
  return reports;
}

std::set<std::pair<Kind, uintptr_t>>& places() {
  static auto& seen = *new std::set<std::pair<Kind, uintptr_t>>;
  return seen;
}

std::string base_name(std::string path) { return path.substr(path.find_last_of('/') + 1); }

// Pairs of function and file:line from the innermost call outwards.
std::vector<std::pair<std::string, std::string>> frames_of(uintptr_t address) {
  Dl_info module{};
  if (dladdr(reinterpret_cast<void*>(address), &module) == 0) {
    return {};
  }
  char command[1024];
  std::snprintf(command, sizeof command, "addr2line -i -f -C -e '%s' 0x%zx 2>/dev/null", module.dli_fname,
                static_cast<size_t>(address - reinterpret_cast<uintptr_t>(module.dli_fbase)));
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);
  std::vector<std::pair<std::string, std::string>> frames;
  char function[2048];
  char place[2048];
  while (pipe && std::fgets(function, sizeof function, pipe.get()) && std::fgets(place, sizeof place, pipe.get())) {
    function[std::strcspn(function, "\n")] = 0;
    place[std::strcspn(place, " \n")] = 0;
    frames.emplace_back(function, place);
  }
  return frames;
}

}  // namespace

std::string line_of(uintptr_t pc) {
  static auto& known = *new std::map<uintptr_t, std::string>;
  std::string& line = known[pc];
  if (line.empty()) {
    line = "?";
    // The return address belongs to the next instruction.
    for (const auto& [function, place] : frames_of(pc - 1)) {
      line = base_name(place);
      if (place.find("simt/device.h") == std::string::npos) {
        break;
      }
    }
  }
  return line;
}

std::string line_of(Site site) { return base_name(site.file) + ":" + std::to_string(site.line); }

std::string function_name(const void* function) {
  static auto& known = *new std::map<const void*, std::string>;
  std::string& name = known[function];
  if (name.empty()) {
    const auto frames = frames_of(reinterpret_cast<uintptr_t>(function));
    name = frames.empty() ? "?" : frames.back().first;
    for (const char* noise : {"(anonymous namespace)::", "void "}) {
      const size_t at = name.find(noise);
      if (at != std::string::npos) {
        name.erase(at, std::strlen(noise));
      }
    }
    const size_t parameters = name.rfind('(');
    if (parameters != std::string::npos && name.find_last_of('>') + 1 == parameters) {
      name.erase(parameters);
    }
    name.erase(0, name.rfind("::", name.find_first_of("<(")) == std::string::npos
                      ? 0
                      : name.rfind("::", name.find_first_of("<(")) + 2);
  }
  return name;
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::race:
      return "race";
    case Kind::bounds:
      return "bounds";
    case Kind::uninitialised:
      return "uninitialised";
    case Kind::misaligned:
      return "misaligned";
    case Kind::divergent_barrier:
      return "divergent barrier";
    case Kind::warp_mask:
      return "warp mask";
    case Kind::deadlock:
      return "deadlock";
    case Kind::launch:
      return "launch";
    case Kind::api:
      return "api";
  }
  return "?";
}

void report(Kind kind, std::string text) {
  const std::lock_guard lock(mutex);
  if (pending().size() < kMostReports) {
    pending().push_back({kind, std::move(text)});
  }
}

bool first_time(Kind kind, uintptr_t place) { return places().emplace(kind, place).second; }

bool first_time(Kind kind, Site site) {
  return first_time(kind, reinterpret_cast<uintptr_t>(site.file) * 31 + static_cast<uintptr_t>(site.line));
}

void forget_places() { places().clear(); }

std::vector<Report> take_reports() {
  const std::lock_guard lock(mutex);
  return std::exchange(pending(), {});
}

}  // namespace simt
