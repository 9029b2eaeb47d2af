#pragma once

#include "losses/group_loss.h"

namespace gle {

// group_loss() put together from ordinary ops, one for each line of its definition: the specification that the fused op
// is held to, on any backend. Slow (some of the ops go through the host), and without the fused op's care for rows that
// nearly vanish.
Var group_loss_composed(Context& ctx, const Var& embeddings, const Var& logits, const GroupBatch& batch,
                        const GroupLossOptions& options, const Var& given = Var());

}  // namespace gle
