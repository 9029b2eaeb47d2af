#include "losses/triplet_loss.h"

#include "layers/rows.h"
#include "losses/internal/pair_loss.h"

namespace gle {

Var triplet_loss(Context& ctx, const Var& embeddings, const Tensor& labels, Triplets triplets, float margin) {
  const char* op = "triplet_loss";
  require(margin >= 0, op, "the margin must not be negative, got ", margin);
  const PairLossKind kind = triplets == Triplets::hard       ? PairLossKind::triplet_hard
                            : triplets == Triplets::semihard ? PairLossKind::triplet_semihard
                                                             : PairLossKind::triplet_all;
  const Var x = normalise_rows(ctx, embeddings);
  return pair_loss(ctx, op, x, labels, x, labels, Pairs::of_batch, {.kind = kind, .margin = margin});
}

}  // namespace gle
