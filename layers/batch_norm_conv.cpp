#include "layers/batch_norm_conv.h"

#include "layers/norm_statistics.h"

namespace gle {

Var batch_norm_conv(Context& ctx, const Var& x, const BatchNorm& norm, Activation f, const Conv2d& conv,
                    const Var& out) {
  require(!conv.bias, "batch_norm_conv", "a convolution with bias is not supported: use batch_norm and conv2d");
  return batch_norm_conv(ctx, x, ctx.parameter(*norm.gamma), ctx.parameter(*norm.beta), norm, f,
                         ctx.parameter(*conv.weight), conv.options, out);
}

Var batch_norm_conv(Context& ctx, const Var& x, const Var& gamma, const Var& beta, const BatchNorm& norm, Activation f,
                    const Var& weight, const Conv2dOptions& options, const Var& out) {
  const char* op = "batch_norm_conv";
  require_sound(ctx, op, x.shape(), gamma.value(), beta.value(), norm, f);
  ctx.require_device(op, {x.value()});
  const Shape shape = conv2d_shape(x.shape(), weight.shape(), options);
  require(weight.value().dense(), op, "the weights must be dense");
  ctx.require_device(op, {weight.value()});
  Var y = ctx.output(op, {x, gamma, beta, weight}, shape, out);
  const Tensor active = ctx.backend.new_tensor(op, x.shape());
  const NormStatistics statistics(ctx, op, x.value(), norm);
  ctx.backend.batch_norm_forward(x.value(), statistics.mean, statistics.inv_std, gamma.value(), beta.value(), f,
                                 active);
  ctx.backend.conv2d_forward(active, weight.value(), Tensor(), options, kIdentity, nullptr, y.value());
  ctx.record(op, {x, gamma, beta, weight}, y,
             [x = x.value(), gamma = gamma.value(), beta = beta.value(), f, w = weight.value(), options, statistics](
                 Backend& b, const Tensor& dy, GradTargets to) {
               // One temporary for two things: the activations first, then their gradient.
               const Tensor active = b.new_tensor("batch_norm_conv", x.shape());
               if (to[3]) {
                 b.batch_norm_forward(x, statistics.mean, statistics.inv_std, gamma, beta, f, active);
                 b.conv2d_backward_weights(active, dy, options, to[3]);
               }
               b.conv2d_backward_data(w, dy, options, {active, Accumulate::overwrite});
               statistics.backward(b, x, gamma, beta, f, active, to[0], to[1], to[2]);
             });
  return y;
}

}  // namespace gle
