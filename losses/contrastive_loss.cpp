#include "losses/contrastive_loss.h"

#include "layers/rows.h"
#include "losses/internal/pair_loss.h"

namespace gle {

Var contrastive_loss(Context& ctx, const Var& embeddings, const Tensor& labels, float margin) {
  const char* op = "contrastive_loss";
  require(margin > 0, op, "the margin must be positive, got ", margin);
  const Var x = normalise_rows(ctx, embeddings);
  return pair_loss(ctx, op, x, labels, x, labels, Pairs::of_batch,
                   {.kind = PairLossKind::contrastive, .margin = margin});
}

}  // namespace gle
