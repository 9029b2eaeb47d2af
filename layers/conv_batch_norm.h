#pragma once

#include "layers/batch_norm.h"
#include "layers/conv2d.h"

namespace gle {

// A convolution, the batch-norm behind it and an activation. In training they are the two ops; in inference the
// batch-norm is folded into the weights, once until the parameters change.
class ConvBatchNorm {
 public:
  ConvBatchNorm() = default;
  ConvBatchNorm(const Conv2d& conv, const BatchNorm& norm) : conv(conv), norm(norm) {}

  Conv2d conv;
  BatchNorm norm;

  // Gives back the memory of the folded weights, until the next inference.
  void drop_folded() {
    folded_weight_ = folded_bias_ = Tensor();
    packed_.clear();
    folded_version_ = 0;
  }

 private:
  friend Var conv_batch_norm(Context& ctx, const Var& x, ConvBatchNorm& layer, const ParameterSet& set, Activation f,
                             const Var& out);

  Tensor folded_weight_;
  Tensor folded_bias_;
  PackedWeights packed_;
  uint64_t folded_version_ = 0;  // of the set, and
  uint64_t folded_moves_ = 0;    // of the running statistics
};

// `set` holds the layer's parameters; its version tells whether the folded weights still hold.
Var conv_batch_norm(Context& ctx, const Var& x, ConvBatchNorm& layer, const ParameterSet& set, Activation f,
                    const Var& out = {});

}  // namespace gle
