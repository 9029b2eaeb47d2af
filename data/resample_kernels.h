#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/cpu/runtime.h"

namespace gle::data {

// Weights of one axis: output i is the sum over k < count[i] of weights[i * taps + k] * input[first[i] + k], in fixed
// point with kWeightBits behind the point.
inline constexpr int kWeightBits = 22;

struct AxisView {
  const int32_t* first;
  const int32_t* count;
  const int32_t* weights;
  int32_t taps;
  int32_t outputs;
};

// The inner loops of data/, one set per instruction set; all give the same bits. Inputs may be read and outputs written
// up to 64 bytes behind their end.
struct PixelKernels {
  // Each of `rows` rows of RGB pixels, along the row.
  void (*horizontal)(const uint8_t* in, size_t in_stride, int rows, const AxisView& axis, uint8_t* out,
                     size_t out_stride);
  // One output row of `bytes` bytes from `count` input rows.
  void (*vertical)(const uint8_t* in, size_t in_stride, int count, const int32_t* weights, size_t bytes, uint8_t* out);
  // out[i] = (in[i] - shift[i % 48]) * factor[i % 48]; writes exactly `values` floats.
  void (*to_float)(const uint8_t* in, size_t values, const float* shift, const float* factor, float* out);
};

const PixelKernels& pixel_kernels(cpu::Isa isa);

}  // namespace gle::data
