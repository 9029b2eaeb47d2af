#pragma once

#include <memory>
#include <string>

#include "engine/cuda/conv_graph.h"

namespace gle::cuda {

// The device to plan for: one that is here, by cuDNN's handle, or one that is only described (a finalised
// CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t properties = nullptr;
};

struct PlanRules {
  bool tf32 = false;
  bool deterministic = false;
  size_t workspace_limit = SIZE_MAX;
};

// One way to run a convolution.
struct ConvPlan {
  std::shared_ptr<const ConvGraph> graph;
  Descriptor engine_config;
  Descriptor plan;
  int64_t engine = 0;
  size_t workspace = 0;
};

// The first `most` plans that keep the rules, best first in the eyes of cuDNN's heuristics; its fallbacks come last.
// If there is none, `refusal` says what cuDNN or the rules had against the last candidate.
std::vector<ConvPlan> plan_convolution(const ConvProblem& problem, const PlanTarget& target, const PlanRules& rules,
                                       size_t most, std::string& refusal);

}  // namespace gle::cuda
