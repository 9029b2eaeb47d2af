#include "retrieval/nearest.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"

namespace gle {

namespace {

struct Candidate {
  float distance;
  int32_t index;
  bool operator<(const Candidate& other) const {
    return distance != other.distance ? distance < other.distance : index < other.index;
  }
};

constexpr int64_t kStretch = 64;

float smallest(const float* values, int64_t count) {
  float result = values[0];
  for (int64_t i = 1; i < count; ++i) {
    result = std::min(result, values[i]);
  }
  return result;
}

}  // namespace

// Candidates gather until there are twice as many as wanted; then the further half goes, and what remains sets the
// distance that later ones must beat. Most stretches of a row hold none that do.
int64_t select_nearest(std::span<const float> distances, int64_t k, int64_t skip, int32_t* indices) {
  const auto count = static_cast<int64_t>(distances.size());
  thread_local std::vector<Candidate> best;
  best.clear();
  const auto room = static_cast<size_t>(2 * k + kStretch);
  float bound = INFINITY;
  bool bounded = false;
  for (int64_t begin = 0; begin < count; begin += kStretch) {
    const int64_t end = std::min(count, begin + kStretch);
    if (bounded && smallest(distances.data() + begin, end - begin) >= bound) {
      continue;
    }
    for (int64_t i = begin; i < end; ++i) {
      const float distance = distances[static_cast<size_t>(i)];
      if (i != skip && (!bounded || distance < bound)) {
        best.push_back({distance, static_cast<int32_t>(i)});
      }
    }
    if (best.size() >= room) {
      std::nth_element(best.begin(), best.begin() + (k - 1), best.end());
      bound = best[static_cast<size_t>(k - 1)].distance;
      bounded = true;
      best.resize(static_cast<size_t>(k));
    }
  }
  const auto found = std::min(k, static_cast<int64_t>(best.size()));
  std::partial_sort(best.begin(), best.begin() + found, best.end());
  for (int64_t i = 0; i < found; ++i) {
    indices[i] = best[static_cast<size_t>(i)].index;
  }
  return found;
}

Neighbours nearest(Distances& distances, int64_t k, Self self) {
  const int64_t others = distances.gallery() - (self == Self::excluded ? 1 : 0);
  require(k >= 1 && k <= others, "nearest", k, " neighbours asked of a gallery of ", others);
  Neighbours result;
  result.k = k;
  result.indices.resize(static_cast<size_t>(distances.queries() * k));
  result.distances.resize(result.indices.size());
  distances.for_each_row([&](int64_t query, std::span<float> row) {
    int32_t* indices = result.indices.data() + query * k;
    select_nearest(row, k, self == Self::excluded ? query : kNobody, indices);
    for (int64_t i = 0; i < k; ++i) {
      result.distances[static_cast<size_t>(query * k + i)] = row[static_cast<size_t>(indices[i])];
    }
  });
  return result;
}

}  // namespace gle
