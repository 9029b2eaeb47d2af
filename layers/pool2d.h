#pragma once

#include "engine/context.h"

namespace gle {

Shape pool2d_shape(const Shape& x, const Pool2dOptions& options);

// x[N,H,W,C] -> [N,P,Q,C] over windows of at most 255 pixels; written to `out` if given.
Var max_pool(Context& ctx, const Var& x, const Pool2dOptions& options, const Var& out = {});
Var average_pool(Context& ctx, const Var& x, const Pool2dOptions& options, const Var& out = {});

// x[N,H,W,C] -> [N,C]: max_share * maximum + (1 - max_share) * mean. 0 is average, 1 is maximum pooling.
Var global_pool(Context& ctx, const Var& x, float max_share = 0.0F, const Var& out = {});

}  // namespace gle
