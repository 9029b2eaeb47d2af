#include "layers/gather.h"

namespace gle {

namespace {

// Collectives take dense tensors.
Tensor dense(Backend& b, const char* op, const Tensor& x) {
  if (x.dense()) {
    return x;
  }
  Tensor copy = b.new_tensor(op, x.shape());
  b.scale(1.0F, x, {copy});
  return copy;
}

}  // namespace

Var all_gather(Context& ctx, const Var& x) {
  const char* op = "all_gather";
  require(x.shape().rank() == 2, op, "the input must be [N,C], got ", x.shape());
  ctx.require_device(op, {x.value()});
  if (!ctx.comm) {
    return x;
  }
  const Shape own = x.shape();
  Var y = ctx.new_var(op, {own[0] * ctx.comm->size(), own[1]});
  ctx.comm->all_gather(dense(ctx.backend, op, x.value()), y.value());
  ctx.record(op, {x}, y, [own, rank = ctx.comm->rank()](Backend& b, const Tensor& dy, GradTargets to) {
    const Tensor all = dense(b, "all_gather", dy);
    const int64_t begin = rank * own.elements();
    b.scale(1.0F, all.reshaped({1, all.elements()}).slice(begin, begin + own.elements()).reshaped(own), to[0]);
  });
  return y;
}

Var count_once(Context& ctx, const Var& x) {
  ctx.require_device("count_once", {x.value()});
  if (!ctx.comm || !ctx.tape) {
    return x;
  }
  Var y = ctx.tape->new_var(x.value());
  ctx.record("count_once", {x}, y,
             [share = 1.0F / static_cast<float>(ctx.comm->size())](Backend& b, const Tensor& dy, GradTargets to) {
               b.scale(share, dy, to[0]);
             });
  return y;
}

Var sum_over_ranks(Context& ctx, const Var& x) {
  const char* op = "sum_over_ranks";
  ctx.require_device(op, {x.value()});
  if (!ctx.comm) {
    return x;
  }
  Var y = ctx.new_var(op, x.shape());
  ctx.backend.scale(1.0F, x.value(), {y.value()});
  ctx.comm->all_reduce(y.value());
  ctx.record(op, {x}, y, [](Backend& b, const Tensor& dy, GradTargets to) { b.scale(1.0F, dy, to[0]); });
  return y;
}

}  // namespace gle
