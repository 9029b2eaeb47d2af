#include "engine/cuda/convolutions.h"

#include <array>
#include <limits>

#include "engine/cuda/check.h"
#include "engine/error.h"

namespace gle::cuda {

namespace {

constexpr size_t kScratchAlignment = 256;
constexpr size_t kCandidates = 8;

using Timer = Event;

Timer new_timer(const char* op) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), op);
  return Timer(event);
}

size_t result_bytes(const ConvProblem& o) {
  int64_t elements = o.k * o.r * o.s * o.c;
  if (o.direction == Direction::forward) {
    elements = o.n * o.p * o.q * o.y_pitch;
  } else if (o.direction == Direction::backward_data) {
    elements = o.n * o.h * o.w * o.x_pitch;
  }
  return static_cast<size_t>(elements) * sizeof(float);
}

}  // namespace

Convolutions::Convolutions(const CudaRuntime& runtime, const CudaOptions& options)
    : runtime_(runtime),
      rules_{.tf32 = options.tf32, .deterministic = options.deterministic, .workspace_limit = options.workspace_limit},
      time_plans_(options.time_plans) {
  cudnnHandle_t handle = nullptr;
  check(cudnnCreate(&handle), "cuda");
  handle_ = Owned<cudnnHandle_t, cudnnDestroy>(handle);
  check(cudnnSetStream(handle, runtime.compute.get()), "cuda");
}

void Convolutions::run(const char* op, const ConvProblem& problem, const Pointers& pointers, Workspace& workspace,
                       CachingAllocator& allocator) {
  runtime_.begin(op);
  execute(op, plan_of(op, problem, pointers, workspace, allocator), pointers, workspace);
}

const ConvPlan& Convolutions::plan_of(const char* op, const ConvProblem& problem, const Pointers& pointers,
                                      Workspace& workspace, CachingAllocator& allocator) {
  const auto known = plans_.find(problem);
  if (known != plans_.end()) {
    return known->second;
  }
  // A step that is being recorded cannot be timed.
  const bool timed = time_plans_ && !runtime_.graph.recording();
  std::string refusal = "no engine";
  std::vector<ConvPlan> found =
      plan_convolution(problem, {.handle = handle_.get()}, rules_, timed ? kCandidates : 1, refusal);
  if (found.empty()) {
    fail(ErrorCode::runtime, op, ": cuDNN has no plan for x[", problem.n, ",", problem.h, ",", problem.w, ",",
         problem.c, "] w[", problem.k, ",", problem.r, ",", problem.s, ",", problem.c, "]: ", refusal,
         ". Raise the workspace limit, or allow TF32 or algorithms that are not deterministic.");
  }
  const size_t best = found.size() == 1 ? 0 : fastest(op, found, problem, pointers, workspace, allocator);
  return plans_.emplace(problem, std::move(found[best])).first->second;
}

// Every candidate runs twice, into memory of its own: the result may be one that is added to.
size_t Convolutions::fastest(const char* op, const std::vector<ConvPlan>& plans, const ConvProblem& problem,
                             Pointers pointers, Workspace& workspace, CachingAllocator& allocator) {
  const Buffer result = allocator.allocate(result_bytes(problem), op);
  check(cudaMemsetAsync(result.data(), 0, result.bytes(), runtime_.compute.get()), op);
  void*& output = problem.direction == Direction::forward         ? pointers.y
                  : problem.direction == Direction::backward_data ? pointers.x
                                                                  : pointers.w;
  output = result.data();
  const Timer begin = new_timer(op);
  const Timer end = new_timer(op);
  size_t best = 0;
  float least = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < plans.size(); ++i) {
    execute(op, plans[i], pointers, workspace);
    check(cudaEventRecord(begin.get(), runtime_.compute.get()), op);
    execute(op, plans[i], pointers, workspace);
    check(cudaEventRecord(end.get(), runtime_.compute.get()), op);
    check(cudaEventSynchronize(end.get()), op);
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), op);
    if (milliseconds < least) {
      least = milliseconds;
      best = i;
    }
  }
  return best;
}

void Convolutions::execute(const char* op, const ConvPlan& plan, const Pointers& pointers, Workspace& workspace) {
  const auto lease = workspace.lease(plan.workspace + kScratchAlignment, op);
  const auto address = reinterpret_cast<uintptr_t>(lease.data());
  const std::array<void*, 1> scratch = {lease.data() +
                                        (kScratchAlignment - address % kScratchAlignment) % kScratchAlignment};
  const std::array<int64_t, 3> names = {kX, kW, kY};
  const std::array<void*, 3> data = {pointers.x, pointers.w, pointers.y};
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, data);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, scratch);
  pack.finalise();
  check(cudnnBackendExecute(handle_.get(), plan.plan.get(), pack.get()), op);
}

}  // namespace gle::cuda
