#include "retrieval/nearest.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "retrieval/row_kernels.h"

namespace gle {

namespace {

// Positions looked at between two updates of the bound.
constexpr int64_t kStretch = 2048;

}  // namespace

void NearestOfRow::begin(int64_t k, int64_t skip) {
  k_ = k;
  skip_ = skip;
  bound_ = INFINITY;
  candidates_.clear();
}

// Candidates gather until there are twice as many as wanted; then the further half goes, and what remains sets the
// distance that later ones must beat.
void NearestOfRow::add(int64_t first, std::span<const float> distances) {
  const RowKernels& kernels = row_kernels();
  const auto count = std::ssize(distances);
  int32_t found[kStretch];
  for (int64_t begin = 0; begin < count; begin += kStretch) {
    const float* stretch = distances.data() + begin;
    const int64_t number = kernels.find_below(stretch, std::min(kStretch, count - begin), bound_, found);
    for (int64_t i = 0; i < number; ++i) {
      const int64_t index = first + begin + found[i];
      if (index != skip_) {
        candidates_.push_back({stretch[found[i]], static_cast<int32_t>(index)});
      }
    }
    if (std::ssize(candidates_) >= 2 * k_) {
      std::nth_element(candidates_.begin(), candidates_.begin() + (k_ - 1), candidates_.end());
      candidates_.resize(static_cast<size_t>(k_));
      bound_ = candidates_.back().distance;
    }
  }
}

std::span<const Neighbour> NearestOfRow::finish() {
  const auto kept = std::min<std::ptrdiff_t>(k_, std::ssize(candidates_));
  std::partial_sort(candidates_.begin(), candidates_.begin() + kept, candidates_.end());
  return {candidates_.data(), static_cast<size_t>(kept)};
}

int64_t select_nearest(std::span<const float> distances, int64_t k, int64_t skip, int32_t* indices) {
  thread_local NearestOfRow row;
  row.begin(k, skip);
  row.add(0, distances);
  const std::span<const Neighbour> found = row.finish();
  std::ranges::transform(found, indices, &Neighbour::index);
  return std::ssize(found);
}

Neighbours nearest(Distances& distances, int64_t k, Self self) {
  const int64_t others = distances.gallery() - (self == Self::excluded ? 1 : 0);
  require(k >= 1 && k <= others, "nearest", k, " neighbours asked of a gallery of ", others);
  Neighbours result;
  result.k = k;
  result.indices.resize(static_cast<size_t>(distances.queries() * k));
  result.distances.resize(result.indices.size());
  std::vector<NearestOfRow> under_way(static_cast<size_t>(std::min(distances.queries(), Distances::kMostUnderWay)));
  distances.for_each_piece(0, distances.queries(), [&](const Distances::Piece& piece) {
    NearestOfRow& row = under_way[static_cast<size_t>(piece.place)];
    if (piece.first == 0) {
      row.begin(k, self == Self::excluded ? piece.query : kNobody);
    }
    row.add(piece.first, piece.distances);
    if (piece.last) {
      auto at = static_cast<size_t>(piece.query * k);
      for (const Neighbour& neighbour : row.finish()) {
        result.indices[at] = neighbour.index;
        result.distances[at++] = neighbour.distance;
      }
    }
  });
  return result;
}

}  // namespace gle
