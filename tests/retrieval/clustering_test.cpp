#include "retrieval/clustering.h"

#include <cmath>

#include "engine/error.h"
#include "tests/retrieval/support.h"

namespace gle::test {
namespace {

TEST(Nmi, OfTheOracle) {
  const Npz oracle = fixture("metrics.npz");
  const std::vector<int32_t> a = labels(oracle.at("labels"));
  const std::vector<int32_t> b = labels(oracle.at("assignment"));
  EXPECT_NEAR(normalised_mutual_information(a, b), oracle.at("nmi_arithmetic").scalar(), 1e-12);
  EXPECT_NEAR(normalised_mutual_information(a, b, NmiMean::geometric), oracle.at("nmi_geometric").scalar(), 1e-12);
}

TEST(Nmi, EdgeCases) {
  const std::vector<int32_t> one = {3, 3, 3, 3};
  const std::vector<int32_t> two = {0, 0, 1, 1};
  const std::vector<int32_t> renamed = {7, 7, 2, 2};
  const std::vector<int32_t> crossed = {0, 1, 0, 1};
  EXPECT_DOUBLE_EQ(normalised_mutual_information(one, one), 1);
  EXPECT_DOUBLE_EQ(normalised_mutual_information(one, two), 0);
  EXPECT_DOUBLE_EQ(normalised_mutual_information(two, renamed), 1);
  EXPECT_NEAR(normalised_mutual_information(two, crossed), 0, 1e-15);
  EXPECT_THROW(normalised_mutual_information(one, {}), Error);
}

// Clear groups on a line of corners, far apart.
Matrix groups(int64_t count, int64_t each, int64_t dimensions) {
  Matrix m = random_matrix(count * each, dimensions, 8);
  for (int64_t i = 0; i < m.rows; ++i) {
    m.values[static_cast<size_t>(i * dimensions + (i / each) % dimensions)] += 40.0F + static_cast<float>(i / each);
  }
  return m;
}

TEST(KMeans, FindsClearGroups) {
  Machine m;
  const Matrix points = groups(6, 50, 12);
  std::vector<int32_t> truth;
  for (int32_t i = 0; i < 300; ++i) {
    truth.push_back(i / 50);
  }
  const KMeansResult found = k_means(*m.backend, m.pool, points.view(), {.clusters = 6, .restarts = 4, .seed = 1});
  EXPECT_DOUBLE_EQ(normalised_mutual_information(truth, found.assignment), 1);
  EXPECT_NEAR(found.inertia, 300 * 12.0 / 12, 40);
}

TEST(KMeans, RepeatsOnAnyNumberOfThreadsAndNeverLeavesAClusterEmpty) {
  Machine m;
  ThreadPool one(1);
  const Matrix points = random_matrix(900, 10, 6);
  const KMeansOptions options{.clusters = 300, .iterations = 8, .seed = 3};
  const KMeansResult a = k_means(*m.backend, m.pool, points.view(), options);
  const KMeansResult b = k_means(*m.backend, one, points.view(), options);
  EXPECT_EQ(a.assignment, b.assignment);
  EXPECT_EQ(a.centres, b.centres);
  std::vector<int> counts(300, 0);
  for (const int32_t cluster : a.assignment) {
    ++counts.at(static_cast<size_t>(cluster));
  }
  EXPECT_LE(std::count(counts.begin(), counts.end(), 0), 3);
}

TEST(KMeans, MoreIterationsNeverHurt) {
  Machine m;
  const Matrix points = random_matrix(500, 6, 2);
  double before = INFINITY;
  for (const int iterations : {1, 2, 4, 8, 16}) {
    const double inertia =
        k_means(*m.backend, m.pool, points.view(), {.clusters = 9, .iterations = iterations, .seed = 5}).inertia;
    EXPECT_LE(inertia, before * (1 + 1e-6));
    before = inertia;
  }
}

TEST(KMeans, RefusesMoreClustersThanPoints) {
  Machine m;
  const Matrix points = random_matrix(5, 3, 2);
  EXPECT_THROW(k_means(*m.backend, m.pool, points.view(), {.clusters = 6}), Error);
  EXPECT_NO_THROW(k_means(*m.backend, m.pool, points.view(), {.clusters = 5}));
}

}  // namespace
}  // namespace gle::test
