// Small kernels that are right, and the same with one bug each, to try the checker on.

#include "simt/seeded_bugs.h"

#include "engine/cuda/kernel.h"

namespace simt::test {

namespace {

constexpr unsigned kAllLanes = 0xffffffffU;
constexpr gle::cuda::Launch kHere{"seeded", nullptr};

template <Bug bug>
__device__ float warp_sum(float value) {
  constexpr unsigned mask = bug == Bug::half_warp_mask ? 0x0000ffffU : kAllLanes;
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(mask, value, distance);
  }
  return value;
}

template <Bug bug>
__global__ void __launch_bounds__(kThreads) sum_row(const float* x, int columns, float* y) {
  GLE_SHARED(float, partial, (bug == Bug::shared_array_too_small ? 1 : 2));
  const int thread = static_cast<int>(threadIdx.x);
  const float* row = x + static_cast<ptrdiff_t>(blockIdx.x) * columns;
  if (bug == Bug::return_before_barrier && thread >= columns) {
    return;
  }
  float sum = 0.0F;
  for (int c = thread; bug == Bug::out_of_bounds ? c <= columns : c < columns; c += kThreads) {
    sum += row[c];
  }
  if (bug == Bug::shuffle_from_lane_that_left && thread % 32 == 7) {
    return;
  }
  if (bug == Bug::shuffle_under_a_branch) {
    if (thread % 32 < 16) {
      sum = warp_sum<bug>(sum);
    }
  } else {
    sum = warp_sum<bug>(sum);
  }
  if (bug != Bug::uninitialised_shared ? thread % 32 == 0 : thread == 0) {
    partial[thread / 32] = sum;
  }
  if (bug == Bug::divergent_barrier) {
    if (thread < 32) {
      __syncthreads();
    } else {
      partial[1] += 0.0F;
      __syncthreads();
    }
  } else if (bug != Bug::missing_barrier) {
    __syncthreads();
  }
  if (thread == 0) {
    y[blockIdx.x] = partial[0] + partial[1];
  }
}

template <Bug bug>
__global__ void sum_tile(const float* x, int rows, float* y) {
  GLE_DYNAMIC_SHARED(float, tile);
  const int column = static_cast<int>(threadIdx.x);
  for (int r = 0; r < rows; ++r) {
    tile[r * kThreads + column] = x[r * kThreads + column];
  }
  if (bug != Bug::missing_barrier_with_right_numbers) {
    __syncthreads();
  }
  float sum = 0.0F;
  for (int r = 0; r < rows; ++r) {
    // Another thread's column of the row, which in sequence has been filled already for all but thread 0.
    sum += tile[r * kThreads + (column == 0 ? 0 : column - 1)] * 0.0F + tile[r * kThreads + column];
  }
  y[column] = sum;
}

__global__ void rotate(const float* x, int n, float* y) {
  const int row = static_cast<int>(blockIdx.x);
  const int from = (row + 1) % n;
  for (int c = static_cast<int>(threadIdx.x); c < n; c += kThreads) {
    y[row * n + c] = x[from * n + c];
  }
}

template <Bug bug>
__global__ void count(const int* labels, int n, int* counts) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    if (bug == Bug::plain_histogram) {
      counts[labels[i]] += 1;
    } else {
      atomicAdd(&counts[labels[i]], 1);
    }
  }
}

__global__ void double_by_four(const float4* x, int n, float4* y) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) {
    const float4 v = x[i];
    y[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
  }
}

template <Bug bug>
__global__ void add_one_to(const float* x, int columns, float* y) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y);
  if (bug == Bug::wrong_column_guard ? column <= columns : column < columns) {
    const int i = row * columns + column;
    y[i] = x[i] + 1.0F;
  }
}

template <Bug bug>
__global__ void take_neighbour(const float* x, int n, float* y) {
  GLE_SHARED(float, values, 32);
  const int lane = static_cast<int>(threadIdx.x);
  const int i = static_cast<int>(blockIdx.x) * 32 + lane;
  values[lane] = i < n ? x[i] : 0.0F;
  if (bug != Bug::missing_syncwarp) {
    __syncwarp();
  }
  if (i < n) {
    y[i] = values[lane ^ 1];
  }
}

// Calls f with the bug as a constant, for the bugs that a kernel knows.
template <Bug... known, class F>
void with(Bug bug, const F& f) {
  const bool found = ((bug == known ? (f(std::integral_constant<Bug, known>()), true) : false) || ...);
  if (!found) {
    f(std::integral_constant<Bug, Bug::none>());
  }
}

}  // namespace

void row_sums(Bug bug, const float* x, int rows, int columns, float* y) {
  with<Bug::missing_barrier, Bug::divergent_barrier, Bug::return_before_barrier, Bug::out_of_bounds,
       Bug::shared_array_too_small, Bug::uninitialised_shared, Bug::half_warp_mask, Bug::shuffle_from_lane_that_left,
       Bug::shuffle_under_a_branch>(bug, [&](auto constant) {
    gle::cuda::launch(kHere, sum_row<constant()>, dim3(static_cast<unsigned>(rows)), dim3(kThreads), 0, x, columns, y);
  });
}

void column_sums_by_tile(Bug bug, const float* x, int rows, float* y) {
  const size_t bytes = static_cast<size_t>(rows) * kThreads * sizeof(float);
  const size_t given = bug == Bug::dynamic_shared_too_small ? bytes - sizeof(float) : bytes;
  with<Bug::missing_barrier_with_right_numbers>(bug, [&](auto constant) {
    gle::cuda::launch(kHere, sum_tile<constant()>, dim3(1), dim3(kThreads), given, x, rows, y);
  });
}

void rotate_rows(Bug, const float* x, int n, float* y) {
  gle::cuda::launch(kHere, rotate, dim3(static_cast<unsigned>(n)), dim3(kThreads), 0, x, n, y);
}

void histogram(Bug bug, const int* labels, int n, int* counts) {
  const dim3 grid(static_cast<unsigned>((n + kThreads - 1) / kThreads));
  with<Bug::plain_histogram>(bug, [&](auto constant) {
    gle::cuda::launch(kHere, count<constant()>, grid, dim3(kThreads), 0, labels, n, counts);
  });
}

void double_vectors(Bug, const float* x, int n, float* y) {
  const dim3 grid(static_cast<unsigned>((n / 4 + kThreads - 1) / kThreads));
  gle::cuda::launch(kHere, double_by_four, grid, dim3(kThreads), 0, reinterpret_cast<const float4*>(x), n / 4,
                    reinterpret_cast<float4*>(y));
}

void add_one(Bug bug, const float* x, int rows, int columns, float* y) {
  const dim3 grid(static_cast<unsigned>(columns / kThreads + 1), static_cast<unsigned>(rows));
  with<Bug::wrong_column_guard>(bug, [&](auto constant) {
    gle::cuda::launch(kHere, add_one_to<constant()>, grid, dim3(kThreads), 0, x, columns, y);
  });
}

void neighbours(Bug bug, const float* x, int n, float* y) {
  const dim3 grid(static_cast<unsigned>((n + 31) / 32));
  with<Bug::missing_syncwarp>(
      bug, [&](auto constant) { gle::cuda::launch(kHere, take_neighbour<constant()>, grid, dim3(32), 0, x, n, y); });
}

}  // namespace simt::test
