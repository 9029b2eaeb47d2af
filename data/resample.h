#pragma once

#include <cstdint>
#include <vector>

#include "data/image.h"
#include "data/resample_kernels.h"

namespace gle::data {

// Pillow's antialiased filters: when shrinking, the kernel is as wide as the pixels it stands for.
enum class Filter { bilinear, bicubic };

struct Size {
  int width = 0;
  int height = 0;

  bool operator==(const Size&) const = default;
};

// The weights of outputs [begin, end) of an axis of `in` pixels resized to `out`.
class AxisWeights {
 public:
  void compute(int in, int out, int begin, int end, Filter filter);
  AxisView view() const;
  // Makes the first input that is used number 0.
  void begin_at_zero();

 private:
  int32_t taps_ = 0;
  std::vector<int32_t> first_;
  std::vector<int32_t> count_;
  std::vector<int32_t> weights_;
  std::vector<double> exact_;
};

// Resizes as Pillow does, byte for byte: `box` of an image to `size`, of which only the rows and columns of `window`
// are computed. One object per thread; it keeps its buffers.
class Resampler {
 public:
  explicit Resampler(const PixelKernels& kernels) : kernels_(kernels) {}

  // The part of `box` that begin() will read.
  static Region needed(const Region& box, const Size& size, const Region& window, Filter filter);

  // The first of the two passes; the image must have stored needed() and outlive the calls of row().
  void begin(const Image& image, const Region& box, const Size& size, const Region& window, Filter filter);
  // Row `y` of the window: window.width RGB pixels and slack behind them, until the next call.
  const uint8_t* row(int y);

 private:
  void resize_row(int y, size_t bytes, uint8_t* out) const;

  const PixelKernels& kernels_;
  AxisWeights columns_;
  AxisWeights rows_;
  int width_ = 0;              // of the window
  bool rows_pending_ = false;  // row() still has to resize rows, not only to hand them out
  const uint8_t* input_ = nullptr;
  size_t input_stride_ = 0;
  PixelBuffer shortened_;
  PixelBuffer narrowed_;
  PixelBuffer line_;
};

}  // namespace gle::data
