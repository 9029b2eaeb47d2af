#pragma once

#include <cstdint>
#include <vector>

namespace gle {

enum class Decay { constant, steps, cosine, linear };

// The learning rate of each step of a phase, as a function of the step alone: a resumed run needs nothing but its step.
struct Schedule {
  float rate = 1e-3F;
  Decay decay = Decay::constant;
  int64_t total_steps = 1;
  int64_t warmup_steps = 0;    // rises linearly to `rate` over these
  float final_rate = 0;        // where cosine and linear end
  int64_t decay_start = 0;     // cosine and linear hold `rate` until here
  std::vector<int64_t> drops;  // `steps`: multiplied by `drop_factor` from each of these on
  float drop_factor = 0.1F;
};

// Throws if the parts of the schedule contradict each other.
void check(const Schedule& schedule);
float learning_rate(const Schedule& schedule, int64_t step);

}  // namespace gle
