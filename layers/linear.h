#pragma once

#include "engine/context.h"

namespace gle {

struct Linear {
  Parameter* weight = nullptr;  // [out,in]
  Parameter* bias = nullptr;    // [out], or null
};

Linear make_linear(ParameterSet& set, const std::string& name, int64_t in, int64_t out, bool with_bias);

// x[N,in] -> x w^T + bias, [N,out]
Var linear(Context& ctx, const Var& x, const Linear& layer, const Var& out = {});
Var linear(Context& ctx, const Var& x, const Var& weight, const Var& bias, const Var& out = {});

}  // namespace gle
