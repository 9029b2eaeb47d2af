#include "layers/conv_batch_norm.h"

#include "layers/norm_statistics.h"

namespace gle {

Var conv_batch_norm(Context& ctx, const Var& x, ConvBatchNorm& layer, const ParameterSet& set, Activation f,
                    const Var& out) {
  const char* op = "conv_batch_norm";
  if (ctx.tape || ctx.mode == Mode::training) {
    return batch_norm(ctx, conv2d(ctx, x, layer.conv), layer.norm, f, out);
  }
  const Tensor& weight = layer.conv.weight->value;
  const Shape shape = conv2d_shape(x.shape(), weight.shape(), layer.conv.options);
  const BatchNorm& norm = layer.norm;
  require_sound(ctx, op, shape, norm.gamma->value, norm.beta->value, norm, f);
  require(!layer.conv.bias || layer.conv.bias->shape == Shape({shape.channels()}), op, "the weights ", weight.shape(),
          " need a bias of ", shape.channels(), " numbers");
  ctx.require_device(op, {x.value(), weight});
  const uint64_t moves = norm.running_mean->moves;
  if (layer.folded_version_ != set.version() || layer.folded_moves_ != moves) {
    const Shape channels{shape.channels()};
    const Tensor inv_std = ctx.backend.new_tensor(op, channels);
    layer.folded_weight_ = ctx.backend.new_tensor(op, weight.shape());
    layer.folded_bias_ = ctx.backend.new_tensor(op, channels);
    layer.packed_.clear();
    ctx.backend.batch_norm_inv_std(norm.running_var->value, norm.eps, inv_std);
    ctx.backend.batch_norm_fold(weight, layer.conv.bias ? layer.conv.bias->value : Tensor(), norm.running_mean->value,
                                inv_std, norm.gamma->value, norm.beta->value, layer.folded_weight_, layer.folded_bias_);
    layer.folded_version_ = set.version();
    layer.folded_moves_ = moves;
  }
  Var y = ctx.output(op, {x}, shape, out);
  ctx.backend.conv2d_forward(x.value(), layer.folded_weight_, layer.folded_bias_, layer.conv.options, f, &layer.packed_,
                             y.value());
  ctx.record(op, {}, y, [](Backend&, const Tensor&, GradTargets) {});
  return y;
}

}  // namespace gle
