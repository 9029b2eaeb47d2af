#include "training/slow_rank.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

namespace gle {

SlowRank::SlowRank(Comm& comm, int64_t steps)
    : comm_(comm), compared_(steps), last_time_(Clock::now()), last_waiting_(comm.statistics().waiting_seconds) {}

std::string SlowRank::after_step(int64_t epoch) {
  const Clock::time_point now = Clock::now();
  const double waiting = comm_.statistics().waiting_seconds;
  if (!left_out_) {
    seconds_ += std::chrono::duration<double>(now - last_time_).count();
    waiting_ += waiting - last_waiting_;
    ++steps_;
  }
  left_out_ = false;
  last_time_ = now;
  last_waiting_ = waiting;
  if (steps_ < compared_) {
    return {};
  }

  // All have the numbers of all, and come to the same conclusion.
  const double own[] = {waiting_, seconds_};
  std::vector<double> waited;
  double seconds = 0;
  for (const std::vector<std::byte>& message : comm_.gather(std::as_bytes(std::span(own)))) {
    double numbers[2];
    std::memcpy(numbers, message.data(), sizeof numbers);
    waited.push_back(numbers[0]);
    seconds = std::max(seconds, numbers[1]);
  }
  steps_ = 0;
  seconds_ = waiting_ = 0;

  const auto slowest = std::min_element(waited.begin(), waited.end());
  double others = 0;
  for (const double of_rank : waited) {
    others += of_rank - *slowest;
  }
  const double share = others / static_cast<double>(waited.size() - 1) / seconds;
  if (share <= kShare || epoch == told_of_epoch_) {
    return {};
  }
  told_of_epoch_ = epoch;
  const auto rank = static_cast<int>(slowest - waited.begin());
  char text[64];
  std::snprintf(text, sizeof text, "over %ld steps the others waited for it %.0f%% of the time",
                static_cast<long>(compared_), 100 * share);
  return "rank " + std::to_string(rank) + " on " + comm_.host_of(rank) + " is slow: " + text;
}

}  // namespace gle
