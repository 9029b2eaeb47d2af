#pragma once

#include "engine/context.h"

namespace gle {

enum class Triplets { hard, semihard, all };

// Triplet loss of embeddings[n,D], normalised first: the mean of max(0, margin + d(a, p) - d(a, n)). For each sample
// its farthest positive and nearest negative (hard: Hermans et al., 2017); for each positive pair the nearest negative
// beyond it, or the farthest if there is none (semihard: Schroff et al., 2015); or all triplets that are not yet 0.
// labels: i32 [n].
Var triplet_loss(Context& ctx, const Var& embeddings, const Tensor& labels, Triplets triplets = Triplets::semihard,
                 float margin = 0.2F);

}  // namespace gle
