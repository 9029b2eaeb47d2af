#pragma once

#include "engine/context.h"

namespace gle {

// Each works on the rows of x[N,C].
Var softmax(Context& ctx, const Var& x);
Var log_softmax(Context& ctx, const Var& x);
// Subtracts its mean from every row.
Var centre_rows(Context& ctx, const Var& x);
// x / max(|x|, 1e-12) + beta * x: beta normalisation, and with beta 0 the L2 normalisation.
Var normalise_rows(Context& ctx, const Var& x, float beta = 0.0F);

// These columns of x[N,C]: columns[c] (i32), which ascend.
Var take_columns(Context& ctx, const Var& x, const Tensor& columns);

}  // namespace gle
