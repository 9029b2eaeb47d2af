#include "losses/internal/pair_loss.h"

#include <numeric>
#include <vector>

#include "layers/linear.h"

namespace gle {

void require_labels(const Context& ctx, const char* op, const Tensor& labels, int64_t rows) {
  require(labels.type() == DType::i32 && labels.dense() && labels.elements() == rows, op, "the labels must be ", rows,
          " whole numbers, got ", labels.shape());
  ctx.require_device(op, {labels});
}

Var pair_loss(Context& ctx, const char* op, const Var& x, const Tensor& x_labels, const Var& y, const Tensor& y_labels,
              Pairs pairs, const PairLossOptions& options) {
  require(x.shape().rank() == 2 && y.shape().rank() == 2 && x.shape()[1] == y.shape()[1], op,
          "needs two matrices of as many columns, got ", x.shape(), " and ", y.shape());
  require_labels(ctx, op, x_labels, x.shape()[0]);
  require_labels(ctx, op, y_labels, y.shape()[0]);
  ctx.require_device(op, {x.value(), y.value()});
  const Var s = linear(ctx, x, y, Var());
  Var loss = ctx.new_var(op, {1});
  const Tensor ds = ctx.backend.new_tensor(op, s.shape());
  ctx.backend.pair_loss(s.value(), x_labels, y_labels, pairs, options, loss.value(), ds);
  ctx.record(op, {s}, loss, [ds](Backend& b, const Tensor& dloss, GradTargets to) { b.scale_by(dloss, ds, to[0]); });
  return loss;
}

Tensor proxy_labels(Context& ctx, int64_t classes) {
  std::vector<int32_t> numbers(static_cast<size_t>(classes));
  std::iota(numbers.begin(), numbers.end(), 0);
  Tensor labels = ctx.backend.new_tensor("proxy_labels", {classes}, DType::i32);
  ctx.backend.upload(numbers.data(), labels);
  return labels;
}

}  // namespace gle
