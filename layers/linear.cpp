#include "layers/linear.h"

namespace gle {

Linear make_linear(ParameterSet& set, const std::string& name, int64_t in, int64_t out, bool with_bias) {
  return {.weight = &set.add(name + ".weight", {out, in}),
          .bias = with_bias ? &set.add(name + ".bias", {out}) : nullptr};
}

Var linear(Context& ctx, const Var& x, const Linear& layer, const Var& out) {
  return linear(ctx, x, ctx.parameter(*layer.weight), layer.bias ? ctx.parameter(*layer.bias) : Var(), out);
}

Var linear(Context& ctx, const Var& x, const Var& weight, const Var& bias, const Var& out) {
  const char* op = "linear";
  require(x.shape().rank() == 2, op, "the input must be [N,C], got ", x.shape());
  require(weight.shape().rank() == 2 && weight.shape()[1] == x.shape()[1], op, "the input ", x.shape(),
          " does not fit the weights ", weight.shape());
  const Shape shape{x.shape()[0], weight.shape()[0]};
  require(!bias || bias.shape() == Shape{shape[1]}, op, "the bias ", bias.shape(), " is not [", shape[1], "]");
  ctx.require_device(op, {x.value(), weight.value(), bias.value()});
  Var y = ctx.output(op, {x, weight, bias}, shape, out);
  ctx.backend.gemm(x.value(), Transpose::no, weight.value(), Transpose::yes, bias.value(), {y.value()});
  ctx.record(op, {x, weight, bias}, y,
             [x = x.value(), w = weight.value()](Backend& b, const Tensor& dy, GradTargets to) {
               if (to[0]) {
                 b.gemm(dy, Transpose::no, w, Transpose::no, Tensor(), to[0]);
               }
               if (to[1]) {
                 b.gemm(dy, Transpose::yes, x, Transpose::no, Tensor(), to[1]);
               }
               if (to[2]) {
                 b.column_sums(dy, to[2]);
               }
             });
  return y;
}

}  // namespace gle
