#pragma once

// One pass that writes a tensor y[rows, C]: f.at<kWidth>(column) prepares a few columns, what it returns gives their
// values in each row. A thread keeps its columns and walks down the rows, so what belongs to a column is loaded once.

#include "engine/cuda/lanes.h"

namespace gle::cuda {

inline constexpr int kMapThreads = 256;
inline constexpr int64_t kMapBlocks = 8192;  // beyond that a block takes several shares

template <int kWidth, class F>
__device__ void map_columns(const F& f, int64_t rows, int64_t column, const Out& y) {
  const auto value = f.template at<kWidth>(column);
  for (int64_t row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < rows;
       row += int64_t{gridDim.y} * blockDim.y) {
    y.template put<kWidth>(row, column, value(row));
  }
}

template <int kWidth, class F>
__global__ void __launch_bounds__(kMapThreads, 2) map_kernel(F f, int64_t rows, int64_t channels, Out y) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x * kWidth;
  for (int64_t c = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth; c < channels; c += step) {
    if (kWidth == 1 || c + kWidth <= channels) {
      map_columns<kWidth>(f, rows, c, y);
    } else {
      for (int64_t rest = c; rest < channels; ++rest) {
        map_columns<1>(f, rows, rest, y);
      }
    }
  }
}

// How threads are laid over rows of so many vectors: side by side first, then down the rows.
struct MapGrid {
  dim3 grid, block;

  MapGrid(int64_t rows, int64_t vectors, int64_t most_blocks = kMapBlocks) {
    const int64_t across = pieces_of(vectors, kMapThreads);
    const int64_t x = pieces_of(vectors, across);
    const int64_t y = kMapThreads / x < rows ? kMapThreads / x : rows;
    const int64_t blocks_x = across < most_blocks ? across : most_blocks;
    const int64_t most = most_blocks / blocks_x;
    const int64_t down = pieces_of(rows, y);
    block = dim3(dim(x), dim(y));
    grid = dim3(dim(blocks_x), dim(down < most ? down : most));
  }
};

// `fours`: in_fours() holds for all that f reads and for y.
template <class F>
void map(const Launch& where, bool fours, const F& f, int64_t rows, int64_t channels, const Out& y) {
  const MapGrid grid(rows, fours ? pieces_of(channels, 4) : channels);
  launch(where, fours ? map_kernel<4, F> : map_kernel<1, F>, grid.grid, grid.block, 0, f, rows, channels, y);
}

// The same where only an element's number counts, for these tensors, y among them, all of one shape: if none has a
// pitch they are one long row.
template <class F>
void map_elements(const Launch& where, Tensors tensors, const F& f, const Out& y) {
  const Tensor& one = **tensors.begin();
  bool dense = true;
  for (const Tensor* t : tensors) {
    dense = dense && t->dense();
  }
  if (dense) {
    map(where, begin_in_fours(tensors), f, 1, one.elements(), y);
  } else {
    map(where, in_fours(tensors), f, one.rows(), one.channels(), y);
  }
}

}  // namespace gle::cuda
