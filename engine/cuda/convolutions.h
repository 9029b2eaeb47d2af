#pragma once

#include <map>

#include "engine/cuda/conv_plan.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/runtime.h"

namespace gle::cuda {

// Runs convolutions by cuDNN on the compute stream, and keeps the plan of each for the next time.
class Convolutions {
 public:
  Convolutions(const CudaRuntime& runtime, const CudaOptions& options);

  struct Pointers {
    void* x;
    void* w;
    void* y;
  };
  void run(const char* op, const ConvProblem& problem, const Pointers& pointers, Workspace& workspace,
           CachingAllocator& allocator);

 private:
  const ConvPlan& plan_of(const char* op, const ConvProblem& problem, const Pointers& pointers, Workspace& workspace,
                          CachingAllocator& allocator);
  size_t fastest(const char* op, const std::vector<ConvPlan>& plans, const ConvProblem& problem, Pointers pointers,
                 Workspace& workspace, CachingAllocator& allocator);
  void execute(const char* op, const ConvPlan& plan, const Pointers& pointers, Workspace& workspace);

  const CudaRuntime& runtime_;
  PlanRules rules_;
  bool time_plans_;
  Owned<cudnnHandle_t, cudnnDestroy> handle_;
  std::map<ConvProblem, ConvPlan> plans_;
};

}  // namespace gle::cuda
