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
};

std::vector<Check> all_checks();

// Runs an op and its backward pass with a fixed cotangent: the output and the gradients of all leaves, one after the
// other. The same numbers go in on every backend.
std::vector<float> run(const Check& check, Backend& backend);

}  // namespace gle::doctor
