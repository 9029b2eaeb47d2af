#include "training/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/error.h"

namespace gle {

void check(const Schedule& s) {
  const char* op = "schedule";
  require(std::isfinite(s.rate) && s.rate > 0, op, "the learning rate must be positive, got ", s.rate);
  require(s.total_steps > 0, op, "there must be at least one step, got ", s.total_steps);
  require(s.warmup_steps >= 0 && s.warmup_steps <= s.total_steps, op, "warm-up takes ", s.warmup_steps, " of ",
          s.total_steps, " steps");
  require(s.decay_start >= 0 && s.decay_start <= s.total_steps, op, "the decay starts at step ", s.decay_start, " of ",
          s.total_steps);
  require(s.final_rate >= 0 && s.final_rate <= s.rate, op, "the final rate ", s.final_rate, " is not from 0 to ",
          s.rate);
  require(s.drop_factor > 0 && s.drop_factor <= 1, op, "drops multiply by above 0 to 1, got ", s.drop_factor);
  require(std::is_sorted(s.drops.begin(), s.drops.end()), op, "drops must come in ascending order");
}

float learning_rate(const Schedule& s, int64_t step) {
  if (step < s.warmup_steps) {
    return s.rate * static_cast<float>(step + 1) / static_cast<float>(s.warmup_steps);
  }
  const int64_t start = std::max(s.decay_start, s.warmup_steps);
  const auto length = static_cast<double>(std::max<int64_t>(1, s.total_steps - start));
  const double progress = std::clamp(static_cast<double>(step - start) / length, 0.0, 1.0);
  switch (s.decay) {
    case Decay::constant:
      return s.rate;
    case Decay::steps: {
      const auto passed = std::upper_bound(s.drops.begin(), s.drops.end(), step) - s.drops.begin();
      return static_cast<float>(s.rate * std::pow(static_cast<double>(s.drop_factor), static_cast<double>(passed)));
    }
    case Decay::cosine:
      return static_cast<float>(s.final_rate +
                                (s.rate - s.final_rate) * (1 + std::cos(std::numbers::pi * progress)) / 2);
    case Decay::linear:
      return static_cast<float>(s.rate + (s.final_rate - s.rate) * progress);
  }
  bug("unknown decay");
}

}  // namespace gle
