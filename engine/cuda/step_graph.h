#pragma once

#include <cuda_runtime_api.h>

#include "engine/cuda/handles.h"

namespace gle::cuda {

// The kernels of a step as one CUDA graph: recorded from the stream anew every time, so that numbers handed to kernels
// may change from step to step, and launched in one piece. The executable graph is kept and only updated as long as
// the kernels follow each other as before.
class StepGraph {
 public:
  bool recording() const { return recording_; }
  void begin(cudaStream_t stream);
  void launch(cudaStream_t stream);
  // Forgets what was recorded.
  void abandon(cudaStream_t stream) noexcept;

 private:
  using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
  using Executable = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

  Executable executable_;
  bool recording_ = false;
};

}  // namespace gle::cuda
