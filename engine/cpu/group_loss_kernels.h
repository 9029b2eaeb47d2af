#pragma once

// The parts of the Group Loss on the CPU: similarities of embeddings (group_loss_similarity.cpp), refinement of
// probabilities (group_loss_refine.cpp). Work is cut by sizes alone, so the bits are the same on any number of threads.
// Nothing is allocated: scratch comes from the caller.

#include <cstdint>

#include "engine/cpu/tile_kernels.h"
#include "engine/cpu/whole_numbers.h"
#include "engine/options.h"
#include "engine/thread_pool.h"

namespace gle::cpu::GLE_ISA {

// Hands out pieces of one lease. Without memory it only counts.
struct Scratch {
  float* memory;
  int64_t used = 0;

  GLE_INLINE float* take(int64_t floats) {
    float* result = memory ? memory + used : nullptr;
    used += (floats + 15) / 16 * 16;
    return result;
  }
};

inline constexpr float kNoMass = 1e-30F;  // a probability below it counts as 0

// Distance of rows that a product reads: rows a power of two apart would share a cache set.
GLE_INLINE int64_t padded_row(int64_t floats) { return (floats + 15) / 16 * 16 + 16; }

struct SimilarityTask {
  int64_t n, features;
  const Tensor& embeddings;  // may be empty
  const Tensor& given;       // may be empty
  const GroupRefinement& options;
  float* similarities;  // [n,n]
  float* rows;          // [3n+1]

  GLE_INLINE float* means() const { return rows; }
  GLE_INLINE float* factors() const { return rows + n; }
  GLE_INLINE float* inverses() const { return rows + 2 * n; }
  GLE_INLINE float& shift() const { return rows[3 * n]; }
  GLE_INLINE bool is_given(int64_t i, int64_t j) const { return given && given.data()[i * given.pitch() + j] >= 0.0F; }
};

int64_t similarity_scratch(const SimilarityTask& task, int threads);
// Fills a row of means() and factors(): all rows before similarity_forward().
void find_mean(const SimilarityTask& task, int64_t row);
void similarity_forward(ThreadPool& pool, const SimilarityTask& task, float* scratch);
// dgiven, and what the stripes of dembeddings want, which follow in any order with the same scratch. dw[n,n] is used
// up.
void similarity_backward(const SimilarityTask& task, float* dw, const GradTarget& dembeddings, const GradTarget& dgiven,
                         float* scratch);
int64_t stripes_of(const SimilarityTask& task);
void stripe_backward(const SimilarityTask& task, int64_t stripe, int thread, const GradTarget& dembeddings,
                     float* scratch);

// An anchor's row never changes, so only the others are refined: n of all samples. Sample order[i] is the i-th of them,
// and from n on the i-th is an anchor.
struct RefineTask {
  int64_t n, all, classes;
  int steps;
  const int32_t* order;       // [all]
  const float* similarities;  // [all,all], by sample
  const int32_t* targets;     // [all], by sample
  float* iterates;            // [steps + 1, n, classes]; the first is there already
  float* scales;              // [steps + 1, n]; likewise
  float* inverse_sums;        // [steps + 1, n]
  float* misses;              // [n]; those of the first iterate are there already

  GLE_INLINE float* iterate(int t) const { return iterates + t * n * classes; }
  GLE_INLINE int32_t target(int64_t i) const { return targets[order[i]]; }
  GLE_INLINE float similarity(int64_t i, int64_t j) const { return similarities[order[i] * all + order[j]]; }
};

// A matrix [n, classes] of the refinement lies tile after tile of kTile columns, each [n, its columns] without a gap:
// what a step works on is one stretch of memory, however many classes there are.
inline constexpr int64_t kTile = 64;

GLE_INLINE int64_t tile_columns(const RefineTask& t, int64_t first) { return smaller(kTile, t.classes - first); }
GLE_INLINE int64_t tile_row(const RefineTask& t, int64_t first, int64_t row) {
  return first * t.n + row * tile_columns(t, first);
}
GLE_INLINE int64_t tile_entry(const RefineTask& t, int64_t row, int64_t column) {
  const int64_t first = column / kTile * kTile;
  return tile_row(t, first, row) + column - first;
}

int64_t refine_scratch(const RefineTask& task, int threads);
void refine_forward(ThreadPool& pool, const RefineTask& task, float* scratch);

// slopes[n] = dL/dlog X_T[i, target_i]. Gives a[n, classes] = X_0 * dL/dX_0 with its row sums, unless steps is 0, and
// dw[all,all], by sample.
void refine_backward(ThreadPool& pool, const RefineTask& task, const float* slopes, float* a, float* sums, float* dw,
                     float* scratch);

}  // namespace gle::cpu::GLE_ISA
