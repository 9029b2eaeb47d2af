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

//   g = gradient_scale * gradient + l2 * value
//   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
//   value = decay * value - step_size * m / (root_scale * sqrt(v) + eps),  or  decay * value - step_size * m
struct AdamStep {
  float gradient_scale = 1;
  float l2 = 0;
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float decay = 1;
  float step_size = 0;
  float root_scale = 1;
  float eps = 1e-8F;
  bool adaptive = true;  // false: the second form
};

//   g = gradient_scale * gradient + l2 * value,  m = momentum * m + g
//   value = decay * value - step_size * (nesterov ? g + momentum * m : m)
struct MomentumStep {
  float gradient_scale = 1;
  float l2 = 0;
  float momentum = 0.9F;
  float decay = 1;
  float step_size = 0;
  bool nesterov = false;
};

// Names one stream of random numbers: the same key gives the same numbers on every backend.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t stream = 0;
};

}  // namespace gle
