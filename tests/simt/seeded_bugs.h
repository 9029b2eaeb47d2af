#pragma once

#include <cuda_runtime_api.h>

namespace simt::test {

enum class Bug {
  none,
  missing_barrier,
  missing_barrier_with_right_numbers,
  divergent_barrier,
  return_before_barrier,
  out_of_bounds,
  shared_array_too_small,
  dynamic_shared_too_small,
  uninitialised_shared,
  uninitialised_device,
  half_warp_mask,
  shuffle_from_lane_that_left,
  missing_syncwarp,
  plain_histogram,
  in_place_between_blocks,
  host_pointer,
  freed_pointer,
  other_device,
  wrong_column_guard,
  misaligned_vector,
  shuffle_under_a_branch,
};

inline constexpr int kThreads = 64;

// Correct without the bug: y[row] = sum of x[row, 0..columns).
void row_sums(Bug bug, const float* x, int rows, int columns, float* y);
// y[row, c] = sum over the block's rows in shared memory of x, kThreads columns.
void column_sums_by_tile(Bug bug, const float* x, int rows, float* y);
// y = transposed x, both n by n in device memory; in place where the bug says so.
void rotate_rows(Bug bug, const float* x, int n, float* y);
void histogram(Bug bug, const int* labels, int n, int* counts);
// y[i] = 2 x[i] by float4; n is a multiple of 4.
void double_vectors(Bug bug, const float* x, int n, float* y);
// y[i] = x[i] + 1 on a grid of columns.
void add_one(Bug bug, const float* x, int rows, int columns, float* y);
// y[i] = value of the lane beside, through shared memory and __syncwarp.
void neighbours(Bug bug, const float* x, int n, float* y);

}  // namespace simt::test
