#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "training/config.h"

namespace gle::report {

struct Point {
  double x = 0, y = 0;
};
using Curve = std::vector<Point>;
using Numbers = std::vector<std::pair<std::string, double>>;

// One row of an ablation: a strategy of GL++ inference, or several, and what they give.
struct Strategy {
  std::string name;
  Numbers metrics;  // "R@1", "mAP", ...; shares

  const double* find(const std::string& metric) const;  // null if there is none
};

struct Timing {
  double seconds = 0;  // of all sessions, without the pauses between them
  int64_t steps = 0;
  int sessions = 0;
};

// What a run folder says of itself. Anything missing or damaged is a remark and not an error: half a run is what a
// report is wanted for.
struct Run {
  std::string name;  // of its folder
  std::filesystem::path path;
  bool has_config = false;
  TrainingConfig config = {};
  std::string command = {};
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::map<std::string, Curve> training = {};    // "loss", "learning_rate", ... by step
  std::map<std::string, Curve> evaluation = {};  // "R@1", "mAP", ...
  Curve epochs = {};                             // epoch by step
  std::vector<double> phase_starts = {};         // steps where a phase after the first begins
  std::vector<Strategy> strategies = {};
  std::optional<Timing> timing = {};
  std::vector<std::string> remarks = {};

  // The largest value of an evaluated metric.
  std::optional<Point> best(const std::string& metric) const;
  std::filesystem::path checkpoint() const;  // best.gle, or last.gle; empty if there is none
};

// Throws ErrorCode::usage if the path is no run folder.
Run read_run(const std::filesystem::path& path);

// The parts, for tests and fuzzing: whatever the text, they add what they can make sense of.
void read_metrics(Run& run, std::string_view text);
void read_strategies(Run& run, std::string_view text);
void read_environment(Run& run, std::string_view text);
// A TensorBoard event file: when which step was.
void add_timing(Run& run, std::string_view events);

}  // namespace gle::report
