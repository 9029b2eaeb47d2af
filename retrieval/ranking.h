#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/comm/comm.h"
#include "retrieval/distances.h"

namespace gle {

// Who is who, for one evaluation. Cameras are empty, or one for every row, -1 where none is known; a query then ignores
// gallery images of its own label and camera. Gallery images of label kJunk are ignored by all; kDistractor is nobody's
// label.
struct Identities {
  std::vector<int32_t> query_labels = {};
  std::vector<int32_t> gallery_labels = {};
  std::vector<int32_t> query_cameras = {};
  std::vector<int32_t> gallery_cameras = {};
  bool same_set = false;           // queries and gallery are one set: a query ignores itself
  std::vector<int32_t> self = {};  // of two sets: where a query is in the gallery too, or -1; empty: nowhere

  static constexpr int32_t kJunk = -1;
  static constexpr int32_t kDistractor = -2;
};

// Throws ErrorCode::data if the numbers of labels and cameras do not fit.
void check(const Identities& identities, int64_t queries, int64_t gallery);
// Without a camera in the gallery none can be ignored: it is as if no cameras were given.
void forget_unknown_cameras(Identities& identities);
// Whether a query is ranked as if the image of the gallery were not there.
bool ignores(const Identities& identities, int64_t query, int64_t image);
// Images of the gallery that a query may find, junk included.
int64_t others_of(const Identities& identities);

// The gallery by label, grouped once for all queries. Refers to the identities.
class Matches {
 public:
  explicit Matches(const Identities& identities);

  // Where a query's matches stand among the gallery images that count for it, from 0, ascending: all that ranking
  // metrics need. Equal distances stand in the order of their index. Empty: the query has no match.
  std::vector<int64_t> ranks(int64_t query, std::span<const float> distances) const;
  bool has_match(int64_t query) const;

 private:
  // Images of the gallery that carry the query's label, ascending.
  std::span<const int32_t> group(int64_t query) const;

  const Identities& id_;
  std::vector<int32_t> by_label_;  // images of the gallery, by label and then by index
  std::vector<int32_t> junk_;
};

// Metrics over queries; those without a match are counted and left out of all averages.
struct RankingMetrics {
  int64_t queries = 0;
  int64_t without_match = 0;
  std::vector<int64_t> ks;
  std::vector<double> recall;  // share of queries with a match among the first k, for each of ks; = CMC rank-k
  double map = 0;              // mean average precision over the whole ranking
  double minp = 0;             // mean inverse negative penalty
  double r_precision = 0;
  double map_at_r = 0;
};

// What one query adds to each metric, kept per query so that confidence intervals can be drawn from them.
struct QueryMetrics {
  bool has_match = false;
  int64_t first = 0;  // rank of the nearest match
  double average_precision = 0;
  double inverse_penalty = 0;
  double r_precision = 0;
  double map_at_r = 0;
};

QueryMetrics query_metrics(std::span<const int64_t> match_ranks);

// Of every query by its plain distances; the ranks of `comm` share the queries, and all get the result.
std::vector<QueryMetrics> rank_all(Distances& distances, const Matches& matches, Comm* comm);

RankingMetrics summarise(std::span<const QueryMetrics> queries, std::span<const int64_t> ks);

// The 95% interval of the mean of `value`, from means over queries drawn with replacement.
struct Interval {
  double low = 0, high = 0;
};
Interval bootstrap(std::span<const QueryMetrics> queries, const std::function<double(const QueryMetrics&)>& value,
                   int rounds, uint64_t seed);

}  // namespace gle
