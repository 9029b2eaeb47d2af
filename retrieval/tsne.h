#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/backend.h"
#include "engine/thread_pool.h"
#include "retrieval/embeddings.h"

namespace gle {

struct TsneOptions {
  double perplexity = 30;  // at most a third of the points; less is taken where there are fewer
  int iterations = 750;
  int exaggerated = 250;  // the first of them, with attractions times `exaggeration`
  double exaggeration = 12;
  double learning_rate = 0;    // 0: points / exaggeration / 4, at least 50
  int64_t exact_up_to = 2000;  // points; beyond, repulsion is Barnes and Hut's
  double theta = 0.5;          // of theirs: cells that look smaller than this count as one point; at most 0.7
  uint64_t seed = 0;
  // Told after every iteration.
  std::function<void(int done)> progress = [](int) {};
};

// p_ij = (p_j|i + p_i|j) / 2n, with p_j|i over the 3 x perplexity nearest of point i. Symmetric, and the sum is 1.
struct Affinities {
  std::vector<int64_t> begins;  // of each point's entries, and their end
  std::vector<int32_t> others;  // ascending for each point
  std::vector<float> values;

  int64_t points() const { return static_cast<int64_t>(begins.size()) - 1; }
};
Affinities affinities(Backend& backend, ThreadPool& pool, Embeddings points, double perplexity);

// Of a map [points,2]: KL(P || Q), and its gradient with attractions times `exaggeration`.
struct MapForces {
  double divergence = 0;
  std::vector<float> gradient;  // [points,2]
};
MapForces map_forces(ThreadPool& pool, const Affinities& p, std::span<const float> map, double exaggeration,
                     const TsneOptions& options);

struct TsneMap {
  std::vector<float> positions;     // [points,2]
  std::vector<double> divergences;  // KL(P || Q) where each iteration began
};

// Lays points out in the plane so that neighbours stay neighbours (van der Maaten and Hinton, 2008; van der Maaten,
// 2014). The same bits for the same seed on any number of threads. Needs four points at least.
TsneMap tsne(Backend& backend, ThreadPool& pool, Embeddings points, const TsneOptions& options = {});

}  // namespace gle
