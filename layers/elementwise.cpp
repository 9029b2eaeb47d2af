#include "layers/elementwise.h"

#include <cmath>

namespace gle {

Var activation(Context& ctx, const Var& x, Activation f, const Var& out) {
  require(f.slope >= 0, "activation", "the slope must not be negative, got ", f.slope);
  ctx.require_device("activation", {x.value()});
  Var y = ctx.output("activation", {x}, x.shape(), out);
  ctx.backend.activation_forward(x.value(), f, y.value());
  ctx.record("activation", {x}, y, [y = y.value(), f](Backend& b, const Tensor& dy, GradTargets to) {
    b.activation_backward(y, f, dy, to[0]);
  });
  return y;
}

Var add(Context& ctx, const Var& a, const Var& b, const Var& out) {
  require(a.shape() == b.shape(), "add", a.shape(), " and ", b.shape(), " differ");
  ctx.require_device("add", {a.value(), b.value()});
  Var y = ctx.output("add", {a, b}, a.shape(), out);
  ctx.backend.add(a.value(), b.value(), y.value());
  ctx.record("add", {a, b}, y, [](Backend& backend, const Tensor& dy, GradTargets to) {
    backend.scale(1.0F, dy, to[0]);
    backend.scale(1.0F, dy, to[1]);
  });
  return y;
}

Var scale(Context& ctx, const Var& x, float factor, const Var& out) {
  require(std::isfinite(factor), "scale", "the factor must be finite, got ", factor);
  ctx.require_device("scale", {x.value()});
  Var y = ctx.output("scale", {x}, x.shape(), out);
  ctx.backend.scale(factor, x.value(), {y.value()});
  ctx.record("scale", {x}, y, [factor](Backend& b, const Tensor& dy, GradTargets to) { b.scale(factor, dy, to[0]); });
  return y;
}

Var dropout(Context& ctx, const Var& x, float probability) {
  require(probability >= 0 && probability < 1, "dropout", "the probability must be from 0 to below 1, got ",
          probability);
  if (ctx.mode == Mode::inference || probability == 0) {
    return x;
  }
  ctx.require_device("dropout", {x.value()});
  const RandomKey key = ctx.next_random_key();
  Var y = ctx.new_var("dropout", x.shape());
  // Counted over the batch of all ranks.
  const int64_t first = ctx.comm ? ctx.comm->rank() * x.value().elements() : 0;
  ctx.backend.dropout(x.value(), probability, key, first, {y.value()});
  ctx.record("dropout", {x}, y, [probability, key, first](Backend& b, const Tensor& dy, GradTargets to) {
    b.dropout(dy, probability, key, first, to[0]);
  });
  return y;
}

}  // namespace gle
