#include "losses/cross_entropy.h"

#include "losses/internal/pair_loss.h"

namespace gle {

Var cross_entropy(Context& ctx, const Var& logits, const Tensor& labels, float smoothing) {
  const char* op = "cross_entropy";
  require(logits.shape().rank() == 2, op, "the logits must be [N,C], got ", logits.shape());
  require_labels(ctx, op, labels, logits.shape()[0]);
  require(smoothing >= 0 && smoothing < 1, op, "smoothing must be from 0 to below 1, got ", smoothing);
  ctx.require_device(op, {logits.value()});
  ctx.backend.check_labels(labels, logits.shape()[1]);
  Var loss = ctx.new_var(op, {1});
  const Tensor log_sums = ctx.backend.new_tensor(op, {logits.shape()[0], 2});
  ctx.backend.cross_entropy_forward(logits.value(), labels, smoothing, log_sums, loss.value());
  ctx.record(op, {logits}, loss,
             [logits = logits.value(), labels, smoothing, log_sums](Backend& b, const Tensor& dloss, GradTargets to) {
               b.cross_entropy_backward(logits, labels, smoothing, log_sums, dloss, to[0]);
             });
  return loss;
}

}  // namespace gle
