#pragma once

#include <cstdint>
#include <vector>

#include "engine/cuda/cudnn_descriptor.h"
#include "engine/modes.h"

namespace gle::cuda {

enum class Direction { forward, backward_data, backward_weights };

// All that cuDNN has to know of a convolution x[N,H,W,C], w[K,R,S,C], y[N,P,Q,K]; x and y stand for their gradients
// where the direction says so. Pitches in elements, alignments of the first element in bytes.
struct ConvProblem {
  Direction direction = Direction::forward;
  int64_t n = 0, h = 0, w = 0, c = 0, k = 0, r = 0, s = 0, p = 0, q = 0;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0;
  int64_t x_pitch = 0, y_pitch = 0;
  int64_t x_alignment = 16, w_alignment = 16, y_alignment = 16;
  Accumulate mode = Accumulate::overwrite;

  auto operator<=>(const ConvProblem&) const = default;
};

// Names of the tensors in a graph and in what it is run with.
inline constexpr int64_t kX = 1, kW = 2, kY = 3;

// A graph of one convolution, with the parts that it refers to.
struct ConvGraph {
  std::vector<Descriptor> parts;
  Descriptor graph;
};

// `handle` may be null: such a graph can be planned for a device that is not here.
ConvGraph describe(const ConvProblem& problem, cudnnHandle_t handle);

}  // namespace gle::cuda
