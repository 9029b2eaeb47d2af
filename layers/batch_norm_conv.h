#pragma once

#include "layers/batch_norm.h"
#include "layers/conv2d.h"

namespace gle {

// conv2d(f(batch_norm(x))) without a bias, keeping neither the batch-norm's output nor the activation's: backward makes
// it again from x. It is batch_norm() and conv2d() in one, for less memory and one more pass over x.
Var batch_norm_conv(Context& ctx, const Var& x, const BatchNorm& norm, Activation f, const Conv2d& conv,
                    const Var& out = {});
// The same with the parameters as Vars.
Var batch_norm_conv(Context& ctx, const Var& x, const Var& gamma, const Var& beta, const BatchNorm& norm, Activation f,
                    const Var& weight, const Conv2dOptions& options, const Var& out = {});

}  // namespace gle
