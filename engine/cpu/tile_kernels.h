#pragma once

// The inner kernel shared by convolution and GEMM: a tile of outputs, `pixels` by `vectors` * kLanes channels, kept in
// registers over the whole reduction,
//   y[i][k] (+)= leaky_relu(bias[k] + sum over r < rows, j < run of x[i][r * row_step + j] * w[r][j][k], slope).
// Each output is summed in the order of (r, j) whatever the size of its tile, so tiles may be cut freely.

#include <cstdint>

#include "engine/cpu/simd.h"

namespace gle::cpu::GLE_ISA {

struct Tile {
  const float* const* x;  // [pixels]: where each pixel's reduction begins
  const float* w;         // [rows][run][vectors * kLanes], padded with zeros
  int64_t rows, run, row_step;
  float* const* y;      // [pixels]: each pixel's channel 0
  int64_t first;        // the tile's first channel
  int64_t channels;     // how many of its channels exist: in ((vectors - 1) * kLanes, vectors * kLanes]
  const float* bias;    // [all channels] or null
  float slope;          // 1: no activation
  bool add;             // y += instead of y =; then no activation
};

inline constexpr int kMaxVectors = 3;
inline constexpr int kMaxPixels = kLanes == 16 ? 12 : kLanes == 8 ? 6 : 4;

// The most pixels that a tile of that many vectors may have: what fits in the registers.
GLE_INLINE int max_pixels(int vectors) {
  if (vectors < 3) return kMaxPixels;
  return kLanes == 16 ? 9 : kLanes == 8 ? 4 : 3;
}

void run_tile(int pixels, int vectors, const Tile& tile);

// dst[j][i] = src[j * stride + i], i < channels <= width, the rest of each row of width floats 0.
void pack_rows(const float* src, int64_t stride, int64_t rows, int64_t channels, int64_t width, float* dst);
// dst[j][i] = src[i * stride + j], likewise.
void pack_columns(const float* src, int64_t stride, int64_t rows, int64_t channels, int64_t width, float* dst);

// Channels cut into blocks of two vectors, the last one of one or three when their number is odd: three vectors load
// less per multiplication than two and one.
struct ChannelBlocks {
  int64_t channels;

  GLE_INLINE int64_t vectors() const { return (channels + kLanes - 1) / kLanes; }
  GLE_INLINE int64_t count() const { return vectors() < 2 ? 1 : vectors() / 2; }
  GLE_INLINE int64_t first(int64_t block) const { return block * 2 * kLanes; }
  GLE_INLINE int vectors_in(int64_t block) const {
    return static_cast<int>(block + 1 < count() ? 2 : vectors() - 2 * block);
  }
  GLE_INLINE int64_t channels_in(int64_t block) const {
    return block + 1 < count() ? 2 * kLanes : channels - first(block);
  }
  GLE_INLINE int64_t padded() const { return vectors() * kLanes; }
};

// Any number of pixels by the channel blocks [first_block, last_block). tile.w holds all panels, block after block;
// tile.first and tile.channels are set here.
void run_tiles(Tile tile, int64_t pixels, ChannelBlocks blocks, int64_t first_block, int64_t last_block);

}  // namespace gle::cpu::GLE_ISA
