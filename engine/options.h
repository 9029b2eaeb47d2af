#pragma once

#include <cstdint>

#include "engine/modes.h"
#include "engine/tensor.h"

namespace gle {

// One output of a backward kernel. Without a tensor nobody wants this gradient, and the kernel leaves it out.
struct GradTarget {
  Tensor grad;
  Accumulate mode = Accumulate::overwrite;

  explicit operator bool() const { return static_cast<bool>(grad); }
};

struct Conv2dOptions {
  int stride_h = 1;
  int stride_w = 1;
  int pad_h = 0;
  int pad_w = 0;
};

enum class Rounding { floor, ceil };
enum class Padding { counted, ignored };

struct Pool2dOptions {
  int kernel_h = 2;
  int kernel_w = 2;
  int stride_h = 2;
  int stride_w = 2;
  int pad_h = 0;
  int pad_w = 0;
  Rounding rounding = Rounding::floor;
  // Whether average pooling divides by the taps on padding too.
  Padding padding = Padding::counted;
};

enum class Statistics { of_batch, frozen };

// f(v) = v for v > 0, else slope * v: ReLU is slope 0, identity slope 1. The slope is never negative.
struct Activation {
  float slope = 1.0F;
};
inline constexpr Activation kIdentity{1.0F};
inline constexpr Activation kRelu{0.0F};

// Names one stream of random numbers: the same key gives the same numbers on every backend.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

}  // namespace gle
