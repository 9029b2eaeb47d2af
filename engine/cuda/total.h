#pragma once

// The sum of a term over all elements of a tensor, in one order whatever the device: a thread's share, then the threads
// of a block, then the blocks. Up to four terms are added in floats, all beyond in doubles.

#include "engine/cuda/map.h"

namespace gle::cuda {

inline constexpr int kTotalThreads = kMapThreads;
inline constexpr int64_t kTotalBlocks = 512;
inline constexpr size_t kTotalBytes = (kTotalBlocks + 1) * sizeof(double);

// The upper half added to the lower until one thread is left: thread 0 gets the result.
__device__ inline double block_total(double mine, double* shared) {
  const auto thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
  for (auto count = static_cast<int>(blockDim.x * blockDim.y); count > 1; count = (count + 1) / 2) {
    shared[thread] = mine;
    __syncthreads();
    if (thread < count / 2) {
      mine += shared[thread + (count + 1) / 2];
    }
    __syncthreads();
  }
  return mine;
}

template <int kWidth, class Term>
__device__ double column_total(const Term& term, int64_t rows, int64_t column) {
  double sum = 0.0;
  for (int64_t row = int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < rows;
       row += int64_t{gridDim.y} * blockDim.y) {
    sum += static_cast<double>(term.template operator()<kWidth>(row, column));
  }
  return sum;
}

template <int kWidth, class Term>
__global__ void __launch_bounds__(kTotalThreads, 3)
    total_kernel(Term term, int64_t rows, int64_t channels, double* totals) {
  GLE_SHARED(double, shared, kTotalThreads);
  const int64_t step = int64_t{gridDim.x} * blockDim.x * kWidth;
  double sum = 0.0;
  for (int64_t c = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kWidth; c < channels; c += step) {
    if (kWidth == 1 || c + kWidth <= channels) {
      sum += column_total<kWidth>(term, rows, c);
    } else {
      for (int64_t rest = c; rest < channels; ++rest) {
        sum += column_total<1>(term, rows, rest);
      }
    }
  }
  const double result = block_total(sum, shared);
  if (threadIdx.x + threadIdx.y == 0) {
    totals[blockIdx.y * gridDim.x + blockIdx.x] = result;
  }
}

struct Values {
  const float* at;
  __device__ double operator()(int64_t i) const { return static_cast<double>(at[i]); }
};

struct Totals {
  const double* at;
  __device__ double operator()(int64_t i) const { return at[i]; }
};

// *to = factor * the sum of term(0) ... term(count - 1), by one block.
template <class Term, class T>
__global__ void __launch_bounds__(kTotalThreads) sum_kernel(Term term, int64_t count, double factor, T* to) {
  GLE_SHARED(double, shared, kTotalThreads);
  double mine = 0.0;
  for (int64_t i = threadIdx.x; i < count; i += kTotalThreads) {
    mine += term(i);
  }
  const double result = block_total(mine, shared);
  if (threadIdx.x == 0) {
    *to = static_cast<T>(factor * result);
  }
}

template <class Term, class T>
void sum(const Launch& where, const Term& term, int64_t count, double factor, T* to) {
  launch(where, sum_kernel<Term, T>, dim3(1), dim3(kTotalThreads), 0, term, count, factor, to);
}

// Where the sum over all elements of x will be, in scratch[kTotalBytes]. Two launches.
template <class Term>
double* total(const Launch& where, const Tensor& x, const Term& term, double* scratch) {
  const bool fours = x.dense() ? begin_in_fours({&x}) : in_fours({&x});
  const int64_t rows = x.dense() ? 1 : x.rows(), channels = x.dense() ? x.elements() : x.channels();
  const MapGrid grid(rows, fours ? pieces_of(channels, 4) : channels, kTotalBlocks);
  launch(where, fours ? total_kernel<4, Term> : total_kernel<1, Term>, grid.grid, grid.block, 0, term, rows, channels,
         scratch + 1);
  sum(where, Totals{scratch + 1}, int64_t{grid.grid.x} * grid.grid.y, 1.0, scratch);
  return scratch;
}

}  // namespace gle::cuda
