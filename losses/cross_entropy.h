#pragma once

#include "engine/context.h"

namespace gle {

// Mean over rows of the cross-entropy of softmax(logits[N,C]) with the labels[N] (i32), a single number [1]. Smoothing
// s spreads the share s of each target evenly over all classes.
Var cross_entropy(Context& ctx, const Var& logits, const Tensor& labels, float smoothing = 0.0F);

}  // namespace gle
