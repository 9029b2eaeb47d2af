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
  int64_t ahead;         // not 0: x[i] + ahead is read soon, fetch it into the second-level cache
  float* const* y;       // [pixels]: each pixel's channel 0
  float* const* y_next;  // [pixels - 1 at least]: of the next tile, fetched meanwhile
  int64_t first;         // the tile's first channel
  int64_t channels;      // how many of its channels exist: in ((vectors - 1) * kLanes, vectors * kLanes]
  const float* bias;     // [all channels] or null
  float slope;           // 1: no activation
  bool add;              // y += instead of y =; then no activation
};

// The most pixels that a tile of so many vectors may have. What fits in the registers, and with AVX-512 loads least: an
// Ice Lake core was measured to load 1.1 zmm (or broadcasts to zmm) a cycle, so 10 loads for 24 multiplications (6 x 4)
// reach 97% of its peak, 11 (8 x 3) 92%, 14 (12 x 2) 85%.
inline constexpr int kMaxVectors = 4;
GLE_INLINE constexpr int max_pixels(int vectors) {
  constexpr int kPixels[3][kMaxVectors] = {{4, 4, 3, 2}, {6, 6, 4, 3}, {12, 12, 8, 6}};
  return kPixels[kLanes / 8][vectors - 1];
}
inline constexpr int kMaxPixels = max_pixels(1);

// dst[j][i] = src[j * stride + i], i < channels <= width, the rest of each row of width floats 0.
void pack_rows(const float* src, int64_t stride, int64_t rows, int64_t channels, int64_t width, float* dst);
// dst[j][i] = src[i * stride + j], likewise.
void pack_columns(const float* src, int64_t stride, int64_t rows, int64_t channels, int64_t width, float* dst);

// Channels cut into blocks of kWide vectors, then as many of three as make up the number, or fewer if it is small.
struct ChannelBlocks {
  static constexpr int64_t kWide = kLanes == 16 ? 4 : 2;
  int64_t channels, vectors, wide, count;

  GLE_INLINE explicit ChannelBlocks(int64_t channels) : channels(channels), vectors((channels + kLanes - 1) / kLanes) {
    const int64_t threes = kWide == 4 ? (4 - vectors % 4) % 4 : vectors % 2;
    wide = vectors < 3 * threes ? 0 : (vectors - 3 * threes) / kWide;
    count = wide + (vectors - wide * kWide + 2) / 3;
  }
  GLE_INLINE int64_t padded() const { return vectors * kLanes; }
  GLE_INLINE int64_t first(int64_t block) const {
    return (block < wide ? block * kWide : wide * kWide + (block - wide) * 3) * kLanes;
  }
  GLE_INLINE int vectors_in(int64_t block) const {
    const int64_t left = vectors - first(block) / kLanes;
    return static_cast<int>(block < wide ? kWide : left < 3 ? left : 3);
  }
  GLE_INLINE int64_t channels_in(int64_t block) const {
    const int64_t left = channels - first(block), all = vectors_in(block) * kLanes;
    return left < all ? left : all;
  }
};

// Any number of pixels by the channel blocks [first_block, last_block). tile.w holds all panels, block after block;
// tile.ahead is
// the distance from one pixel to the next if that is the same for all, or 0; tile.first and tile.channels are set here.
void run_tiles(Tile tile, int64_t pixels, ChannelBlocks blocks, int64_t first_block, int64_t last_block);

// y[rows][width of blocks] (+)= a[rows][run] times panels.
GLE_INLINE void multiply(const float* a, int64_t lda, int64_t rows, int64_t run, const float* panels,
                         const ChannelBlocks& blocks, float* y, int64_t ldy, bool add) {
  constexpr int64_t kRows = 96;
  const float* from[kRows];
  float* to[kRows];
  for (int64_t row = 0; row < rows; row += kRows) {
    const int64_t count = rows - row < kRows ? rows - row : kRows;
    for (int64_t i = 0; i < count; ++i) {
      from[i] = a + (row + i) * lda;
      to[i] = y + (row + i) * ldy;
    }
    run_tiles({.x = from,
               .w = panels,
               .rows = 1,
               .run = run,
               .row_step = 0,
               .ahead = 0,
               .y = to,
               .y_next = nullptr,
               .first = 0,
               .channels = 0,
               .bias = nullptr,
               .slope = 1.0F,
               .add = add},
              count, blocks, 0, blocks.count);
  }
}

// One step of a reduction: a vector of weights per column, one number of x per row.
template <int Pixels, int Vectors>
GLE_INLINE void multiply_add(const float* const (&x)[Pixels], int64_t j, const float* w, vf (&acc)[Pixels][Vectors]) {
  vf b[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) b[v] = load(w + v * kLanes);
#pragma GCC unroll 16
  for (int i = 0; i < Pixels; ++i) {
    const vf a = set1(x[i][j]);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) acc[i][v] = fma(a, b[v], acc[i][v]);
  }
}

// As multiply() with one panel of kWide vectors, but what comes of it is not stored: use(row, sums) has it. The sums
// begin with start[rows][width of the panel] unless that is null.
template <int Rows = max_pixels(ChannelBlocks::kWide), class Use>
GLE_INLINE void use_products(const float* a, int64_t lda, int64_t rows, int64_t run, const float* panel,
                             const float* start, const Use& use, int64_t first = 0) {
  constexpr int kVectors = ChannelBlocks::kWide, kWidth = kVectors * kLanes;
  for (; first + Rows <= rows; first += Rows) {
    const float* x[Rows];
    vf acc[Rows][kVectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      x[i] = a + (first + i) * lda;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[i][v] = start ? load(start + (first + i) * kWidth + v * kLanes) : zero();
    }
#pragma GCC unroll 4
    for (int64_t j = 0; j < run; ++j) multiply_add<Rows, kVectors>(x, j, panel + j * kWidth, acc);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) use(first + i, acc[i]);
  }
  if constexpr (Rows > 1) {
    use_products<Rows - 1>(a, lda, rows, run, panel, start, use, first);
  }
}

}  // namespace gle::cpu::GLE_ISA
