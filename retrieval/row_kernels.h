#pragma once

#include <cstdint>

#include "engine/cpu/runtime.h"

namespace gle {

// The inner loops over a row of distances, one set per instruction set; all give the same bits. No NaN.
struct RowKernels {
  // row[i] = max(0, norm + norms[i] - 2 * row[i]): products become squared distances.
  void (*to_distances)(float norm, const float* norms, int64_t count, float* row);
  // How many are below the bound, and how many are not above it.
  int64_t (*count_below)(const float* row, int64_t count, float bound);
  int64_t (*count_up_to)(const float* row, int64_t count, float bound);
  // Writes the positions of those below the bound, ascending, and returns how many. `found` has room for count.
  int64_t (*find_below)(const float* row, int64_t count, float bound, int32_t* found);
  // Position of the smallest, the first among equals. count is at least 1.
  int64_t (*smallest)(const float* row, int64_t count);
  float (*largest)(const float* row, int64_t count);
  // sum[i] += values[i]
  void (*accumulate)(const float* values, int64_t count, double* sum);
};

const RowKernels& row_kernels(cpu::Isa isa);
// Those of the widest instruction set here.
const RowKernels& row_kernels();

}  // namespace gle
