#pragma once

// Losses of pairs on a GPU: those of exponentials in pair_loss.cu, those of distances in pair_loss_distances.cu. Groups
// of threads take rows (row_groups.h).

#include "engine/cuda/lanes.h"

namespace gle::cuda {

struct PairTask {
  In s;
  const int32_t *row_labels, *column_labels;
  int64_t rows, columns;
  bool of_batch;
  PairLossOptions options;

  __device__ double at(int64_t i, int64_t j) const { return static_cast<double>(s.at(i, j)); }
  __device__ bool positive(int64_t i, int64_t j) const {
    return row_labels[i] == column_labels[j] && !(of_batch && i == j);
  }
  __device__ bool negative(int64_t i, int64_t j) const { return row_labels[i] != column_labels[j]; }
};

size_t distance_loss_scratch(const PairTask& task);
// `scratch` is of so many bytes, aligned for doubles.
void distance_loss(const Launch& where, const PairTask& task, std::byte* scratch, float* loss, const Out& ds);

}  // namespace gle::cuda
