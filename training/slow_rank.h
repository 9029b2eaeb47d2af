#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "engine/comm/comm.h"

namespace gle {

// Finds a rank that the others wait for: the last to come to the collectives of a step waits least in them. Every rank
// makes the same calls.
class SlowRank {
 public:
  static constexpr double kShare = 0.2;

  explicit SlowRank(Comm& comm, int64_t steps = 50);

  // After every step. Every so many steps the ranks compare: a text that names one for which the others have waited
  // more than kShare of the time, at most once an epoch; else nothing.
  std::string after_step(int64_t epoch);
  // The first rank has had other things to do than the others, such as to write a checkpoint: the step under way does
  // not count.
  void leave_out_step() { left_out_ = true; }

 private:
  using Clock = std::chrono::steady_clock;

  Comm& comm_;
  int64_t compared_;  // steps after which ranks compare
  Clock::time_point last_time_;
  double last_waiting_;
  double seconds_ = 0;
  double waiting_ = 0;  // of them
  int64_t steps_ = 0;
  int64_t told_of_epoch_ = -1;
  bool left_out_ = true;
};

}  // namespace gle
