#include "retrieval/ranking.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/error.h"
#include "retrieval/distances.h"
#include "retrieval/evaluate.h"
#include "tests/retrieval/support.h"

namespace gle::test {
namespace {

TEST(Ranking, RecallOfTheOracle) {
  Machine m;
  const Npz oracle = fixture("metrics.npz");
  const Matrix points = matrix(oracle.at("embeddings"));
  const std::vector<int32_t> classes = labels(oracle.at("labels"));
  const Identities id{.query_labels = classes, .gallery_labels = classes, .same_set = true};
  check(id, points.rows, points.rows);
  Distances distances(*m.backend, m.pool, points.view(), points.view());
  const Matches matches(id);
  std::vector<QueryMetrics> queries(static_cast<size_t>(points.rows));
  distances.for_each_row([&](int64_t query, std::span<float> row) {
    queries[static_cast<size_t>(query)] = query_metrics(matches.ranks(query, row));
  });
  const std::vector<int64_t> ks = oracle.at("recall_k").integers();
  const RankingMetrics found = summarise(queries, ks);
  const std::vector<double> expected = oracle.at("recall").doubles();
  ASSERT_EQ(found.recall.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_DOUBLE_EQ(found.recall[i], expected[i]) << "k " << ks[i];
  }
}

// The plain way: sort everything, walk down, count.
std::vector<int64_t> ranks_by_sorting(const Identities& id, int64_t query, std::span<const float> row) {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row[a] < row[b]; });
  std::vector<int64_t> ranks;
  int64_t rank = 0;
  for (const size_t i : order) {
    const bool same = id.gallery_labels[i] == id.query_labels[static_cast<size_t>(query)];
    const int32_t camera = id.query_cameras.empty() ? -1 : id.query_cameras[static_cast<size_t>(query)];
    const bool same_camera = camera >= 0 && id.gallery_cameras[i] == camera;
    const bool self = id.same_set ? static_cast<int64_t>(i) == query
                                  : !id.self.empty() && static_cast<int32_t>(i) == id.self[static_cast<size_t>(query)];
    if (self || id.gallery_labels[i] == Identities::kJunk || (same && same_camera)) {
      continue;
    }
    if (same) {
      ranks.push_back(rank);
    }
    ++rank;
  }
  return ranks;
}

TEST(Ranking, RanksEqualSortingWithTiesJunkDistractorsAndCameras) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const bool same_set = seed % 3 == 0;
    const int64_t gallery = 40 + static_cast<int64_t>(seed);
    const int64_t query_count = same_set ? gallery : 25;
    Identities id{.query_labels = random_labels(query_count, 7, seed), .gallery_labels = {}, .same_set = same_set};
    id.gallery_labels = same_set ? id.query_labels : random_labels(gallery, 9, seed + 100);
    if (seed % 2 == 0) {
      id.query_cameras = random_labels(query_count, 3, seed + 200);
      id.gallery_cameras = same_set ? id.query_cameras : random_labels(gallery, 3, seed + 300);
    }
    for (std::vector<int32_t>* cameras : {&id.query_cameras, &id.gallery_cameras}) {
      for (int32_t& camera : *cameras) {
        camera -= seed % 4 == 0 ? 1 : 0;  // some have none
      }
    }
    if (seed % 3 == 1) {  // every other query is in the gallery too
      for (int32_t q = 0; q < query_count; ++q) {
        id.self.push_back(q % 2 == 0 ? q + 8 : -1);
        if (q % 2 == 0) {
          id.gallery_labels[static_cast<size_t>(q) + 8] = id.query_labels[static_cast<size_t>(q)];
        }
      }
    }
    if (!same_set) {
      id.gallery_labels[1] = id.gallery_labels[5] = Identities::kJunk;
      id.gallery_labels[2] = id.gallery_labels[7] = Identities::kDistractor;
    }
    check(id, query_count, gallery);
    const Matches matches(id);
    for (int64_t query = 0; query < query_count; ++query) {
      std::vector<float> row(static_cast<size_t>(gallery));
      for (size_t i = 0; i < row.size(); ++i) {
        const float draw = uniform(RandomKey{.seed = seed, .stream = 9}, static_cast<uint64_t>(query) * 200 + i);
        row[i] = std::floor(draw * (seed % 2 == 0 ? 12.0F : 1e6F));
      }
      EXPECT_EQ(matches.ranks(query, row), ranks_by_sorting(id, query, row)) << seed << " " << query;
    }
  }
}

TEST(Ranking, CmcAndMapAreTorchreids) {
  const Npz oracle = fixture("torchreid.npz");
  const auto cases = static_cast<int>(oracle.at("cases").scalar());
  ASSERT_GE(cases, 60);
  for (int i = 0; i < cases; ++i) {
    const std::string name = std::to_string(i) + "/";
    Identities id{.query_labels = labels(oracle.at(name + "query_ids")),
                  .gallery_labels = labels(oracle.at(name + "gallery_ids")),
                  .query_cameras = labels(oracle.at(name + "query_cameras")),
                  .gallery_cameras = labels(oracle.at(name + "gallery_cameras"))};
    std::replace(id.gallery_labels.begin(), id.gallery_labels.end(), 0, Identities::kDistractor);
    const Matrix distances = matrix(oracle.at(name + "distances"));
    const Matches matches(id);
    std::vector<QueryMetrics> queries;
    for (int64_t query = 0; query < distances.rows; ++query) {
      queries.push_back(query_metrics(matches.ranks(query, distances.view()[query])));
    }
    const std::vector<float> cmc = oracle.at(name + "cmc").floats();
    std::vector<int64_t> ks(cmc.size());
    std::iota(ks.begin(), ks.end(), int64_t{1});
    const RankingMetrics found = summarise(queries, ks);
    EXPECT_NEAR(found.map, oracle.at(name + "map").scalar(), 1e-12) << i;
    for (size_t k = 0; k < ks.size(); ++k) {
      // torchreid divides whole numbers in single precision.
      EXPECT_EQ(static_cast<float>(found.recall[k]), cmc[k]) << i << " rank " << ks[k];
    }
  }
}

// Both ways to find ranks, around the number of matches at which one takes over from the other.
TEST(Ranking, AQueryIsKnownInAGalleryThatHasOthersToo) {
  data::Dataset data;
  data.items.resize(4);
  const uint32_t gallery[] = {3, 0, 2}, some[] = {0, 1, 2}, none[] = {1};
  const Identities id = identities_of(data, some, gallery);
  EXPECT_FALSE(id.same_set);
  EXPECT_EQ(id.self, (std::vector<int32_t>{1, -1, 2}));
  EXPECT_EQ(others_of(id), 2);
  EXPECT_TRUE(identities_of(data, none, gallery).self.empty());
  const Identities one = identities_of(data, gallery, gallery);
  EXPECT_TRUE(one.same_set && one.self.empty());
  EXPECT_EQ(others_of(one), 2);
}

TEST(Ranking, ManyMatchesRankAsFewDo) {
  for (const int64_t gallery : {90, 97, 300}) {
    for (const int classes : {1, 2, 6}) {
      Identities id{.query_labels = random_labels(gallery, classes, 3), .gallery_labels = {}, .same_set = true};
      id.gallery_labels = id.query_labels;
      id.query_cameras = id.gallery_cameras = random_labels(gallery, 4, 5);
      const Matches matches(id);
      for (int64_t query = 0; query < gallery; ++query) {
        std::vector<float> row(static_cast<size_t>(gallery));
        for (size_t i = 0; i < row.size(); ++i) {
          row[i] = std::floor(40 * uniform(RandomKey{.seed = 2, .stream = static_cast<uint64_t>(query)}, i));
        }
        EXPECT_EQ(matches.ranks(query, row), ranks_by_sorting(id, query, row)) << gallery << " " << classes;
      }
    }
  }
}

TEST(Ranking, MetricsOfKnownRanks) {
  const std::vector<int64_t> ranks = {0, 2, 5};
  const QueryMetrics q = query_metrics(ranks);
  EXPECT_TRUE(q.has_match);
  EXPECT_DOUBLE_EQ(q.average_precision, (1.0 + 2.0 / 3 + 3.0 / 6) / 3);
  EXPECT_DOUBLE_EQ(q.inverse_penalty, 3.0 / 6);
  EXPECT_DOUBLE_EQ(q.r_precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(q.map_at_r, (1.0 + 2.0 / 3) / 3);
  const std::vector<QueryMetrics> queries = {q, query_metrics({}), query_metrics(std::vector<int64_t>{4})};
  const std::vector<int64_t> ks = {1, 4, 5};
  const RankingMetrics all = summarise(queries, ks);
  EXPECT_EQ(all.queries, 3);
  EXPECT_EQ(all.without_match, 1);
  EXPECT_EQ(all.recall, (std::vector<double>{0.5, 0.5, 1.0}));
  EXPECT_DOUBLE_EQ(all.map, (q.average_precision + 0.2) / 2);
}

TEST(Ranking, BootstrapCoversTheMeanAndRepeats) {
  std::vector<QueryMetrics> queries;
  for (int i = 0; i < 400; ++i) {
    queries.push_back({.has_match = true, .first = i % 4 == 0 ? 0 : 3});
  }
  const auto hit = [](const QueryMetrics& q) { return q.first < 1 ? 1.0 : 0.0; };
  const Interval a = bootstrap(queries, hit, 500, 1);
  const Interval b = bootstrap(queries, hit, 500, 1);
  EXPECT_LT(a.low, 0.25);
  EXPECT_GT(a.high, 0.25);
  EXPECT_NEAR(a.high - a.low, 2 * 1.96 * std::sqrt(0.25 * 0.75 / 400), 0.02);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

TEST(Ranking, RefusesLabelsThatDoNotFit) {
  const Identities id{.query_labels = {1, 2}, .gallery_labels = {1, 2, 3}};
  EXPECT_NO_THROW(check(id, 2, 3));
  EXPECT_THROW(check(id, 3, 3), Error);
  EXPECT_THROW(check(id, 2, 4), Error);
  const Identities cameras{.query_labels = {1, 2}, .gallery_labels = {1, 2, 3}, .query_cameras = {0, 0}};
  EXPECT_THROW(check(cameras, 2, 3), Error);
}

}  // namespace
}  // namespace gle::test
