#include "retrieval/nearest.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "retrieval/row_kernels.h"
#include "retrieval/shares.h"

namespace gle {

namespace {

struct Candidate {
  float distance;
  int32_t index;
  bool operator<(const Candidate& other) const {
    return distance != other.distance ? distance < other.distance : index < other.index;
  }
};

// Positions looked at between two updates of the bound.
constexpr int64_t kStretch = 2048;

}  // namespace

// Candidates gather until there are twice as many as wanted; then the further half goes, and what remains sets the
// distance that later ones must beat.
int64_t select_nearest(std::span<const float> distances, int64_t k, int64_t skip, int32_t* indices) {
  const RowKernels& kernels = row_kernels();
  const auto count = static_cast<int64_t>(distances.size());
  thread_local std::vector<Candidate> best;
  int32_t found[kStretch];
  best.clear();
  const auto room = static_cast<size_t>(2 * k);
  float bound = INFINITY;
  for (int64_t begin = 0; begin < count; begin += kStretch) {
    const float* stretch = distances.data() + begin;
    const int64_t number = kernels.find_below(stretch, std::min(kStretch, count - begin), bound, found);
    for (int64_t i = 0; i < number; ++i) {
      if (begin + found[i] != skip) {
        best.push_back({stretch[found[i]], static_cast<int32_t>(begin + found[i])});
      }
    }
    if (best.size() >= room) {
      std::nth_element(best.begin(), best.begin() + (k - 1), best.end());
      bound = best[static_cast<size_t>(k - 1)].distance;
      best.resize(static_cast<size_t>(k));
    }
  }
  const auto kept = std::min(k, static_cast<int64_t>(best.size()));
  std::partial_sort(best.begin(), best.begin() + kept, best.end());
  for (int64_t i = 0; i < kept; ++i) {
    indices[i] = best[static_cast<size_t>(i)].index;
  }
  return kept;
}

Neighbours nearest(Distances& distances, int64_t k, Self self, Comm* comm) {
  const int64_t others = distances.gallery() - (self == Self::excluded ? 1 : 0);
  require(k >= 1 && k <= others, "nearest", k, " neighbours asked of a gallery of ", others);
  Neighbours result;
  result.k = k;
  result.indices.resize(static_cast<size_t>(distances.queries() * k));
  result.distances.resize(result.indices.size());
  const Distances::Visit visit = [&](int64_t query, std::span<float> row) {
    int32_t* indices = result.indices.data() + query * k;
    select_nearest(row, k, self == Self::excluded ? query : kNobody, indices);
    for (int64_t i = 0; i < k; ++i) {
      result.distances[static_cast<size_t>(query * k + i)] = row[static_cast<size_t>(indices[i])];
    }
  };
  const Shares shares(comm, distances.queries(), distances.block_rows());
  shares.for_each_own([&](int64_t begin, int64_t end) { distances.for_each_row(begin, end, visit); });
  shares.gather(result.indices);
  shares.gather(result.distances);
  return result;
}

}  // namespace gle
