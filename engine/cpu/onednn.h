#pragma once

#include "engine/cpu/runtime.h"
#include "engine/memory/workspace.h"
#include "engine/options.h"
#include "engine/packed_weights.h"
#include "engine/tensor.h"

namespace gle::cpu {

// Convolutions and matrix products by oneDNN. Each call says whether it took the work: slices of channels are left to
// our own kernels, since oneDNN has fast ones for dense tensors only. `add` modes go through the workspace.
class OneDnn {
 public:
  // Null in a build without oneDNN, and where its code would be no wider than the baseline's or of another instruction
  // set than asked for.
  static OneDnn* open(Isa isa, int threads);
  static void close(OneDnn* library);
  const char* version() const;

  bool conv2d_forward(Workspace& workspace, const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Conv2dOptions& options, Activation f, PackedWeights* packed, CachingAllocator& allocator,
                      const Tensor& y);
  bool conv2d_backward_data(Workspace& workspace, const Tensor& w, const Tensor& dy, const Conv2dOptions& options,
                            const GradTarget& dx);
  bool conv2d_backward_weights(Workspace& workspace, const Tensor& x, const Tensor& dy, const Conv2dOptions& options,
                               const GradTarget& dw);
  bool gemm(const Tensor& a, Transpose op_a, const Tensor& b, Transpose op_b, const GradTarget& c);

 private:
  struct State;
  explicit OneDnn(int threads);
  ~OneDnn();
  State* state_;
};

}  // namespace gle::cpu
