#include "layers/norm_statistics.h"

namespace gle {

Tensor moments_of_ranks(Backend& b, const char* op, const Tensor& x, Comm& comm) {
  const int64_t channels = x.channels();
  const Tensor own = b.new_tensor(op, {2, channels});
  Tensor all = b.new_tensor(op, {2 * comm.size(), channels});
  // With momentum 1 running statistics are those of the batch; what was there is multiplied by 0 and must be finite.
  b.fill(0.0F, own);
  b.batch_norm_statistics(x, 1.0F, 1.0F, own.row(0), own.row(1), b.new_tensor(op, {channels}),
                          b.new_tensor(op, {channels}));
  comm.all_gather(own.reshaped({1, 2 * channels}), all.reshaped({comm.size(), 2 * channels}));
  return all;
}

void require_sound(const Context& ctx, const char* op, const Shape& x, const Tensor& gamma, const Tensor& beta,
                   const BatchNorm& layer, Activation f) {
  const Shape channels{x.channels()};
  for (const Shape& shape : {gamma.shape(), beta.shape(), layer.running_mean->shape, layer.running_var->shape}) {
    require(shape == channels, op, "the input ", x, " needs parameters ", channels, ", got ", shape);
  }
  require(layer.eps > 0 && layer.momentum >= 0 && layer.momentum <= 1, op,
          "eps must be positive and momentum from 0 to 1, got ", layer.eps, " and ", layer.momentum);
  require(f.slope >= 0, op, "the slope must not be negative, got ", f.slope);
  ctx.require_device(op, {gamma, beta, layer.running_mean->value});
}

NormStatistics::NormStatistics(Context& ctx, const char* op, const Tensor& x, const BatchNorm& layer) {
  Backend& b = ctx.backend;
  const Tensor& running_mean = layer.running_mean->value;
  const Tensor& running_var = layer.running_var->value;
  const bool of_batch = ctx.mode == Mode::training && !layer.frozen;
  comm = of_batch ? ranks_of_statistics(ctx) : nullptr;
  require(!of_batch || x.rows() * (comm ? comm->size() : 1) > 1, op,
          "training needs more than one value per channel, got ", x.shape());
  const int64_t channels = x.channels();
  inv_std = b.new_tensor(op, {channels});
  if (!of_batch) {
    mean = running_mean;
    b.batch_norm_inv_std(running_var, layer.eps, inv_std);
    return;
  }
  kind = Statistics::of_batch;
  mean = b.new_tensor(op, {channels});
  ++layer.running_mean->moves;
  if (!comm) {
    b.batch_norm_statistics(x, layer.eps, layer.momentum, running_mean, running_var, mean, inv_std);
    return;
  }
  b.batch_norm_join_statistics(moments_of_ranks(b, op, x, *comm), x.rows(), layer.eps, layer.momentum, running_mean,
                               running_var, mean, inv_std);
}

void NormStatistics::backward(Backend& b, const Tensor& x, const Tensor& gamma, const Tensor& beta, Activation f,
                              const Tensor& dy, const GradTarget& dx, const GradTarget& dgamma,
                              const GradTarget& dbeta) const {
  if (!comm) {
    b.batch_norm_backward(x, mean, inv_std, gamma, beta, f, kind, dy, dx, dgamma, dbeta);
    return;
  }
  const Tensor sums = b.new_tensor("batch_norm", {2, x.channels()});
  b.batch_norm_backward_sums(x, mean, inv_std, gamma, beta, f, dy, sums, dgamma, dbeta);
  // Whether dx is wanted is the same on every rank.
  if (dx) {
    comm->all_reduce(sums);
    b.batch_norm_backward_data(x, mean, inv_std, gamma, beta, f, dy, sums, x.rows() * comm->size(), dx);
  }
}

}  // namespace gle
