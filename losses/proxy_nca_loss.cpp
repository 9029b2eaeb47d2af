#include "losses/proxy_nca_loss.h"

#include "layers/rows.h"
#include "losses/internal/pair_loss.h"

namespace gle {

Var proxy_nca_loss(Context& ctx, const Var& embeddings, const Tensor& labels, const Var& proxies, float length) {
  const char* op = "proxy_nca_loss";
  require(length > 0, op, "the length must be positive, got ", length);
  require(proxies.shape().rank() == 2 && proxies.shape()[0] > 1, op, "needs proxies [C,D] of two classes or more, got ",
          proxies.shape());
  require(embeddings.shape().rank() == 2, op, "needs embeddings [n,D], got ", embeddings.shape());
  require_labels(ctx, op, labels, embeddings.shape()[0]);
  ctx.backend.check_labels(labels, proxies.shape()[0]);
  // d = 2 length^2 (1 - s) on the sphere; the constant cancels.
  return pair_loss(ctx, op, normalise_rows(ctx, embeddings), labels, normalise_rows(ctx, proxies),
                   proxy_labels(ctx, proxies.shape()[0]), Pairs::with_proxies,
                   {.kind = PairLossKind::proxy_nca, .scale = 2 * length * length});
}

}  // namespace gle
