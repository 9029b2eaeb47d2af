#pragma once

#include <chrono>

#include "training/timed_backend.h"
#include "training/trainer.h"

namespace gle::tools {

// Where the time of training steps goes: kernels, waiting for pictures, and all else. Steps after which something other
// than a step came (an evaluation, a new epoch or phase, a checkpoint) and the first of each phase do not count.
class StepProfile {
 public:
  StepProfile(TimedBackend& backend, const TrainingConfig& config) : backend_(backend), config_(config) {}

  void step(const StepReport& report);
  void print() const;

 private:
  TimedBackend& backend_;
  const TrainingConfig& config_;
  std::chrono::steady_clock::time_point last_;
  Position before_;
  int64_t of_phase_ = 0;  // steps seen of the phase
  int64_t steps_ = 0;
  double seconds_ = 0, loading_ = 0;
  std::vector<TimedBackend::Kernel> kernels_;  // of the steps that count
};

}  // namespace gle::tools
