#include "retrieval/ranking.h"

#include <algorithm>
#include <utility>

#include "engine/error.h"
#include "engine/math/philox.h"

namespace gle {

void check(const Identities& id, int64_t queries, int64_t gallery) {
  const auto require_count = [](const char* what, size_t found, int64_t expected) {
    if (static_cast<int64_t>(found) != expected) {
      fail(ErrorCode::data, what, ": ", found, " for ", expected, " embeddings");
    }
  };
  require_count("query labels", id.query_labels.size(), queries);
  require_count("gallery labels", id.gallery_labels.size(), gallery);
  if (!id.query_cameras.empty() || !id.gallery_cameras.empty()) {
    require_count("query cameras", id.query_cameras.size(), queries);
    require_count("gallery cameras", id.gallery_cameras.size(), gallery);
  }
  if (id.same_set && queries != gallery) {
    fail(ErrorCode::data, "queries and gallery are to be one set, but have ", queries, " and ", gallery, " images");
  }
}

std::vector<int64_t> match_ranks(const Identities& id, int64_t query, std::span<const float> distances) {
  const int32_t label = id.query_labels[static_cast<size_t>(query)];
  const bool cameras = !id.query_cameras.empty();
  const int32_t camera = cameras ? id.query_cameras[static_cast<size_t>(query)] : 0;
  const auto ignored = [&](size_t i) {
    return (id.same_set && static_cast<int64_t>(i) == query) || id.gallery_labels[i] == Identities::kJunk ||
           (cameras && id.gallery_labels[i] == label && id.gallery_cameras[i] == camera);
  };

  thread_local std::vector<std::pair<float, size_t>> matches;
  matches.clear();
  for (size_t i = 0; i < distances.size(); ++i) {
    if (id.gallery_labels[i] == label && !ignored(i)) {
      matches.emplace_back(distances[i], i);
    }
  }
  std::sort(matches.begin(), matches.end());

  // closer[m]: images that count and stand before match m but behind match m - 1.
  std::vector<int64_t> closer(matches.size(), 0);
  if (matches.empty()) {
    return closer;
  }
  const float furthest = matches.back().first;
  for (size_t i = 0; i < distances.size(); ++i) {
    if (distances[i] <= furthest && id.gallery_labels[i] != label && !ignored(i)) {
      const auto behind = std::upper_bound(matches.begin(), matches.end(), std::pair(distances[i], i));
      if (behind != matches.end()) {
        ++closer[static_cast<size_t>(behind - matches.begin())];
      }
    }
  }
  int64_t before = 0;
  for (size_t m = 0; m < closer.size(); ++m) {
    before += closer[m];
    closer[m] = before + static_cast<int64_t>(m);
  }
  return closer;
}

QueryMetrics query_metrics(std::span<const int64_t> ranks) {
  QueryMetrics result;
  if (ranks.empty()) {
    return result;
  }
  const auto matches = static_cast<int64_t>(ranks.size());
  result.has_match = true;
  result.first = ranks.front();
  for (int64_t m = 0; m < matches; ++m) {
    const int64_t rank = ranks[static_cast<size_t>(m)];
    const double precision = static_cast<double>(m + 1) / static_cast<double>(rank + 1);
    result.average_precision += precision;
    if (rank < matches) {
      result.r_precision += 1;
      result.map_at_r += precision;
    }
  }
  const auto count = static_cast<double>(matches);
  result.average_precision /= count;
  result.r_precision /= count;
  result.map_at_r /= count;
  result.inverse_penalty = count / static_cast<double>(ranks.back() + 1);
  return result;
}

RankingMetrics summarise(std::span<const QueryMetrics> queries, std::span<const int64_t> ks) {
  RankingMetrics result;
  result.queries = static_cast<int64_t>(queries.size());
  result.ks.assign(ks.begin(), ks.end());
  result.recall.assign(ks.size(), 0);
  int64_t counted = 0;
  for (const QueryMetrics& query : queries) {
    if (!query.has_match) {
      ++result.without_match;
      continue;
    }
    ++counted;
    for (size_t i = 0; i < ks.size(); ++i) {
      result.recall[i] += query.first < ks[i] ? 1 : 0;
    }
    result.map += query.average_precision;
    result.minp += query.inverse_penalty;
    result.r_precision += query.r_precision;
    result.map_at_r += query.map_at_r;
  }
  const double n = counted > 0 ? static_cast<double>(counted) : 1;
  for (double* sum : {&result.map, &result.minp, &result.r_precision, &result.map_at_r}) {
    *sum /= n;
  }
  for (double& recall : result.recall) {
    recall /= n;
  }
  return result;
}

Interval bootstrap(std::span<const QueryMetrics> queries, const std::function<double(const QueryMetrics&)>& value,
                   int rounds, uint64_t seed) {
  std::vector<double> values;
  for (const QueryMetrics& query : queries) {
    if (query.has_match) {
      values.push_back(value(query));
    }
  }
  require(!values.empty() && rounds >= 40, "bootstrap", "needs a query with a match and at least 40 rounds, got ",
          values.size(), " and ", rounds);
  std::vector<double> means(static_cast<size_t>(rounds));
  for (size_t round = 0; round < means.size(); ++round) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const float draw = uniform(RandomKey{.seed = seed, .stream = round}, i);
      sum += values[std::min(values.size() - 1, static_cast<size_t>(draw * static_cast<float>(values.size())))];
    }
    means[round] = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  const auto tail = static_cast<size_t>(0.025 * rounds);
  return {means[tail], means[means.size() - 1 - tail]};
}

}  // namespace gle
