#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "tools/cli/program.h"

namespace gle::tools {

// A bar on stderr; where that is no terminal, a plain line every ten seconds and at the end.
class Progress {
 public:
  Progress(std::string what, int64_t total, const Verbosity& verbosity, const char* unit = "it", int64_t begin = 0);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t done, const std::string& note = {});
  // Leaves the bar as it stands; more updates are ignored.
  void finish();

 private:
  void draw(std::chrono::steady_clock::time_point now);

  std::string what_;
  std::string note_;
  const char* unit_;
  int64_t total_;
  int64_t begin_;
  int64_t done_;
  bool shown_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point last_;
};

// 83 -> "01:23", 4000 -> "1:06:40".
std::string clock_text(double seconds);

}  // namespace gle::tools
