#include "retrieval/tsne.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/cpu/cpu.h"
#include "engine/error.h"
#include "engine/math/philox.h"
#include "retrieval/nearest.h"
#include "tests/expect_error.h"

namespace gle::test {
namespace {

struct Points {
  std::vector<float> values;
  int64_t rows = 0, dimensions = 0;
  std::vector<int32_t> labels = {};

  Embeddings view() const { return {values.data(), rows, dimensions}; }
};

// Clusters of equal size around corners that are `apart` from each other, each a unit cube.
Points clusters(int64_t rows, int64_t dimensions, int count, float apart) {
  Points p{std::vector<float>(static_cast<size_t>(rows * dimensions)), rows, dimensions};
  for (size_t i = 0; i < p.values.size(); ++i) {
    const auto row = i / static_cast<size_t>(dimensions);
    const auto column = i % static_cast<size_t>(dimensions);
    const size_t cluster = row % static_cast<size_t>(count);
    p.values[i] = uniform(RandomKey{.seed = 3, .stream = 9}, i) + (column == cluster ? apart : 0.0F);
  }
  for (int64_t i = 0; i < rows; ++i) {
    p.labels.push_back(static_cast<int32_t>(i % count));
  }
  return p;
}

std::vector<float> random_map(int64_t points, float spread) {
  std::vector<float> map(static_cast<size_t>(points) * 2);
  for (size_t i = 0; i < map.size(); ++i) {
    map[i] = spread * (uniform(RandomKey{.seed = 8, .stream = 1}, i) - 0.5F);
  }
  return map;
}

struct Machine {
  explicit Machine(int threads = 2)
      : backend(make_cpu_backend({.threads = threads, .library = false})), pool(threads) {}
  std::unique_ptr<Backend> backend;
  ThreadPool pool;
};

// How many points of the map have a nearest neighbour of their own label.
double agreement(Machine& m, const TsneMap& map, const std::vector<int32_t>& labels) {
  const Embeddings plane{map.positions.data(), static_cast<int64_t>(labels.size()), 2};
  Distances distances(*m.backend, m.pool, plane, plane);
  const Neighbours neighbours = nearest(distances, 1, Self::excluded);
  size_t same = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    same += labels[i] == labels[static_cast<size_t>(neighbours.indices[i])] ? 1 : 0;
  }
  return static_cast<double>(same) / static_cast<double>(labels.size());
}

TEST(Affinities, AreSymmetricAndSumToOne) {
  Machine m;
  const Points points = clusters(120, 8, 3, 2);
  const Affinities p = affinities(*m.backend, m.pool, points.view(), 10);
  std::vector<double> dense(120 * 120, 0);
  double sum = 0;
  for (size_t i = 0; i < 120; ++i) {
    for (int64_t e = p.begins[i]; e < p.begins[i + 1]; ++e) {
      const auto at = static_cast<size_t>(e);
      ASSERT_TRUE(e == p.begins[i] || p.others[at - 1] < p.others[at]);
      dense[i * 120 + static_cast<size_t>(p.others[at])] = p.values[at];
      sum += p.values[at];
    }
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  for (size_t i = 0; i < 120; ++i) {
    EXPECT_EQ(dense[i * 121], 0);
    for (size_t j = 0; j < i; ++j) {
      EXPECT_EQ(dense[i * 120 + j], dense[j * 120 + i]);
    }
  }
  // Equal distances to all others: every neighbour gets the same share, whatever the perplexity.
  std::vector<float> corners(6 * 6, 0.0F);
  for (size_t i = 0; i < 6; ++i) {
    corners[i * 7] = 1;
  }
  const Affinities equal = affinities(*m.backend, m.pool, {corners.data(), 6, 6}, 1.5);
  for (const float value : equal.values) {
    EXPECT_NEAR(value, 1.0 / 30, 1e-6);
  }
}

TEST(Tsne, TheGradientIsThatOfTheDivergence) {
  Machine m;
  const Points points = clusters(40, 5, 4, 3);
  const Affinities p = affinities(*m.backend, m.pool, points.view(), 8);
  const std::vector<float> map = random_map(40, 4);
  const TsneOptions options;
  const MapForces forces = map_forces(m.pool, p, map, 1, options);
  double largest = 0;
  for (const float slope : forces.gradient) {
    largest = std::max(largest, std::abs(static_cast<double>(slope)));
  }
  ASSERT_GT(largest, 0);
  for (size_t i = 0; i < map.size(); ++i) {
    constexpr float kStep = 1.0F / 64;
    std::vector<float> moved = map;
    moved[i] = map[i] + kStep;
    const double above = map_forces(m.pool, p, moved, 1, options).divergence;
    moved[i] = map[i] - kStep;
    const double below = map_forces(m.pool, p, moved, 1, options).divergence;
    EXPECT_NEAR(forces.gradient[i], (above - below) / (2 * kStep), 2e-3 * largest) << i;
  }
}

TEST(Tsne, BarnesAndHutComeCloseToAllPairs) {
  Machine m;
  const Points points = clusters(300, 5, 4, 3);
  const Affinities p = affinities(*m.backend, m.pool, points.view(), 8);
  std::vector<float> map = random_map(300, 20);
  std::copy_n(map.begin(), 10, map.begin() + 10);  // points in one place
  const MapForces exact = map_forces(m.pool, p, map, 1, {});
  const MapForces same = map_forces(m.pool, p, map, 1, {.exact_up_to = 0, .theta = 0});
  const MapForces close = map_forces(m.pool, p, map, 1, {.exact_up_to = 0, .theta = 0.5});
  double norm = 0;
  double error = 0;
  for (size_t i = 0; i < map.size(); ++i) {
    EXPECT_NEAR(same.gradient[i], exact.gradient[i], 1e-6);
    norm += std::pow(static_cast<double>(exact.gradient[i]), 2);
    error += std::pow(static_cast<double>(close.gradient[i] - exact.gradient[i]), 2);
  }
  EXPECT_LT(std::sqrt(error / norm), 0.02);
  EXPECT_GT(error, 0);
  EXPECT_NEAR(close.divergence, exact.divergence, 0.01);
}

TEST(Tsne, DecreasesTheDivergenceAndKeepsClustersApart) {
  Machine m;
  const Points points = clusters(240, 10, 6, 3);
  for (const int64_t exact_up_to : {2000, 0}) {
    const TsneMap map = tsne(*m.backend, m.pool, points.view(),
                             {.perplexity = 15, .iterations = 400, .exaggerated = 150, .exact_up_to = exact_up_to});
    ASSERT_EQ(map.divergences.size(), 400U);
    EXPECT_LT(map.divergences.back(), 0.5 * map.divergences.front());
    for (size_t i = 200; i < 400; i += 25) {
      EXPECT_LE(map.divergences[i], map.divergences[i - 25] + 1e-3) << i;
    }
    EXPECT_GT(agreement(m, map, points.labels), 0.98);
  }
}

TEST(Tsne, TheSameBitsForASeedOnAnyNumberOfThreads) {
  const Points points = clusters(150, 6, 3, 2);
  for (const int64_t exact_up_to : {2000, 0}) {
    TsneOptions options{.iterations = 60, .exaggerated = 30, .exact_up_to = exact_up_to, .seed = 4};
    std::vector<float> first;
    for (const int threads : {1, 2, 5}) {
      Machine m(threads);
      const TsneMap map = tsne(*m.backend, m.pool, points.view(), options);
      first = first.empty() ? map.positions : first;
      EXPECT_EQ(map.positions, first) << threads;
    }
    options.seed = 5;
    Machine m;
    EXPECT_NE(tsne(*m.backend, m.pool, points.view(), options).positions, first);
  }
}

TEST(Tsne, StaysFiniteWhenAllPointsAreOne) {
  Machine m;
  const std::vector<float> values(20 * 3, 1.0F);
  const TsneMap map = tsne(*m.backend, m.pool, {values.data(), 20, 3}, {.iterations = 300});
  EXPECT_TRUE(std::all_of(map.positions.begin(), map.positions.end(), [](float v) { return std::isfinite(v); }));
}

TEST(Tsne, SaysWhatIsWrong) {
  Machine m;
  const Points points = clusters(9, 3, 3, 2);
  const auto run = [&](Embeddings of, const TsneOptions& options) { return tsne(*m.backend, m.pool, of, options); };
  EXPECT_ERROR(run({points.values.data(), 3, 3}, {}), ErrorCode::usage, {"four points at least, got 3"});
  EXPECT_ERROR(run(points.view(), {.theta = 0.8}), ErrorCode::usage, {"theta", "0.8"});
  EXPECT_ERROR(run(points.view(), {.perplexity = 0.5}), ErrorCode::usage, {"perplexity", "0.5"});
  EXPECT_ERROR(run(points.view(), {.iterations = 0}), ErrorCode::usage, {"iteration"});
  Points hole = points;
  hole.values[4] = NAN;
  EXPECT_ERROR(run(hole.view(), {}), ErrorCode::data, {"points"});
}

}  // namespace
}  // namespace gle::test
