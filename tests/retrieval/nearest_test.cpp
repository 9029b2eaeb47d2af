#include "retrieval/nearest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/error.h"
#include "tests/retrieval/support.h"

namespace gle::test {
namespace {

std::vector<int32_t> sorted_indices(std::span<const float> row, int64_t skip) {
  std::vector<int32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase(order, static_cast<int32_t>(skip));
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return row[static_cast<size_t>(a)] < row[static_cast<size_t>(b)]; });
  return order;
}

TEST(SelectNearest, EqualsAStableSortWithManyTies) {
  for (const int64_t size : {1, 2, 63, 64, 65, 1000, 5000}) {
    for (const int distinct : {1, 3, 1000000}) {
      std::vector<float> row(static_cast<size_t>(size));
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = std::floor(uniform(RandomKey{.seed = 5, .stream = 3}, i) * static_cast<float>(distinct));
      }
      for (const int64_t k : {int64_t{1}, int64_t{2}, int64_t{51}, size}) {
        for (const int64_t skip : {kNobody, int64_t{0}, size / 2}) {
          std::vector<int32_t> found(static_cast<size_t>(k), -7);
          const int64_t count = select_nearest(row, k, skip, found.data());
          std::vector<int32_t> expected = sorted_indices(row, skip);
          expected.resize(std::min(expected.size(), static_cast<size_t>(k)));
          found.resize(static_cast<size_t>(count));
          EXPECT_EQ(found, expected) << size << " " << distinct << " " << k << " " << skip;
        }
      }
    }
  }
}

TEST(Nearest, AgreesWithDistancesInDouble) {
  Machine m;
  const Matrix queries = random_matrix(70, 33, 1);
  const Matrix gallery = random_matrix(4500, 33, 2);  // more than one tile
  Distances distances(*m.backend, m.pool, queries.view(), gallery.view());
  const Neighbours found = nearest(distances, 9, Self::included);
  for (int64_t q = 0; q < queries.rows; ++q) {
    std::vector<float> row(static_cast<size_t>(gallery.rows));
    for (int64_t g = 0; g < gallery.rows; ++g) {
      double sum = 0;
      for (int64_t d = 0; d < 33; ++d) {
        const double difference =
            static_cast<double>(queries.view()[q][static_cast<size_t>(d)]) - gallery.view()[g][static_cast<size_t>(d)];
        sum += difference * difference;
      }
      row[static_cast<size_t>(g)] = static_cast<float>(sum);
    }
    const std::vector<int32_t> expected = sorted_indices(row, kNobody);
    for (size_t i = 0; i < 9; ++i) {
      EXPECT_NEAR(row[static_cast<size_t>(found[q][i])], row[static_cast<size_t>(expected[i])], 1e-5);
      EXPECT_NEAR(found.distances[static_cast<size_t>(q) * 9 + i], row[static_cast<size_t>(found[q][i])], 1e-5);
    }
  }
}

TEST(Nearest, ALargeCommonPartDoesNotDrownDistances) {
  Machine m;
  Matrix points = random_matrix(200, 16, 5);
  for (float& value : points.values) {
    value = 100 + std::round(1024 * value) / 1024;
  }
  Distances distances(*m.backend, m.pool, points.view(), points.view());
  distances.for_each_row([&](int64_t query, std::span<float> row) {
    for (int64_t g = 0; g < points.rows; ++g) {
      double sum = 0;
      for (size_t d = 0; d < 16; ++d) {
        const double difference = static_cast<double>(points.view()[query][d]) - points.view()[g][d];
        sum += difference * difference;
      }
      EXPECT_NEAR(row[static_cast<size_t>(g)], sum, 1e-4) << query << " " << g;
    }
  });
}

TEST(Nearest, DuplicatesRankByIndexAndSelfIsLeftOut) {
  Machine m;
  Matrix points = random_matrix(300, 24, 3);
  for (int64_t i = 100; i < 300; ++i) {
    std::copy_n(points.values.begin() + (i % 100) * 24, 24, points.values.begin() + i * 24);
  }
  Distances distances(*m.backend, m.pool, points.view(), points.view());
  const Neighbours found = nearest(distances, 2, Self::excluded);
  for (int32_t i = 0; i < 300; ++i) {
    std::vector<int32_t> twins = {i % 100, i % 100 + 100, i % 100 + 200};
    std::erase(twins, i);
    EXPECT_EQ(found[i][0], twins[0]);
    EXPECT_EQ(found[i][1], twins[1]);
  }
}

void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& work) {
  try {
    work();
    ADD_FAILURE() << "no error, expected: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code);
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Nearest, RefusesWhatCannotBeRanked) {
  Machine m;
  Matrix points = random_matrix(5, 4, 1);
  const Matrix wider = random_matrix(5, 6, 1);
  expect_error(ErrorCode::data, "gallery 6", [&] { Distances(*m.backend, m.pool, points.view(), wider.view()); });
  expect_error(ErrorCode::data, "no embeddings", [&] { Distances(*m.backend, m.pool, points.view(), Embeddings{}); });
  Distances distances(*m.backend, m.pool, points.view(), points.view());
  expect_error(ErrorCode::usage, "5 neighbours asked of a gallery of 4",
               [&] { nearest(distances, 5, Self::excluded); });
  points.values[9] = NAN;
  expect_error(ErrorCode::data, "row 2", [&] { Distances(*m.backend, m.pool, points.view(), wider.view()); });
}

}  // namespace
}  // namespace gle::test
