#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/conv_batch_norm.h"

namespace gle {

// Channels [begin, end) of one of a graph's values. Branches that are concatenated write their places of one value; a
// layer of a dense block reads a prefix of the value that it writes behind.
struct Place {
  int value = 0;
  int64_t begin = 0;
  int64_t end = 0;

  int64_t channels() const { return end - begin; }
};

enum class StepKind {
  conv_norm,    // convolution, batch-norm, activation
  norm,         // batch-norm, activation
  norm_conv,    // batch-norm, ReLU, convolution
  dense_layer,  // batch-norm, ReLU, convolution, batch-norm, ReLU, convolution
  max_pool,
  average_pool,
};

struct Step {
  StepKind kind = StepKind::conv_norm;
  std::string name;
  Place in;
  Place out;
  BatchNorm pre{};       // norm, norm_conv and dense_layer: the batch-norm in front
  ConvBatchNorm unit{};  // conv_norm and dense_layer; norm_conv has its convolution alone
  Conv2d post{};         // dense_layer: the convolution behind
  KeptWeights kept{};    // norm_conv and dense_layer: of the convolution without a batch-norm behind it
  Pool2dOptions pool{};
  bool last = false;  // ends in the backbone's last activation, which GL++ may make leaky
};

// A backbone from images to feature maps: a list of steps in the order in which they run. Value 0 is the image.
struct Graph {
  std::vector<int64_t> channels;  // of each value
  std::vector<Step> steps;
  Place features;
};

// The step's output, without the other channels of the value that it is written to.
Shape output_shape(const Step& step, const Shape& in);

}  // namespace gle
