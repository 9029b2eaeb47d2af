#include "engine/cuda/step_graph.h"

#include "engine/cuda/check.h"

namespace gle::cuda {

void StepGraph::begin(cudaStream_t stream) {
  // Relaxed: the allocator may take memory from the device meanwhile, which does not touch the stream.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "run_step");
  recording_ = true;
}

void StepGraph::launch(cudaStream_t stream) {
  cudaGraph_t recorded = nullptr;
  recording_ = false;
  check(cudaStreamEndCapture(stream, &recorded), "run_step");
  const Graph graph(recorded);
  if (executable_) {
    cudaGraphExecUpdateResultInfo info{};
    if (cudaGraphExecUpdate(executable_.get(), graph.get(), &info) != cudaSuccess) {
      (void)cudaGetLastError();
      executable_ = Executable();
    }
  }
  if (!executable_) {
    cudaGraphExec_t executable = nullptr;
    check(cudaGraphInstantiate(&executable, graph.get(), 0), "run_step");
    executable_ = Executable(executable);
  }
  check(cudaGraphLaunch(executable_.get(), stream), "run_step");
}

void StepGraph::abandon(cudaStream_t stream) noexcept {
  cudaGraph_t recorded = nullptr;
  recording_ = false;
  (void)cudaStreamEndCapture(stream, &recorded);
  const Graph graph(recorded);
  (void)cudaGetLastError();
}

}  // namespace gle::cuda
