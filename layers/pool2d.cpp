#include "layers/pool2d.h"

namespace gle {

namespace {

constexpr int kMostTaps = 255;

int64_t output_size(int64_t size, int kernel, int stride, int pad, Rounding rounding) {
  const int64_t span = size + 2 * pad - kernel;
  int64_t result = (rounding == Rounding::ceil ? (span + stride - 1) / stride : span / stride) + 1;
  // A window that would start beyond the input and its left padding sees nothing.
  if (rounding == Rounding::ceil && (result - 1) * stride >= size + pad) {
    --result;
  }
  return result;
}

}  // namespace

Shape pool2d_shape(const Shape& x, const Pool2dOptions& o) {
  const char* op = "pool2d";
  require(x.rank() == 4, op, "the input must be [N,H,W,C], got ", x);
  require(o.kernel_h > 0 && o.kernel_w > 0 && o.stride_h > 0 && o.stride_w > 0, op,
          "kernel and stride must be positive, got ", o.kernel_h, "x", o.kernel_w, " and ", o.stride_h, "x",
          o.stride_w);
  require(int64_t{o.kernel_h} * o.kernel_w <= kMostTaps, op, "windows of at most ", kMostTaps,
          " pixels are possible, got ", o.kernel_h, "x", o.kernel_w, "; use global_pool for the whole picture");
  require(o.pad_h >= 0 && o.pad_w >= 0 && o.pad_h <= o.kernel_h / 2 && o.pad_w <= o.kernel_w / 2, op,
          "padding must be from 0 to half the kernel ", o.kernel_h, "x", o.kernel_w, ", got ", o.pad_h, " and ",
          o.pad_w);
  require(x[1] + 2 * o.pad_h >= o.kernel_h && x[2] + 2 * o.pad_w >= o.kernel_w, op, "the window ", o.kernel_h, "x",
          o.kernel_w, " does not fit into the padded input ", x);
  return {x[0], output_size(x[1], o.kernel_h, o.stride_h, o.pad_h, o.rounding),
          output_size(x[2], o.kernel_w, o.stride_w, o.pad_w, o.rounding), x[3]};
}

Var max_pool(Context& ctx, const Var& x, const Pool2dOptions& options, const Var& out) {
  const Shape shape = pool2d_shape(x.shape(), options);
  ctx.require_device("max_pool", {x.value()});
  Var y = ctx.output("max_pool", {x}, shape, out);
  const bool remember = ctx.tape && ctx.tape->needs_gradient(x);
  const Tensor taps = remember ? ctx.backend.new_tensor("max_pool", shape, DType::u8) : Tensor();
  ctx.backend.max_pool_forward(x.value(), options, y.value(), taps);
  ctx.record("max_pool", {x}, y, [taps, options](Backend& b, const Tensor& dy, GradTargets to) {
    b.max_pool_backward(taps, options, dy, to[0]);
  });
  return y;
}

Var average_pool(Context& ctx, const Var& x, const Pool2dOptions& options, const Var& out) {
  const Shape shape = pool2d_shape(x.shape(), options);
  ctx.require_device("average_pool", {x.value()});
  Var y = ctx.output("average_pool", {x}, shape, out);
  ctx.backend.average_pool_forward(x.value(), options, y.value());
  ctx.record("average_pool", {x}, y,
             [options](Backend& b, const Tensor& dy, GradTargets to) { b.average_pool_backward(options, dy, to[0]); });
  return y;
}

Var global_pool(Context& ctx, const Var& x, float max_share, const Var& out) {
  require(x.shape().rank() == 4, "global_pool", "the input must be [N,H,W,C], got ", x.shape());
  require(max_share >= 0 && max_share <= 1, "global_pool", "the share of the maximum must be from 0 to 1, got ",
          max_share);
  ctx.require_device("global_pool", {x.value()});
  const Shape shape{x.shape()[0], x.shape()[3]};
  Var y = ctx.output("global_pool", {x}, shape, out);
  const bool remember = max_share > 0 && ctx.tape && ctx.tape->needs_gradient(x);
  const Tensor where = remember ? ctx.backend.new_tensor("global_pool", shape, DType::i32) : Tensor();
  ctx.backend.global_pool_forward(x.value(), max_share, y.value(), where);
  ctx.record("global_pool", {x}, y, [where, max_share](Backend& b, const Tensor& dy, GradTargets to) {
    b.global_pool_backward(where, max_share, dy, to[0]);
  });
  return y;
}

}  // namespace gle
