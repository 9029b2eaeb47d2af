#pragma once

// The parts of the Group Loss on a GPU: similarities of embeddings (group_loss_similarity.cu), refinement of
// probabilities (group_loss_refine.cu, group_loss_refine_backward.cu). All sums have an order that sizes alone decide.
// Scratch comes from the caller.

#include "engine/cuda/lanes.h"

namespace gle::cuda {

inline constexpr float kNoSupport = 1e-20F;
inline constexpr float kNoMass = 1e-30F;
inline constexpr float kFloor = 1e-12F;

// Hands out pieces of one lease, aligned for float4. Without memory it only counts.
struct Scratch {
  float* memory;
  int64_t used = 0;

  float* take(int64_t floats) {
    float* result = memory ? memory + used : nullptr;
    used += pieces_of(floats, 4) * 4;
    return result;
  }
};

struct SimilarityTask {
  int64_t n, features;
  In embeddings;  // without data: none
  In given;       // likewise
  Similarity similarity;
  Negatives negatives;
  Diagonal diagonal;
  float* similarities;  // [n,n]
  float* rows;          // [3n+1], see GroupSaved

  __device__ float* means() const { return rows; }
  __device__ float* factors() const { return rows + n; }
  __device__ float* inverses() const { return rows + 2 * n; }
  __device__ float* shift() const { return rows + 3 * n; }
  __device__ bool is_given(int64_t i, int64_t j) const { return given.data && given.at(i, j) >= 0.0F; }
  // Row i of C, see group_loss_similarity.cu.
  __device__ float centred(int64_t i, int64_t feature) const {
    return fmaf(embeddings.at(i, feature), factors()[i], -means()[i]);
  }
};

int64_t similarity_scratch(const SimilarityTask& task);
void similarity_forward(const Launch& where, const SimilarityTask& task, float* scratch);
void similarity_backward(const Launch& where, const SimilarityTask& task, const float* dw,
                         const GradTarget& dembeddings, const GradTarget& dgiven, float* scratch);

struct RefineTask {
  int64_t n, classes;
  int steps;
  const float* similarities;  // [n,n]
  const int32_t* targets;     // [n]
  float* iterates;            // [steps + 1, n, classes], rows without a gap; the first is there already
  float* scales;              // [steps + 1, n]; likewise
  float* inverse_sums;        // [steps + 1, n]
  float* misses;              // [n]; those of the first iterate are there already

  __device__ float* iterate(int t) const { return iterates + t * n * classes; }
  __device__ float own_probability(int64_t i) const {
    return iterate(steps)[i * classes + targets[i]] * scales[steps * n + i];
  }
};

// dL/dlog X_T[i, target_i], for a gradient of `weight` of the sum.
__device__ inline float slope_of(const RefineTask& t, int64_t i, float weight) {
  const float own = t.own_probability(i);
  return -weight * (own / (own + kFloor));
}

void refine_forward(const Launch& where, const RefineTask& task);

struct RefineGradient {
  const float* dloss;  // [1]
  float weight;
  float* a;   // [n, classes]: X_0 * dL/dX_0, unless steps is 0
  float* dw;  // [n,n]; null: not wanted
};

int64_t refine_backward_scratch(const RefineTask& task);
void refine_backward(const Launch& where, const RefineTask& task, const RefineGradient& gradient, float* scratch);

}  // namespace gle::cuda
