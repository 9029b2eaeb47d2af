#pragma once

#include "engine/context.h"

namespace gle {

struct MultiSimilarityOptions {
  float scale = 2.0F;            // alpha, of positives
  float negative_scale = 50.0F;  // beta
  float base = 0.5F;             // lambda
  float margin = 0.1F;           // epsilon: only pairs within it of being wrong count
};

// Multi-similarity loss (Wang et al., 2019) of embeddings[n,D], normalised first. labels: i32 [n].
Var multi_similarity_loss(Context& ctx, const Var& embeddings, const Tensor& labels,
                          const MultiSimilarityOptions& options = {});

}  // namespace gle
