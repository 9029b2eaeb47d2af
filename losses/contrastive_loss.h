#pragma once

#include "engine/context.h"

namespace gle {

// Contrastive loss (Hadsell et al., 2006) of embeddings[n,D], normalised first: the mean over pairs of d^2 / 2 within a
// class and max(0, margin - d)^2 / 2 between classes. labels: i32 [n].
Var contrastive_loss(Context& ctx, const Var& embeddings, const Tensor& labels, float margin = 0.5F);

}  // namespace gle
