#include "layers/rows.h"

#include <cmath>

namespace gle {

namespace {

void require_rows(const Context& ctx, const char* op, const Var& x) {
  require(x.shape().rank() == 2, op, "the input must be [N,C], got ", x.shape());
  ctx.require_device(op, {x.value()});
}

}  // namespace

Var softmax(Context& ctx, const Var& x) {
  require_rows(ctx, "softmax", x);
  Var y = ctx.new_var("softmax", x.shape());
  ctx.backend.softmax_forward(x.value(), y.value());
  ctx.record("softmax", {x}, y,
             [y = y.value()](Backend& b, const Tensor& dy, GradTargets to) { b.softmax_backward(y, dy, to[0]); });
  return y;
}

Var log_softmax(Context& ctx, const Var& x) {
  require_rows(ctx, "log_softmax", x);
  Var y = ctx.new_var("log_softmax", x.shape());
  ctx.backend.log_softmax_forward(x.value(), y.value());
  ctx.record("log_softmax", {x}, y,
             [y = y.value()](Backend& b, const Tensor& dy, GradTargets to) { b.log_softmax_backward(y, dy, to[0]); });
  return y;
}

Var centre_rows(Context& ctx, const Var& x) {
  require_rows(ctx, "centre_rows", x);
  Var y = ctx.new_var("centre_rows", x.shape());
  ctx.backend.centre_rows(x.value(), {y.value()});
  ctx.record("centre_rows", {x}, y, [](Backend& b, const Tensor& dy, GradTargets to) { b.centre_rows(dy, to[0]); });
  return y;
}

Var normalise_rows(Context& ctx, const Var& x, float beta) {
  require_rows(ctx, "normalise_rows", x);
  require(std::isfinite(beta), "normalise_rows", "beta must be finite, got ", beta);
  Var y = ctx.new_var("normalise_rows", x.shape());
  const Tensor norms = ctx.backend.new_tensor("normalise_rows", {x.shape()[0]});
  ctx.backend.normalise_rows_forward(x.value(), beta, norms, y.value());
  ctx.record("normalise_rows", {x}, y, [x = x.value(), norms, beta](Backend& b, const Tensor& dy, GradTargets to) {
    b.normalise_rows_backward(x, norms, beta, dy, to[0]);
  });
  return y;
}

Var take_columns(Context& ctx, const Var& x, const Tensor& columns) {
  const char* op = "take_columns";
  require(x.shape().rank() == 2, op, "the input must be [N,C], got ", x.shape());
  require(columns.type() == DType::i32 && columns.dense() && columns.elements() <= x.shape()[1], op, "of ", x.shape(),
          " ", columns.elements(), " columns cannot be taken");
  ctx.require_device(op, {x.value(), columns});
  ctx.backend.check_labels(columns, x.shape()[1]);
  Var y = ctx.new_var(op, {x.shape()[0], columns.elements()});
  ctx.backend.take_columns(x.value(), columns, y.value());
  ctx.record(op, {x}, y,
             [columns](Backend& b, const Tensor& dy, GradTargets to) { b.put_columns(dy, columns, to[0]); });
  return y;
}

}  // namespace gle
