// 12%|███       | 63/525 [00:10<01:12, 6.4it/s, loss=2.31]
#include "tools/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace gle::tools {

namespace {

constexpr std::chrono::milliseconds kTerminalPause{100};
constexpr std::chrono::seconds kLinePause{10};
constexpr int kBarWidth = 10;

std::string bar(double share) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(share * kBarWidth * 8);
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) {
    text += "█";
  }
  text += kEighths[eighths % 8];
  return text + std::string(static_cast<size_t>(kBarWidth - (eighths + 7) / 8), ' ');
}

}  // namespace

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(std::clamp(seconds, 0.0, 1e8));
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%02ld:%02ld", whole / 60, whole % 60);
  }
  return text;
}

Progress::Progress(std::string what, int64_t total, const Verbosity& verbosity, const char* unit, int64_t begin)
    : what_(std::move(what)),
      unit_(unit),
      total_(total),
      begin_(begin),
      done_(begin),
      shown_(verbosity.progress && !verbosity.quiet),
      terminal_(::isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()),
      last_(terminal_ ? start_ - kTerminalPause : start_) {}

void Progress::update(int64_t done, const std::string& note) {
  if (!shown_) {
    return;
  }
  done_ = done;
  note_ = note;
  const auto now = std::chrono::steady_clock::now();
  if (terminal_ ? now - last_ >= kTerminalPause : now - last_ >= kLinePause) {
    draw(now);
  }
}

void Progress::finish() {
  if (!shown_) {
    return;
  }
  draw(std::chrono::steady_clock::now());
  if (terminal_) {
    std::fputc('\n', stderr);
  }
  shown_ = false;
}

void Progress::draw(std::chrono::steady_clock::time_point now) {
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done_ - begin_) / seconds : 0;
  const double share = total_ > 0 ? std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_)) : 1;
  const std::string left = rate > 0 ? clock_text(static_cast<double>(total_ - done_) / rate) : "?";
  std::string line = what_ + ": " + std::to_string(static_cast<int>(share * 100)) + "%";
  if (terminal_) {
    line += "|" + bar(share) + "|";
  }
  char speed[32];
  std::snprintf(speed, sizeof speed, "%.*f", rate < 10 ? 2 : 0, rate);
  line += " " + std::to_string(done_) + "/" + std::to_string(total_) + " [" + clock_text(seconds) + "<" + left + ", " +
          speed + unit_ + "/s" + (note_.empty() ? "" : ", " + note_) + "]";
  std::fprintf(stderr, terminal_ ? "\r%s\033[K" : "%s\n", line.c_str());
  std::fflush(stderr);
}

}  // namespace gle::tools
