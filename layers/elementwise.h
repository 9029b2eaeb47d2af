#pragma once

#include "engine/context.h"

namespace gle {

Var activation(Context& ctx, const Var& x, Activation f, const Var& out = {});
Var add(Context& ctx, const Var& a, const Var& b, const Var& out = {});
Var scale(Context& ctx, const Var& x, float factor, const Var& out = {});
// Drops elements with `probability` and scales the rest up in training; in inference it is x itself.
Var dropout(Context& ctx, const Var& x, float probability);

}  // namespace gle
