#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "retrieval/distances.h"

namespace gle {

inline constexpr int64_t kNobody = -1;

struct Neighbour {
  float distance;
  int32_t index;
  bool operator<(const Neighbour& other) const {
    return distance != other.distance ? distance < other.distance : index < other.index;
  }
};

// The k smallest entries of a row that comes in pieces, one after the other. Of two equal ones the one with the lower
// index counts as the smaller; `skip` is left out.
class NearestOfRow {
 public:
  void begin(int64_t k, int64_t skip);
  void add(int64_t first, std::span<const float> distances);
  // Nearest first; fewer than k if the row had fewer.
  std::span<const Neighbour> finish();

 private:
  int64_t k_ = 0, skip_ = kNobody;
  float bound_ = 0;  // what a candidate must be below
  std::vector<Neighbour> candidates_;
};

// The same of a whole row. Writes min(k, entries) indices and returns how many.
int64_t select_nearest(std::span<const float> distances, int64_t k, int64_t skip, int32_t* indices);

// For every query the k nearest of the gallery.
struct Neighbours {
  int64_t k = 0;
  std::vector<int32_t> indices;  // [queries, k]
  std::vector<float> distances;  // [queries, k], squared

  std::span<const int32_t> operator[](int64_t query) const {
    return {indices.data() + query * k, static_cast<size_t>(k)};
  }
};

enum class Self { included, excluded };

// With Self::excluded, queries and gallery are the same set and nobody is a neighbour of himself. Throws
// ErrorCode::usage if the gallery has fewer than k others.
Neighbours nearest(Distances& distances, int64_t k, Self self);

}  // namespace gle
