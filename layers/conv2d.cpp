#include "layers/conv2d.h"

namespace gle {

namespace {

int64_t output_size(int64_t size, int64_t kernel, int stride, int pad) {
  return (size + 2 * pad - kernel) / stride + 1;
}

Var convolve(Context& ctx, const Var& x, const Var& weight, const Var& bias, const Conv2dOptions& options,
             PackedWeights* packed, const Var& out) {
  const Shape shape = conv2d_shape(x.shape(), weight.shape(), options);
  require(!bias || bias.shape() == Shape{shape.channels()}, "conv2d", "the bias ", bias.shape(), " is not [",
          shape.channels(), "]");
  require(weight.value().dense(), "conv2d", "the weights must be dense");
  ctx.require_device("conv2d", {x.value(), weight.value(), bias.value()});
  Var y = ctx.output("conv2d", {x, weight, bias}, shape, out);
  ctx.backend.conv2d_forward(x.value(), weight.value(), bias.value(), options, kIdentity, packed, y.value());
  ctx.record("conv2d", {x, weight, bias}, y,
             [x = x.value(), w = weight.value(), options](Backend& b, const Tensor& dy, GradTargets to) {
               if (to[0]) {
                 b.conv2d_backward_data(w, dy, options, to[0]);
               }
               if (to[1]) {
                 b.conv2d_backward_weights(x, dy, options, to[1]);
               }
               if (to[2]) {
                 b.column_sums(dy, to[2]);
               }
             });
  return y;
}

}  // namespace

Conv2d make_conv2d(ParameterSet& set, const std::string& name, const Conv2dSizes& sizes, const Conv2dOptions& options,
                   bool with_bias) {
  return {.weight = &set.add(name + ".weight", {sizes.out, sizes.kernel_h, sizes.kernel_w, sizes.in}),
          .bias = with_bias ? &set.add(name + ".bias", {sizes.out}) : nullptr,
          .options = options};
}

Shape conv2d_shape(const Shape& x, const Shape& w, const Conv2dOptions& options) {
  const char* op = "conv2d";
  require(x.rank() == 4, op, "the input must be [N,H,W,C], got ", x);
  require(w.rank() == 4, op, "the weights must be [K,R,S,C], got ", w);
  require(x[3] == w[3], op, "the input ", x, " has ", x[3], " channels but the weights ", w, " take ", w[3],
          x[3] % w[3] == 0 ? " (grouped and depth-wise convolutions are not part of this engine)" : "");
  require(options.stride_h > 0 && options.stride_w > 0, op, "strides must be positive, got ", options.stride_h, " and ",
          options.stride_w);
  require(options.pad_h >= 0 && options.pad_w >= 0 && options.pad_h < w[1] && options.pad_w < w[2], op,
          "padding must be from 0 to below the kernel ", w[1], "x", w[2], ", got ", options.pad_h, " and ",
          options.pad_w);
  require(x[1] + 2 * options.pad_h >= w[1] && x[2] + 2 * options.pad_w >= w[2], op, "the kernel ", w[1], "x", w[2],
          " does not fit into the padded input ", x);
  return {x[0], output_size(x[1], w[1], options.stride_h, options.pad_h),
          output_size(x[2], w[2], options.stride_w, options.pad_w), w[0]};
}

Var conv2d(Context& ctx, const Var& x, const Conv2d& layer, const Var& out) {
  return convolve(ctx, x, ctx.parameter(*layer.weight), layer.bias ? ctx.parameter(*layer.bias) : Var(), layer.options,
                  nullptr, out);
}

Var conv2d(Context& ctx, const Var& x, const Conv2d& layer, KeptWeights& kept, const ParameterSet& set,
           const Var& out) {
  if (ctx.tape || ctx.mode == Mode::training) {
    return conv2d(ctx, x, layer, out);
  }
  if (kept.version != set.version()) {
    kept.packed.clear();
    kept.version = set.version();
  }
  return convolve(ctx, x, Var(layer.weight->value), layer.bias ? Var(layer.bias->value) : Var(), layer.options,
                  &kept.packed, out);
}

Var conv2d(Context& ctx, const Var& x, const Var& weight, const Var& bias, const Conv2dOptions& options,
           const Var& out) {
  return convolve(ctx, x, weight, bias, options, nullptr, out);
}

}  // namespace gle
