// horizontal, vertical: out = clamp((2^21 + sum_k weight_k * in_k) >> 22, 0, 255), 32-bit integers, as Pillow rounds.
// Sixteen sums at a time: horizontally the (three, and one idle) channels of a pixel in four rows, vertically sixteen
// bytes of a row.
#include "data/resample_kernels.h"

#include <cstring>

#include "engine/cpu/isa.h"

namespace gle::cpu::GLE_ISA {

namespace {

using data::AxisView;
using data::kWeightBits;

using Ints [[gnu::vector_size(64)]] = int32_t;
using Floats [[gnu::vector_size(64)]] = float;
using Bytes [[gnu::vector_size(16)]] = uint8_t;

constexpr int kLanes = 16;
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

// By reference: how a vector wider than the registers is passed by value depends on the instruction set.
GLE_INLINE void round_to_bytes(const Ints& sum, Bytes& bytes) {
  Ints level = sum >> kWeightBits;
  level = level < 0 ? Ints{} : level;
  level = level > 255 ? Ints{} + 255 : level;
  bytes = __builtin_convertvector(level, Bytes);
}

template <int kRows>
GLE_INLINE void horizontal_rows(const uint8_t* in, size_t in_stride, const AxisView& axis, uint8_t* out,
                                size_t out_stride) {
  for (int32_t i = 0; i < axis.outputs; ++i) {
    const int32_t* weights = axis.weights + static_cast<size_t>(i) * static_cast<size_t>(axis.taps);
    const uint8_t* pixel = in + static_cast<size_t>(axis.first[i]) * 3;
    Ints sum = Ints{} + kHalf;
    for (int32_t k = 0; k < axis.count[i]; ++k, pixel += 3) {
      uint32_t words[4] = {};
      for (int r = 0; r < kRows; ++r) {
        std::memcpy(&words[r], pixel + static_cast<size_t>(r) * in_stride, 4);
      }
      Bytes bytes;
      std::memcpy(&bytes, words, sizeof bytes);
      sum += __builtin_convertvector(bytes, Ints) * weights[k];
    }
    Bytes bytes;
    round_to_bytes(sum, bytes);
    uint32_t words[4];
    std::memcpy(words, &bytes, sizeof bytes);
    for (int r = 0; r < kRows; ++r) {
      // The fourth byte is the next pixel's first, which is written after it.
      std::memcpy(out + static_cast<size_t>(r) * out_stride + static_cast<size_t>(i) * 3, &words[r], 4);
    }
  }
}

void horizontal(const uint8_t* in, size_t in_stride, int rows, const AxisView& axis, uint8_t* out, size_t out_stride) {
  int y = 0;
  // The last pixel of a row spills a byte into the next row, so rows are done from the top and the stride leaves room.
  for (; y + 4 <= rows; y += 4) {
    horizontal_rows<4>(in, in_stride, axis, out, out_stride);
    in += 4 * in_stride;
    out += 4 * out_stride;
  }
  for (; y < rows; ++y) {
    horizontal_rows<1>(in, in_stride, axis, out, out_stride);
    in += in_stride;
    out += out_stride;
  }
}

void vertical(const uint8_t* in, size_t in_stride, int count, const int32_t* weights, size_t bytes, uint8_t* out) {
  constexpr size_t kStep = 2 * kLanes;
  for (size_t x = 0; x < bytes; x += kStep) {
    Ints low = Ints{} + kHalf;
    Ints high = low;
    const uint8_t* column = in + x;
    for (int k = 0; k < count; ++k, column += in_stride) {
      Bytes a;
      Bytes b;
      std::memcpy(&a, column, sizeof a);
      std::memcpy(&b, column + kLanes, sizeof b);
      low += __builtin_convertvector(a, Ints) * weights[k];
      high += __builtin_convertvector(b, Ints) * weights[k];
    }
    Bytes a;
    Bytes b;
    round_to_bytes(low, a);
    round_to_bytes(high, b);
    std::memcpy(out + x, &a, sizeof a);
    std::memcpy(out + x + kLanes, &b, sizeof b);
  }
}

void to_float(const uint8_t* in, size_t values, const float* shift, const float* factor, float* out) {
  constexpr size_t kPeriod = 3 * kLanes;
  size_t i = 0;
  for (; i + kPeriod <= values; i += kPeriod) {
    for (size_t j = 0; j < kPeriod; j += kLanes) {
      Bytes bytes;
      Floats s;
      Floats f;
      std::memcpy(&bytes, in + i + j, sizeof bytes);
      std::memcpy(&s, shift + j, sizeof s);
      std::memcpy(&f, factor + j, sizeof f);
      // A difference times a factor: no compiler can fuse this, so every instruction set gives the same bits.
      const Floats y = (__builtin_convertvector(__builtin_convertvector(bytes, Ints), Floats) - s) * f;
      std::memcpy(out + i + j, &y, sizeof y);
    }
  }
  for (size_t j = 0; i < values; ++i, ++j) {
    out[i] = (static_cast<float>(in[i]) - shift[j]) * factor[j];
  }
}

}  // namespace

extern const data::PixelKernels pixel_kernels;
const data::PixelKernels pixel_kernels = {horizontal, vertical, to_float};

}  // namespace gle::cpu::GLE_ISA
