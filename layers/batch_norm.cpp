#include "layers/batch_norm.h"

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
  const bool of_batch = ctx.mode == Mode::training && !layer.frozen;
  require(!of_batch || x.value().rows() > 1, op, "training needs more than one value per channel, got ", x.shape());

  Var y = ctx.output(op, x.shape(), out);
  Tensor mean = layer.running_mean->value;
  const Tensor inv_std = ctx.backend.new_tensor(op, channels);
  if (of_batch) {
    mean = ctx.backend.new_tensor(op, channels);
    ctx.backend.batch_norm_statistics(x.value(), layer.eps, layer.momentum, layer.running_mean->value,
                                      layer.running_var->value, mean, inv_std);
    ++layer.running_mean->moves;
  } else {
    ctx.backend.batch_norm_inv_std(layer.running_var->value, layer.eps, inv_std);
  }
  ctx.backend.batch_norm_forward(x.value(), mean, inv_std, gamma.value(), beta.value(), f, y.value());
  ctx.record(op, {x, gamma, beta}, y,
             [x = x.value(), mean, inv_std, gamma = gamma.value(), beta = beta.value(), f,
              statistics = of_batch ? Statistics::of_batch : Statistics::frozen](Backend& b, const Tensor& dy,
                                                                                 GradTargets to) {
               b.batch_norm_backward(x, mean, inv_std, gamma, beta, f, statistics, dy, to[0], to[1], to[2]);
             });
  return y;
}

}  // namespace gle
