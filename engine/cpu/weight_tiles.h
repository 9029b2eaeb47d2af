#pragma once

// The inner kernel of the gradients of weights: a tile of dw, `rows` of k by `vectors` * kLanes of c, kept in registers
// while pixels pass,
//   dw[i][j] (+)= sum over pixels of dy[pixel][i] * x[pixel][j].

#include <cstdint>

#include "engine/cpu/tile_kernels.h"

namespace gle::cpu::GLE_ISA {

struct WeightTile {
  const float* x;                            // the window, at the tile's (r, s) and c
  int64_t pixel_step, row_step, image_step;  // in the window, from output to output
  const float* dy;                           // [images * rows * columns][k of the block]
  int64_t images, rows, columns;
  float* dw;         // at the tile's (k, r, s, c)
  int64_t dw_step;   // from k to k
  int64_t channels;  // of the tile's vectors that exist
  bool add;
};

// Vectors of a tile, and its rows: see max_pixels() for the choice. Blocks with fewer vectors keep the rows, since dy
// is packed for them.
struct TileSize {
  int vectors, rows;
};
inline constexpr int kMostRows = 8;
GLE_INLINE TileSize tile_size(int64_t vectors) {
  if (kLanes < 16) return {2, max_pixels(2)};
  return vectors % 3 == 0 && vectors % 4 != 0 ? TileSize{3, max_pixels(3)} : TileSize{4, max_pixels(4)};
}

void run_weight_tile(const WeightTile& tile, int64_t rows, int64_t vectors);

}  // namespace gle::cpu::GLE_ISA
