// Convolution by cuDNN, which takes slices of channels by their strides and adds to what is there by its beta. A bias
// and an activation are one more pass of our own: cuDNN fuses them for some shapes and devices only.
#include <cstdint>

#include "engine/cuda/convolutions.h"
#include "engine/cuda/cuda_backend.h"

namespace gle::cuda {

namespace {

constexpr const char* kForward = "conv2d_forward";
constexpr const char* kBackwardData = "conv2d_backward_data";
constexpr const char* kBackwardWeights = "conv2d_backward_weights";

int64_t alignment_of(const Tensor& t) {
  const auto address = reinterpret_cast<uintptr_t>(t.data()) | 16U;
  return static_cast<int64_t>(address & ~(address - 1));
}

ConvProblem problem_of(Direction direction, const Tensor& x, const Tensor& w, const Tensor& y, const Conv2dOptions& o,
                       Accumulate mode) {
  return {.direction = direction,
          .n = x.shape()[0],
          .h = x.shape()[1],
          .w = x.shape()[2],
          .c = x.shape()[3],
          .k = w.shape()[0],
          .r = w.shape()[1],
          .s = w.shape()[2],
          .p = y.shape()[1],
          .q = y.shape()[2],
          .stride_h = o.stride_h,
          .stride_w = o.stride_w,
          .pad_h = o.pad_h,
          .pad_w = o.pad_w,
          .x_pitch = x.pitch(),
          .y_pitch = y.pitch(),
          .x_alignment = alignment_of(x),
          .w_alignment = alignment_of(w),
          .y_alignment = alignment_of(y),
          .mode = mode};
}

}  // namespace

void CudaBackend::conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                                 Activation f, PackedWeights*, const Tensor& y) {
  const ConvProblem problem = problem_of(Direction::forward, x, w, y, options, Accumulate::overwrite);
  convolutions_->run(kForward, problem, {x.data(), w.data(), y.data()}, workspace(), allocator());
  if (bias || f.slope != kIdentity.slope) {
    bias_activation(kForward, bias, f, y);
  }
}

void CudaBackend::conv2d_backward_data(const Tensor& w, const Tensor& dy, const Conv2dOptions& options,
                                       const GradTarget& dx) {
  const ConvProblem problem = problem_of(Direction::backward_data, dx.grad, w, dy, options, dx.mode);
  convolutions_->run(kBackwardData, problem, {dx.grad.data(), w.data(), dy.data()}, workspace(), allocator());
}

void CudaBackend::conv2d_backward_weights(const Tensor& x, const Tensor& dy, const Conv2dOptions& options,
                                          const GradTarget& dw) {
  const ConvProblem problem = problem_of(Direction::backward_weights, x, dw.grad, dy, options, dw.mode);
  convolutions_->run(kBackwardWeights, problem, {x.data(), dw.grad.data(), dy.data()}, workspace(), allocator());
}

}  // namespace gle::cuda
