#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "tools/cli/progress.h"
#include "training/trainer.h"

namespace gle::tools {

// What is seen of a run while it trains.
class TrainingScreen {
 public:
  // `what` stands before the phase.
  explicit TrainingScreen(const Verbosity& verbosity, std::string what = {})
      : verbosity_(verbosity), what_(std::move(what)) {}

  void begin(int64_t step) { began_at_ = step; }
  void step(const StepReport& report);
  void evaluation(const EvaluationReport& report);
  void finish() { bar_.reset(); }

 private:
  const Verbosity& verbosity_;
  std::string what_;
  std::optional<Progress> bar_;
  std::chrono::steady_clock::time_point start_;
  int64_t images_ = 0;
  int64_t phase_ = -1;
  int64_t began_at_ = 0;
};

// "R@1 63.4  R@2 75.0  mAP 42.3"
std::string text_of(const RankingMetrics& metrics);

}  // namespace gle::tools
