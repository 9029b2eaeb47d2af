#include "losses/multi_similarity_loss.h"

#include "layers/rows.h"
#include "losses/internal/pair_loss.h"

namespace gle {

Var multi_similarity_loss(Context& ctx, const Var& embeddings, const Tensor& labels,
                          const MultiSimilarityOptions& options) {
  const char* op = "multi_similarity_loss";
  require(options.scale > 0 && options.negative_scale > 0, op, "the scales must be positive, got ", options.scale,
          " and ", options.negative_scale);
  const Var x = normalise_rows(ctx, embeddings);
  return pair_loss(ctx, op, x, labels, x, labels, Pairs::of_batch,
                   {.kind = PairLossKind::multi_similarity,
                    .margin = options.margin,
                    .scale = options.scale,
                    .negative_scale = options.negative_scale,
                    .base = options.base});
}

}  // namespace gle
