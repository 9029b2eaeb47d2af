#pragma once

#include "engine/context.h"

namespace gle {

struct Conv2d {
  Parameter* weight = nullptr;  // [K,R,S,C]
  Parameter* bias = nullptr;    // [K], or null
  Conv2dOptions options;
};

struct Conv2dSizes {
  int64_t in, out;
  int kernel_h, kernel_w;
};
// Names the parameters "<name>.weight" and "<name>.bias".
Conv2d make_conv2d(ParameterSet& set, const std::string& name, const Conv2dSizes& sizes, const Conv2dOptions& options,
                   bool with_bias);

// Throws unless the padding is below the kernel: more would only add rows and columns of the bias.
Shape conv2d_shape(const Shape& x, const Shape& w, const Conv2dOptions& options);

// A layer's weights as the backend likes them, kept from one inference to the next.
struct KeptWeights {
  PackedWeights packed;
  uint64_t version = 0;  // of the set that they were packed from
};

// x[N,H,W,C] -> [N,P,Q,K]; written to `out` if given.
Var conv2d(Context& ctx, const Var& x, const Conv2d& layer, const Var& out = {});
// In inference packs the weights once until the parameters of `set`, which holds them, change.
Var conv2d(Context& ctx, const Var& x, const Conv2d& layer, KeptWeights& kept, const ParameterSet& set,
           const Var& out = {});
// The same with the weights as Vars; bias may be empty.
Var conv2d(Context& ctx, const Var& x, const Var& weight, const Var& bias, const Conv2dOptions& options,
           const Var& out = {});

}  // namespace gle
