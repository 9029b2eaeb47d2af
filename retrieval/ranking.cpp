#include "retrieval/ranking.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "engine/error.h"
#include "engine/math/philox.h"
#include "retrieval/row_kernels.h"
#include "retrieval/shares.h"

namespace gle {

void check(const Identities& id, int64_t queries, int64_t gallery) {
  const auto require_count = [](const char* what, size_t found, int64_t expected) {
    if (static_cast<int64_t>(found) != expected) {
      fail(ErrorCode::data, what, ": ", found, " for ", expected, " embeddings");
    }
  };
  require_count("gallery labels", id.gallery_labels.size(), gallery);
  require_count("query labels", id.query_labels.size(), queries);
  if (!id.query_cameras.empty() || !id.gallery_cameras.empty()) {
    require_count("gallery cameras", id.gallery_cameras.size(), gallery);
    require_count("query cameras", id.query_cameras.size(), queries);
  }
  if (id.same_set && queries != gallery) {
    fail(ErrorCode::data, "queries and gallery are to be one set, but have ", queries, " and ", gallery, " images");
  }
  if (!id.self.empty()) {
    require_count("places of queries in the gallery", id.self.size(), queries);
  }
}

void forget_unknown_cameras(Identities& id) {
  if (std::ranges::all_of(id.gallery_cameras, [](int32_t camera) { return camera < 0; })) {
    id.query_cameras.clear();
    id.gallery_cameras.clear();
  }
}

bool ignores(const Identities& id, int64_t query, int64_t image) {
  const auto q = static_cast<size_t>(query);
  const auto i = static_cast<size_t>(image);
  const int32_t label = id.gallery_labels[i];
  return label == Identities::kJunk || (id.same_set && image == query) || (!id.self.empty() && image == id.self[q]) ||
         (!id.query_cameras.empty() && label == id.query_labels[q] && id.query_cameras[q] >= 0 &&
          id.gallery_cameras[i] == id.query_cameras[q]);
}

int64_t others_of(const Identities& id) {
  return std::ssize(id.gallery_labels) - (id.same_set || !id.self.empty() ? 1 : 0);
}

namespace {

using Match = std::pair<float, int32_t>;  // distance and place in the gallery: their order is that of the ranking

// Up to so many matches, a pass over the row for each is quicker than one that looks up every image's place.
constexpr size_t kFewMatches = 48;

// ranks[m]: images before match m, ignored ones included.
void count_before(std::span<const Match> matches, std::span<const float> distances, std::vector<int64_t>& ranks) {
  const RowKernels& kernels = row_kernels();
  for (size_t m = 0; m < matches.size(); ++m) {
    const auto [distance, at] = matches[m];
    ranks[m] = kernels.count_up_to(distances.data(), at, distance) +
               kernels.count_below(distances.data() + at, std::ssize(distances) - at, distance);
  }
}

}  // namespace

Matches::Matches(const Identities& identities) : id_(identities), by_label_(identities.gallery_labels.size()) {
  std::iota(by_label_.begin(), by_label_.end(), 0);
  const std::vector<int32_t>& labels = id_.gallery_labels;
  std::stable_sort(by_label_.begin(), by_label_.end(), [&](int32_t a, int32_t b) {
    return labels[static_cast<size_t>(a)] < labels[static_cast<size_t>(b)];
  });
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == Identities::kJunk) {
      junk_.push_back(static_cast<int32_t>(i));
    }
  }
}

std::span<const int32_t> Matches::group(int64_t query) const {
  const int32_t label = id_.query_labels[static_cast<size_t>(query)];
  if (label == Identities::kJunk || label == Identities::kDistractor) {
    return {};
  }
  const auto label_of = [&](int32_t image) { return id_.gallery_labels[static_cast<size_t>(image)]; };
  const auto begin =
      std::partition_point(by_label_.begin(), by_label_.end(), [&](int32_t i) { return label_of(i) < label; });
  const auto end = std::partition_point(begin, by_label_.end(), [&](int32_t i) { return label_of(i) == label; });
  return {begin, end};
}

bool Matches::has_match(int64_t query) const {
  return std::ranges::any_of(group(query), [&](int32_t image) { return !ignores(id_, query, image); });
}

std::vector<int64_t> Matches::ranks(int64_t query, std::span<const float> distances) const {
  thread_local std::vector<Match> matches;
  thread_local std::vector<Match> left_out;
  matches.clear();
  left_out.clear();
  const auto at = [&](int32_t image) { return Match(distances[static_cast<size_t>(image)], image); };
  for (const int32_t image : group(query)) {
    (ignores(id_, query, image) ? left_out : matches).push_back(at(image));
  }
  std::sort(matches.begin(), matches.end());
  std::vector<int64_t> ranks(matches.size(), 0);
  if (matches.empty()) {
    return ranks;
  }

  if (matches.size() <= kFewMatches) {
    count_before(matches, distances, ranks);
    for (const int32_t image : junk_) {
      left_out.push_back(at(image));
    }
    for (size_t m = 0; m < matches.size(); ++m) {
      ranks[m] -= std::count_if(left_out.begin(), left_out.end(), [&](const Match& i) { return i < matches[m]; });
    }
    return ranks;
  }

  // First how many that count stand before match m but behind match m - 1.
  const float furthest = matches.back().first;
  for (size_t i = 0; i < distances.size(); ++i) {
    if (distances[i] <= furthest && !ignores(id_, query, static_cast<int64_t>(i))) {
      const auto behind = std::upper_bound(matches.begin(), matches.end(), at(static_cast<int32_t>(i)));
      if (behind != matches.end()) {
        ++ranks[static_cast<size_t>(behind - matches.begin())];
      }
    }
  }
  std::partial_sum(ranks.begin(), ranks.end(), ranks.begin());
  return ranks;
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

std::vector<QueryMetrics> rank_all(Distances& distances, const Matches& matches, Comm* comm) {
  std::vector<QueryMetrics> result(static_cast<size_t>(distances.queries()));
  const Distances::Visit visit = [&](int64_t query, std::span<float> row) {
    result[static_cast<size_t>(query)] = query_metrics(matches.ranks(query, row));
  };
  const Shares shares(comm, distances.queries(), distances.rows_at_once());
  shares.for_each_own([&](int64_t begin, int64_t end) { distances.for_each_row(begin, end, visit); });
  shares.gather(result);
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
