#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/backend.h"
#include "engine/comm/comm.h"
#include "engine/thread_pool.h"
#include "retrieval/embeddings.h"

namespace gle {

struct KMeansOptions {
  int64_t clusters = 2;
  int iterations = 100;  // at most; it ends when no point moves
  int restarts = 1;      // the one with the smallest sum of squared distances wins
  uint64_t seed = 0;
  // Ranks that share the work; all get the result. Nothing: no others.
  Comm* comm = nullptr;
};

struct KMeansResult {
  std::vector<int32_t> assignment;  // [points]
  std::vector<float> centres;       // [clusters, dimensions]
  double inertia = 0;               // sum of squared distances to the centres
  int iterations = 0;
};

// Lloyd's algorithm from k-means++ seeds. A cluster that loses all points takes the point furthest from its centre.
KMeansResult k_means(Backend& backend, ThreadPool& pool, Embeddings points, const KMeansOptions& options);

enum class NmiMean { arithmetic, geometric };

// Normalised mutual information of two labelings of the same points, 0 to 1; 1 if both have a single label.
double normalised_mutual_information(std::span<const int32_t> a, std::span<const int32_t> b,
                                     NmiMean mean = NmiMean::arithmetic);

}  // namespace gle
