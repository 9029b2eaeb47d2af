#include "layers/batch_norm.h"

#include "layers/norm_statistics.h"

namespace gle {

BatchNorm make_batch_norm(ParameterSet& set, const std::string& name, int64_t channels) {
  return {.gamma = &set.add(name + ".weight", {channels}),
          .beta = &set.add(name + ".bias", {channels}),
          .running_mean = &set.add_state(name + ".running_mean", {channels}),
          .running_var = &set.add_state(name + ".running_var", {channels})};
}

Var batch_norm(Context& ctx, const Var& x, const BatchNorm& layer, Activation f, const Var& out) {
  return batch_norm(ctx, x, ctx.parameter(*layer.gamma), ctx.parameter(*layer.beta), layer, f, out);
}

Var batch_norm(Context& ctx, const Var& x, const Var& gamma, const Var& beta, const BatchNorm& layer, Activation f,
               const Var& out) {
  const char* op = "batch_norm";
  const Shape channels{x.shape().channels()};
  for (const Shape& shape : {gamma.shape(), beta.shape(), layer.running_mean->shape, layer.running_var->shape}) {
    require(shape == channels, op, "the input ", x.shape(), " needs parameters ", channels, ", got ", shape);
  }
  require(layer.eps > 0 && layer.momentum >= 0 && layer.momentum <= 1, op,
          "eps must be positive and momentum from 0 to 1, got ", layer.eps, " and ", layer.momentum);
  require(f.slope >= 0, op, "the slope must not be negative, got ", f.slope);
  ctx.require_device(op, {x.value(), gamma.value(), beta.value(), layer.running_mean->value});
  const NormStatistics statistics(ctx, op, x.value(), layer);
  Var y = ctx.output(op, x.shape(), out);
  ctx.backend.batch_norm_forward(x.value(), statistics.mean, statistics.inv_std, gamma.value(), beta.value(), f,
                                 y.value());
  ctx.record(op, {x, gamma, beta}, y,
             [x = x.value(), gamma = gamma.value(), beta = beta.value(), f, statistics](Backend& b, const Tensor& dy,
                                                                                        GradTargets to) {
               statistics.backward(b, x, gamma, beta, f, dy, to[0], to[1], to[2]);
             });
  return y;
}

}  // namespace gle
