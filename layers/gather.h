#pragma once

#include "engine/context.h"

namespace gle {

// What several ranks share. There is one loss, which every rank has whole: it is computed by all of them from the same
// numbers. So what comes back to a rank from the loss is the whole gradient of what it gave, and the gradient of a
// parameter is the sum over ranks. In one process (no comm) each op is x itself.

// The ranks' x[n,C] one below the other.
Var all_gather(Context& ctx, const Var& x);
// x, which all ranks have alike and hand to the loss: its gradient counts once in the sum over ranks.
Var count_once(Context& ctx, const Var& x);
// The sum of the ranks' x, each a part of the loss.
Var sum_over_ranks(Context& ctx, const Var& x);

}  // namespace gle
