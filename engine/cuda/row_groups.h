#pragma once

// Kernels that work on rows: a group of threads, a warp or a block, takes a row at a time. Sums and maxima over a group
// have one order.

#include "engine/cuda/lanes.h"

namespace gle::cuda {

inline constexpr int kRowThreads = 256;
inline constexpr int kWarp = 32;
inline constexpr int64_t kRowBlocks = 8192;

struct Plus {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

template <int kThreads>
struct RowGroup {
  static_assert(kThreads == kWarp || kThreads == kRowThreads);
  static constexpr int threads = kThreads;
  int lane;
  double* shared;  // one for each warp of the block

  // Every lane gets the result.
  template <class T, class Join>
  __device__ T reduce(T mine, const Join& join) const {
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      mine = join(mine, __shfl_xor_sync(0xffffffffU, mine, distance, kWarp));
    }
    if constexpr (kThreads == kWarp) {
      return mine;
    } else {
      T* parts = reinterpret_cast<T*>(shared);
      if (lane % kWarp == 0) {
        parts[lane / kWarp] = mine;
      }
      __syncthreads();
      T result = parts[0];
      for (int warp = 1; warp < kThreads / kWarp; ++warp) {
        result = join(result, parts[warp]);
      }
      __syncthreads();
      return result;
    }
  }
  template <class T>
  __device__ T sum(T mine) const {
    return reduce(mine, Plus{});
  }
  // NaN counts as nothing.
  template <class T>
  __device__ T max(T mine) const {
    return reduce(mine, Larger{});
  }
  // What the group wrote is there for all of it.
  __device__ void sync() const {
    if constexpr (kThreads == kWarp) {
      __syncwarp(0xffffffffU);
    } else {
      __syncthreads();
    }
  }

  // body(c, Width) for this lane's share of the columns.
  template <int kWidth, class Body>
  __device__ void columns(int64_t channels, const Body& body) const {
    for (int64_t c = int64_t{lane} * kWidth; c < channels; c += kThreads * kWidth) {
      if (kWidth == 1 || c + kWidth <= channels) {
        body(c, Width<kWidth>{});
      } else {
        for (int64_t rest = c; rest < channels; ++rest) {
          body(rest, Width<1>{});
        }
      }
    }
  }

  // The sum of term(c, Width) over the columns, and the largest.
  template <int kWidth, class Term>
  __device__ float sum_columns(int64_t channels, const Term& term) const {
    float mine = 0.0F;
    columns<kWidth>(channels, [&](int64_t c, auto width) {
      const auto v = term(c, width);
      for (int i = 0; i < decltype(width)::count; ++i) {
        mine += v.at[i];
      }
    });
    return sum(mine);
  }
};

// op.row<kWidth>(group, row) for every row.
template <int kThreads, int kWidth, class Op>
__global__ void __launch_bounds__(kRowThreads, 3) rows_kernel(Op op, int64_t rows) {
  GLE_SHARED(double, shared, kRowThreads / kWarp);
  constexpr int kGroups = kRowThreads / kThreads;
  const auto thread = static_cast<int>(threadIdx.x);
  const RowGroup<kThreads> group{thread % kThreads, shared};
  for (int64_t row = int64_t{blockIdx.x} * kGroups + thread / kThreads; row < rows;
       row += int64_t{gridDim.x} * kGroups) {
    op.template row<kWidth>(group, row);
  }
}

// A block for each row where rows are long, or so few that warps would leave the device idle.
inline bool by_blocks(int64_t rows, int64_t channels) { return channels > 2048 || (channels >= 256 && rows < 2048); }

template <class Op>
void launch_rows(const Launch& where, bool blocks, void (*kernel)(Op, int64_t), const Op& op, int64_t rows) {
  const int64_t wanted = blocks ? rows : pieces_of(rows, kRowThreads / kWarp);
  launch(where, kernel, dim3(dim(wanted < kRowBlocks ? wanted : kRowBlocks)), dim3(kRowThreads), 0, op, rows);
}

// `fours`: in_fours() holds for all that the op touches.
template <class Op>
void for_rows(const Launch& where, bool fours, const Op& op, int64_t rows, int64_t channels) {
  const bool blocks = by_blocks(rows, channels);
  launch_rows(where, blocks,
              blocks ? (fours ? rows_kernel<kRowThreads, 4, Op> : rows_kernel<kRowThreads, 1, Op>)
                     : (fours ? rows_kernel<kWarp, 4, Op> : rows_kernel<kWarp, 1, Op>),
              op, rows);
}

// For ops that gather.
template <class Op>
void for_rows_by_one(const Launch& where, const Op& op, int64_t rows, int64_t channels) {
  const bool blocks = by_blocks(rows, channels);
  launch_rows(where, blocks, blocks ? rows_kernel<kRowThreads, 1, Op> : rows_kernel<kWarp, 1, Op>, op, rows);
}

}  // namespace gle::cuda
