#include "data/resample.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"

namespace gle::cpu {
namespace baseline {
extern const data::PixelKernels pixel_kernels;
}
namespace avx2 {
extern const data::PixelKernels pixel_kernels;
}
namespace avx512 {
extern const data::PixelKernels pixel_kernels;
}
}  // namespace gle::cpu

namespace gle::data {

namespace {

double bilinear(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

// Keys' cubic with a = -1/2.
double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) {
    return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  }
  return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

struct Span {
  int begin;
  int end;
};

// The inputs under output i's kernel.
Span inputs_of(int in, int out, int i, double radius) {
  const double scale = static_cast<double>(in) / out;
  const double support = radius * std::max(scale, 1.0);
  const double centre = (i + 0.5) * scale;
  return {std::max(0, static_cast<int>(centre - support + 0.5)),
          std::min(in, static_cast<int>(centre + support + 0.5))};
}

double radius_of(Filter filter) { return filter == Filter::bilinear ? 1.0 : 2.0; }

int32_t fixed_point(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

}  // namespace

const PixelKernels& pixel_kernels(cpu::Isa isa) {
  switch (isa) {
    case cpu::Isa::avx512:
      return cpu::avx512::pixel_kernels;
    case cpu::Isa::avx2:
      return cpu::avx2::pixel_kernels;
    case cpu::Isa::baseline:
      return cpu::baseline::pixel_kernels;
  }
  bug("unknown instruction set");
}

void AxisWeights::compute(int in, int out, int begin, int end, Filter filter) {
  const double scale = static_cast<double>(in) / out;
  const double stretch = std::max(scale, 1.0);
  taps_ = static_cast<int32_t>(std::ceil(radius_of(filter) * stretch)) * 2 + 1;
  const auto outputs = static_cast<size_t>(end - begin);
  first_.resize(outputs);
  count_.resize(outputs);
  weights_.resize(outputs * static_cast<size_t>(taps_));
  exact_.resize(static_cast<size_t>(taps_));
  for (size_t i = 0; i < outputs; ++i) {
    const int output = begin + static_cast<int>(i);
    const Span inputs = inputs_of(in, out, output, radius_of(filter));
    const double centre = (output + 0.5) * scale;
    const double shrink = 1.0 / stretch;
    const int count = inputs.end - inputs.begin;
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      const double x = (k + inputs.begin - centre + 0.5) * shrink;
      const double weight = filter == Filter::bilinear ? bilinear(x) : bicubic(x);
      exact_[static_cast<size_t>(k)] = weight;
      sum += weight;
    }
    int32_t* weights = weights_.data() + i * static_cast<size_t>(taps_);
    for (int k = 0; k < count; ++k) {
      double weight = exact_[static_cast<size_t>(k)];
      if (sum != 0.0) {
        weight /= sum;
      }
      weights[k] = fixed_point(weight);
    }
    first_[i] = inputs.begin;
    count_[i] = count;
  }
}

AxisView AxisWeights::view() const {
  return {first_.data(), count_.data(), weights_.data(), taps_, static_cast<int32_t>(first_.size())};
}

Region Resampler::needed(const Region& box, const Size& size, const Region& window, Filter filter) {
  const double radius = radius_of(filter);
  const auto along = [&](int in, int out, int begin, int extent) -> Span {
    return {inputs_of(in, out, begin, radius).begin, inputs_of(in, out, begin + extent - 1, radius).end};
  };
  const Span x = along(box.width, size.width, window.x, window.width);
  const Span y = along(box.height, size.height, window.y, window.height);
  return {box.x + x.begin, box.y + y.begin, x.end - x.begin, y.end - y.begin};
}

void AxisWeights::begin_at_zero() {
  const int32_t begin = first_.front();
  for (int32_t& first : first_) {
    first -= begin;
  }
}

void Resampler::begin(const Image& image, const Region& box, const Size& size, const Region& window, Filter filter) {
  width_ = window.width;
  const Region input = needed(box, size, window, filter);
  const bool resize_rows = size.height != box.height;
  const bool resize_columns = size.width != box.width;
  // Pillow's rule; the order shows in the rounding between the passes.
  const bool rows_first = box.height - size.height > std::max(0, 2 * (box.width - size.width));
  // An axis that keeps its size has unit weights: what is outside of the window is not read.
  input_ = image.at(resize_columns ? input.x : box.x + window.x, resize_rows ? input.y : box.y + window.y);
  input_stride_ = image.row_bytes();
  int rows = resize_rows ? input.height : window.height;
  if (resize_rows) {
    rows_.compute(box.height, size.height, window.y, window.y + window.height, filter);
    rows_.begin_at_zero();
  }
  rows_pending_ = resize_rows;
  line_.resize(static_cast<size_t>(std::max(window.width, input.width)) * 3 + Image::kSlack);
  if (!resize_columns) {
    return;
  }
  columns_.compute(box.width, size.width, window.x, window.x + window.width, filter);
  columns_.begin_at_zero();
  if (resize_rows && rows_first) {
    const size_t stride = static_cast<size_t>(input.width) * 3;
    uint8_t* shortened = shortened_.resize(stride * static_cast<size_t>(window.height) + Image::kSlack);
    for (int y = 0; y < window.height; ++y) {
      resize_row(y, stride, shortened + static_cast<size_t>(y) * stride);
    }
    input_ = shortened;
    input_stride_ = stride;
    rows = window.height;
    rows_pending_ = false;
  }
  // A row's last pixel writes four bytes.
  const size_t stride = static_cast<size_t>(window.width) * 3 + 1;
  uint8_t* narrowed = narrowed_.resize(stride * static_cast<size_t>(rows) + Image::kSlack);
  kernels_.horizontal(input_, input_stride_, rows, columns_.view(), narrowed, stride);
  input_ = narrowed;
  input_stride_ = stride;
}

void Resampler::resize_row(int y, size_t bytes, uint8_t* out) const {
  const AxisView axis = rows_.view();
  const auto i = static_cast<size_t>(y);
  kernels_.vertical(input_ + static_cast<size_t>(axis.first[i]) * input_stride_, input_stride_, axis.count[i],
                    axis.weights + i * static_cast<size_t>(axis.taps), bytes, out);
}

const uint8_t* Resampler::row(int y) {
  if (!rows_pending_) {
    return input_ + static_cast<size_t>(y) * input_stride_;
  }
  resize_row(y, static_cast<size_t>(width_) * 3, line_.data());
  return line_.data();
}

}  // namespace gle::data
