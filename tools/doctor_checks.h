#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/context.h"

namespace gle::doctor {

// One op with fixed inputs. `forward` builds its inputs as leaves from `draw` and returns the output.
struct Check {
  std::string name;
  std::function<Var(Context&, const std::function<Var(const Shape&)>& draw)> forward;
  // The gradient depends on which of nearly equal pairs is chosen, the output does not.
  bool chooses = false;
};

std::vector<Check> all_checks();

struct Outcome {
  std::vector<std::vector<float>> values;  // the output, then the gradients of all leaves
  double seconds = 0;                      // of the fastest run, forward and backward; the first only if it is alone
};

// Runs an op and its backward pass with a fixed cotangent, so many times. The same numbers go in on every backend.
Outcome run(const Check& check, Backend& backend, int rounds);

}  // namespace gle::doctor
