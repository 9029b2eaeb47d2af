#pragma once

// What both directions of the refinement share. Columns need each other for the sums of rows only. So a batch of the
// usual size is refined by one block, all steps in one launch: a strip of columns at a time in shared memory, every row
// of it, products in registers. That beats sharing the columns out among blocks as long as a step takes a block no
// longer than the launches that would keep many blocks in step: on paper n^2 C = 2^21.

#include "engine/cuda/group_loss_kernels.h"

namespace gle::cuda::refining {

inline constexpr int kSamples = 128;  // at most, in one block
inline constexpr int kStrip = 32;     // columns
inline constexpr int kLd = kStrip + 4;
inline constexpr int kAcross = kStrip / 4;  // threads, of four columns and four rows each
inline constexpr int kThreads = kSamples / 4 * kAcross;

inline bool by_one_block(const RefineTask& t) { return t.n <= kSamples && t.n * t.n * t.classes <= int64_t{1} << 21; }

inline bool rows_in_fours(const RefineTask& t) {
  return t.n % 4 == 0 && reinterpret_cast<uintptr_t>(t.similarities) % 16 == 0;
}

// This thread's four rows and four columns of a strip.
struct Patch {
  int row, column;

  __device__ Patch()
      : row(static_cast<int>(threadIdx.x) / kAcross * 4), column(static_cast<int>(threadIdx.x) % kAcross * 4) {}
};

// Over the threads of a row.
__device__ inline float across(float mine) {
  for (int distance = kAcross / 2; distance > 0; distance /= 2) {
    mine += __shfl_xor_sync(0xffffffffU, mine, distance, kAcross);
  }
  return mine;
}

}  // namespace gle::cuda::refining
