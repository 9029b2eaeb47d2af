#pragma once

#include "engine/context.h"

namespace gle {

// Proxy-Anchor (Kim et al., 2020) of embeddings[n,D] and the proxies[C,D] of the classes, both normalised first.
// labels: i32 [n].
Var proxy_anchor_loss(Context& ctx, const Var& embeddings, const Tensor& labels, const Var& proxies,
                      float margin = 0.1F, float scale = 32.0F);

}  // namespace gle
