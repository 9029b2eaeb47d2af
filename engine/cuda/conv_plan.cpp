#include "engine/cuda/conv_plan.h"

#include <algorithm>

namespace gle::cuda {

namespace {

// What speaks against an engine; null if nothing does. Tensor cores take fp32 as TF32.
const char* objection(const Descriptor& engine, const PlanRules& rules) {
  const auto notes = engine.notes(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  if (rules.deterministic && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) {
    return "only engines that are not deterministic";
  }
  if (!rules.tf32 && (has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))) {
    return "only engines that round to TF32";
  }
  return nullptr;
}

std::vector<Descriptor> engine_configs(const ConvGraph& graph, const PlanTarget& target, cudnnBackendHeurMode_t mode,
                                       std::string& refusal) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph.get());
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (target.properties) {
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.properties);
  }
  const cudnnStatus_t status = heuristics.try_finalise();
  if (status != CUDNN_STATUS_SUCCESS) {
    refusal = cudnn_reason(status);
    return {};
  }
  return heuristics.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

bool finish_plan(ConvPlan& made, const PlanTarget& target, const PlanRules& rules, std::string& refusal) {
  const Descriptor engine = made.engine_config.descriptor(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  if (const char* reason = objection(engine, rules)) {
    refusal = reason;
    return false;
  }
  made.engine = engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  made.plan = Descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, made.engine_config.get());
  if (target.handle) {
    made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  }
  if (target.properties) {
    made.plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target.properties);
  }
  const cudnnStatus_t status = made.plan.try_finalise();
  if (status != CUDNN_STATUS_SUCCESS) {
    refusal = cudnn_reason(status);
    return false;
  }
  made.workspace = static_cast<size_t>(made.plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  if (made.workspace > rules.workspace_limit) {
    refusal = "scratch of " + std::to_string(made.workspace) + " bytes, and the limit is " +
              std::to_string(rules.workspace_limit);
    return false;
  }
  return true;
}

}  // namespace

std::vector<ConvPlan> plan_convolution(const ConvProblem& problem, const PlanTarget& target, const PlanRules& rules,
                                       size_t most, std::string& refusal) {
  const auto graph = std::make_shared<const ConvGraph>(describe(problem, target.handle));
  std::vector<ConvPlan> plans;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& config : engine_configs(*graph, target, mode, refusal)) {
      if (plans.size() == most) {
        return plans;
      }
      ConvPlan candidate;
      candidate.graph = graph;
      candidate.engine_config = std::move(config);
      if (finish_plan(candidate, target, rules, refusal)) {
        plans.push_back(std::move(candidate));
      }
    }
  }
  return plans;
}

}  // namespace gle::cuda
