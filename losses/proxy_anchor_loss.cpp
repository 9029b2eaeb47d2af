#include "losses/proxy_anchor_loss.h"

#include "layers/rows.h"
#include "losses/internal/pair_loss.h"

namespace gle {

Var proxy_anchor_loss(Context& ctx, const Var& embeddings, const Tensor& labels, const Var& proxies, float margin,
                      float scale) {
  const char* op = "proxy_anchor_loss";
  require(scale > 0, op, "the scale must be positive, got ", scale);
  require(proxies.shape().rank() == 2, op, "needs proxies [C,D], got ", proxies.shape());
  require(embeddings.shape().rank() == 2, op, "needs embeddings [n,D], got ", embeddings.shape());
  require_labels(ctx, op, labels, embeddings.shape()[0]);
  ctx.backend.check_labels(labels, proxies.shape()[0]);
  return pair_loss(ctx, op, normalise_rows(ctx, proxies), proxy_labels(ctx, proxies.shape()[0]),
                   normalise_rows(ctx, embeddings), labels, Pairs::with_proxies,
                   {.kind = PairLossKind::proxy_anchor, .margin = margin, .scale = scale});
}

}  // namespace gle
