#pragma once

#include "engine/context.h"

namespace gle {

// Proxy-NCA (Movshovitz-Attias et al., 2017): embeddings[n,D] and the proxies[C,D] of the classes, both normalised and
// then scaled to length `length`; with squared distances d, the mean of d(x, own proxy) + log sum e^-d(x, others).
// labels: i32 [n].
Var proxy_nca_loss(Context& ctx, const Var& embeddings, const Tensor& labels, const Var& proxies, float length = 3.0F);

}  // namespace gle
