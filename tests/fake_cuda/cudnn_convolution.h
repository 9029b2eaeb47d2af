#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fake_cuda/cudnn_descriptor.h"

namespace fake_cuda {

struct TensorView {
  int64_t id = 0;
  int64_t alignment = 1;
  std::vector<int64_t> dims;  // N C H W, or K C R S
  std::vector<int64_t> strides;

  size_t extent() const;
};

enum class Direction { forward, data, weights };

struct Convolution {
  Direction direction{};
  TensorView x;
  TensorView w;
  TensorView y;
  std::vector<int64_t> padding;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  float alpha = 1.0F;
  float beta = 0.0F;

  const TensorView& output() const {
    return direction == Direction::forward ? y : direction == Direction::data ? x : w;
  }
};

bool is_convolution(cudnnBackendDescriptorType_t type);
// Refuses what the manual does: sizes that do not fit together, missing attributes.
cudnnStatus_t check_convolution(const Descriptor& operation);
Convolution read_convolution(const Descriptor& operation);

// The engines that the stand-in offers, the quickest first as heuristics would have it.
struct Engine {
  int64_t index;
  std::vector<cudnnBackendNumericalNote_t> notes;
  bool fallback;
  bool tf32;
  bool any_order;  // sums in an order that differs from run to run
  int64_t workspace_bytes(const Convolution& convolution) const;
};
const std::vector<Engine>& engines();

void run_convolution(const Convolution& convolution, const Engine& engine, float* x, float* w, float* y);

}  // namespace fake_cuda
