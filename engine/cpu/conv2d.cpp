// Convolution: oneDNN where there is one and it takes the work, else the kernels of conv2d_kernels.h. Weights of our
// own are packed into the workspace for every call in training, where each call sees new ones, and kept by the caller
// in inference.
#include "engine/cpu/conv2d_kernels.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/onednn.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr size_t kFloat = sizeof(float);

ConvShape shape_of(const Tensor& x, const Shape& w, const Tensor& y, const Conv2dOptions& o) {
  return {.n = x.shape()[0],
          .h = x.shape()[1],
          .w = x.shape()[2],
          .c = x.shape()[3],
          .k = w[0],
          .r = w[1],
          .s = w[2],
          .p = y.shape()[1],
          .q = y.shape()[2],
          .stride_h = o.stride_h,
          .stride_w = o.stride_w,
          .pad_h = o.pad_h,
          .pad_w = o.pad_w,
          .x_pitch = x.pitch(),
          .y_pitch = y.pitch()};
}

// Sixteen floats at a time, so that what follows stays aligned.
int64_t round_up(int64_t floats) { return (floats + 15) / 16 * 16; }

}  // namespace

void CpuBackend::conv2d_forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dOptions& options,
                                Activation f, PackedWeights* packed, const Tensor& y) {
  if (runtime_.library &&
      runtime_.library->conv2d_forward(workspace(), x, w, bias, options, f, packed, allocator(), y)) {
    return;
  }
  ConvShape shape = shape_of(x, w.shape(), y, options);
  shape.weights = packed ? Weights::kept : Weights::once;
  const int64_t packed_floats = round_up(conv2d_forward_packed_floats(shape));
  const int64_t scratch_floats = conv2d_forward_scratch_floats(shape, runtime_.pool.size());
  const int64_t leased = scratch_floats + (packed ? 0 : packed_floats);
  const auto lease = workspace().lease(static_cast<size_t>(leased) * kFloat, "conv2d");
  float* weights = packed ? packed->data.data() : lease.floats() + scratch_floats;
  if (!packed) {
    conv2d_forward_pack(runtime_.pool, shape, w.data(), weights);
  } else if (packed->layout != this) {
    packed->data = new_tensor("conv2d", {packed_floats});
    packed->layout = this;
    weights = packed->data.data();
    conv2d_forward_pack(runtime_.pool, shape, w.data(), weights);
  }
  gle::cpu::GLE_ISA::conv2d_forward(runtime_.pool, shape, x.data(), weights, bias.data(), f.slope, y.data(),
                                    lease.floats());
}

void CpuBackend::conv2d_backward_data(const Tensor& w, const Tensor& dy, const Conv2dOptions& options,
                                      const GradTarget& dx) {
  if (runtime_.library && runtime_.library->conv2d_backward_data(workspace(), w, dy, options, dx)) {
    return;
  }
  const ConvShape shape = shape_of(dx.grad, w.shape(), dy, options);
  const int64_t packed_floats = round_up(conv2d_backward_data_packed_floats(shape));
  const int64_t scratch_floats = conv2d_backward_data_scratch_floats(shape, runtime_.pool.size());
  const auto lease = workspace().lease(static_cast<size_t>(packed_floats + scratch_floats) * kFloat, "conv2d");
  float* scratch = lease.floats() + packed_floats;
  conv2d_backward_data_pack(runtime_.pool, shape, w.data(), lease.floats());
  gle::cpu::GLE_ISA::conv2d_backward_data(runtime_.pool, shape, lease.floats(), dy.data(), dx.mode, dx.grad.data(),
                                          scratch);
}

void CpuBackend::conv2d_backward_weights(const Tensor& x, const Tensor& dy, const Conv2dOptions& options,
                                         const GradTarget& dw) {
  if (runtime_.library && runtime_.library->conv2d_backward_weights(workspace(), x, dy, options, dw)) {
    return;
  }
  const ConvShape shape = shape_of(x, dw.grad.shape(), dy, options);
  const int64_t scratch_floats = conv2d_backward_weights_scratch_floats(shape, runtime_.pool.size());
  const auto lease = workspace().lease(static_cast<size_t>(scratch_floats) * kFloat, "conv2d");
  gle::cpu::GLE_ISA::conv2d_backward_weights(runtime_.pool, shape, x.data(), dy.data(), dw.mode, dw.grad.data(),
                                             lease.floats());
}

}  // namespace gle::cpu::GLE_ISA
