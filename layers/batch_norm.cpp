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
  require_sound(ctx, op, x.shape(), gamma.value(), beta.value(), layer, f);
  ctx.require_device(op, {x.value()});
  Var y = ctx.output(op, {x, gamma, beta}, x.shape(), out);
  const NormStatistics statistics(ctx, op, x.value(), layer);
  ctx.backend.batch_norm_forward(x.value(), statistics.mean, statistics.inv_std, gamma.value(), beta.value(), f,
                                 y.value());
  ctx.record(op, {x, gamma, beta}, y,
             [x = x.value(), gamma = gamma.value(), beta = beta.value(), f, statistics](Backend& b, const Tensor& dy,
                                                                                        GradTargets to) {
               statistics.backward(b, x, gamma, beta, f, dy, to[0], to[1], to[2]);
             });
  return y;
}

Var channel_moments(Context& ctx, const Var& x, const Var& out) {
  const char* op = "channel_moments";
  const int64_t channels = x.shape().channels();
  Comm* const comm = ranks_of_statistics(ctx);
  const int64_t rows = x.value().rows() * (comm ? comm->size() : 1);
  require(rows > 1, op, "training needs more than one value per channel, got ", x.shape());
  ctx.require_device(op, {x.value()});
  Var y = ctx.output(op, {x}, {2, channels}, out);
  Backend& b = ctx.backend;
  const Tensor mean = b.new_tensor(op, {channels}), inv_std = b.new_tensor(op, {channels});
  // With momentum 1 running statistics are those of the batch; what was there is multiplied by 0 and must be finite.
  b.fill(0.0F, y.value());
  const Tensor means = y.value().row(0), variances = y.value().row(1);
  if (comm) {
    b.batch_norm_join_statistics(moments_of_ranks(b, op, x.value(), *comm), x.value().rows(), 1.0F, 1.0F, means,
                                 variances, mean, inv_std);
  } else {
    b.batch_norm_statistics(x.value(), 1.0F, 1.0F, means, variances, mean, inv_std);
  }
  ctx.record(op, {x}, y,
             [x = x.value(), moments = y.value(), comm, rows](Backend& b, const Tensor& dy, GradTargets to) {
               Tensor dmoments = dy;
               if (comm) {
                 dmoments = b.new_tensor("channel_moments", dy.shape());
                 b.scale(1.0F, dy, {dmoments, Accumulate::overwrite});
                 comm->all_reduce(dmoments);
               }
               b.moments_backward(x, moments, dmoments, rows, to[0]);
             });
  return y;
}

Var batch_norm_given(Context& ctx, const Var& x, const Var& moments, const BatchNorm& layer, Activation f,
                     const Var& out) {
  return batch_norm_given(ctx, x, moments, ctx.parameter(*layer.gamma), ctx.parameter(*layer.beta), layer, f, out);
}

Var batch_norm_given(Context& ctx, const Var& x, const Var& moments, const Var& gamma, const Var& beta,
                     const BatchNorm& layer, Activation f, const Var& out) {
  const char* op = "batch_norm_given";
  require_sound(ctx, op, x.shape(), gamma.value(), beta.value(), layer, f);
  ctx.require_device(op, {x.value()});
  const Shape channels{x.shape().channels()};
  require(moments.shape() == Shape({2, x.shape().channels()}), op, "the input ", x.shape(), " needs moments [2,",
          x.shape().channels(), "], got ", moments.shape());
  require(ctx.mode == Mode::training && !layer.frozen, op, "is for training with the statistics of the batch");
  ctx.require_device(op, {moments.value()});
  Backend& b = ctx.backend;
  Var y = ctx.output(op, {x, moments, gamma, beta}, x.shape(), out);
  const Tensor mean = b.new_tensor(op, channels), inv_std = b.new_tensor(op, channels);
  const Comm* const comm = ranks_of_statistics(ctx);
  const int64_t rows = x.value().rows() * (comm ? comm->size() : 1);
  ++layer.running_mean->moves;
  b.batch_norm_join_statistics(moments.value(), rows, layer.eps, layer.momentum, layer.running_mean->value,
                               layer.running_var->value, mean, inv_std);
  b.batch_norm_forward(x.value(), mean, inv_std, gamma.value(), beta.value(), f, y.value());
  ctx.record(op, {x, moments, gamma, beta}, y,
             [x = x.value(), gamma = gamma.value(), beta = beta.value(), f, mean, inv_std, rows](
                 Backend& b, const Tensor& dy, GradTargets to) {
               const Tensor dgamma = b.new_tensor("batch_norm_given", gamma.shape());
               const Tensor dbeta = b.new_tensor("batch_norm_given", beta.shape());
               b.batch_norm_backward(x, mean, inv_std, gamma, beta, f, Statistics::frozen, dy, to[0],
                                     {dgamma, Accumulate::overwrite}, {dbeta, Accumulate::overwrite});
               if (to[1]) {
                 b.batch_norm_backward_moments(inv_std, gamma, dgamma, dbeta, rows, to[1]);
               }
               if (to[2]) {
                 b.scale(1.0F, dgamma, to[2]);
               }
               if (to[3]) {
                 b.scale(1.0F, dbeta, to[3]);
               }
             });
  return y;
}

}  // namespace gle
