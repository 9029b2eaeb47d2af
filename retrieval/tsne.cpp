#include "retrieval/tsne.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/error.h"
#include "engine/math/philox.h"
#include "retrieval/nearest.h"
#include "retrieval/quad_tree.h"

namespace gle {

namespace {

constexpr int64_t kPointsAtOnce = 64;  // a piece of work; the sums over points are taken in order afterwards

template <class Body>
void for_each_point(ThreadPool& pool, int64_t points, const Body& body) {
  pool.parallel_for((points + kPointsAtOnce - 1) / kPointsAtOnce, [&](int64_t piece, int) {
    for (int64_t i = piece * kPointsAtOnce; i < std::min(points, (piece + 1) * kPointsAtOnce); ++i) {
      body(i);
    }
  });
}

// exp(-beta d_j), normalised, with the beta that gives the wanted perplexity.
void conditional(std::span<const float> squared_distances, double perplexity, double* p) {
  const double least = *std::min_element(squared_distances.begin(), squared_distances.end());
  const double wanted = std::log(perplexity);
  double beta = 1;
  double low = 0;
  double high = INFINITY;
  for (int round = 0; round < 200; ++round) {
    double sum = 0;
    double weighted = 0;
    for (size_t j = 0; j < squared_distances.size(); ++j) {
      const double distance = squared_distances[j] - least;
      p[j] = std::exp(-beta * distance);
      sum += p[j];
      weighted += p[j] * distance;
    }
    const double entropy = std::log(sum) + beta * weighted / sum;
    for (size_t j = 0; j < squared_distances.size(); ++j) {
      p[j] /= sum;
    }
    if (std::abs(entropy - wanted) < 1e-6) {
      return;
    }
    (entropy > wanted ? low : high) = beta;
    beta = std::isinf(high) ? beta * 2 : (low + high) / 2;
  }
}

double fitting_perplexity(double wanted, int64_t points) {
  return std::max(1.0, std::min(wanted, static_cast<double>(points - 1) / 3));
}

struct Repulsion {
  double q = 0;  // sum of the unnormalised q of one point
  double x = 0, y = 0;
};

// All pairs. The coordinates are padded with points so far away that they count for nothing.
class AllPairs {
 public:
  explicit AllPairs(std::span<const float> map) {
    constexpr float kFar = 1e15F;
    const size_t points = map.size() / 2;
    const size_t room = (points + kLanes - 1) / kLanes * kLanes;
    x_.assign(room, kFar);
    y_.assign(room, kFar);
    for (size_t i = 0; i < points; ++i) {
      x_[i] = map[2 * i];
      y_[i] = map[2 * i + 1];
    }
  }

  Repulsion of(size_t i) const {
    std::array<float, kLanes> q{};
    std::array<float, kLanes> fx{};
    std::array<float, kLanes> fy{};
    for (size_t j = 0; j < x_.size(); j += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const float dx = x_[i] - x_[j + lane];
        const float dy = y_[i] - y_[j + lane];
        const float each = 1.0F / (1.0F + dx * dx + dy * dy);
        q[lane] += each;
        fx[lane] += each * each * dx;
        fy[lane] += each * each * dy;
      }
    }
    Repulsion sum{.q = -1};  // less the point itself
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sum.q += static_cast<double>(q[lane]);
      sum.x += static_cast<double>(fx[lane]);
      sum.y += static_cast<double>(fy[lane]);
    }
    return sum;
  }

 private:
  static constexpr size_t kLanes = 16;
  std::vector<float> x_, y_;
};

std::vector<Repulsion> repulsions(ThreadPool& pool, std::span<const float> map, const TsneOptions& options) {
  const auto points = static_cast<int64_t>(map.size() / 2);
  std::vector<Repulsion> result(map.size() / 2);
  if (points <= options.exact_up_to) {
    const AllPairs pairs(map);
    for_each_point(pool, points, [&](int64_t i) { result[static_cast<size_t>(i)] = pairs.of(static_cast<size_t>(i)); });
    return result;
  }
  QuadTree tree;
  tree.build(map);
  for_each_point(pool, points, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    const QuadTree::Sums sums = tree.repulsion(map[2 * at], map[2 * at + 1], options.theta);
    result[at] = {sums.q, sums.x, sums.y};
  });
  return result;
}

// Two independent normal numbers for every point.
std::vector<float> random_map(int64_t points, uint64_t seed) {
  constexpr double kSpread = 1e-4;
  std::vector<float> map(static_cast<size_t>(points) * 2);
  const RandomKey key{.seed = seed, .stream = 0x74736E65};
  for (size_t i = 0; i < map.size(); i += 2) {
    const double radius = kSpread * std::sqrt(-2 * std::log(1 - static_cast<double>(uniform(key, i))));
    const double angle = 2 * M_PI * static_cast<double>(uniform(key, i + 1));
    map[i] = static_cast<float>(radius * std::cos(angle));
    map[i + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return map;
}

}  // namespace

Affinities affinities(Backend& backend, ThreadPool& pool, Embeddings points, double perplexity) {
  check(points, "points");
  require(points.rows >= 4, "tsne", "needs four points at least, got ", points.rows);
  require(perplexity >= 1, "tsne", "the perplexity must be at least 1, got ", perplexity);
  const double fitting = fitting_perplexity(perplexity, points.rows);
  const int64_t k = std::min(points.rows - 1, static_cast<int64_t>(std::ceil(3 * fitting)));
  Distances distances(backend, pool, points, points);
  const Neighbours neighbours = nearest(distances, k, Self::excluded);
  std::vector<double> p(neighbours.indices.size());
  for_each_point(pool, points.rows, [&](int64_t i) {
    const std::span<const float> row(neighbours.distances.data() + i * k, static_cast<size_t>(k));
    conditional(row, fitting, p.data() + i * k);
  });

  // Both directions of every pair, by rows, then equal ones joined.
  std::vector<std::vector<std::pair<int32_t, double>>> rows(static_cast<size_t>(points.rows));
  const double share = 0.5 / static_cast<double>(points.rows);
  for (int64_t i = 0; i < points.rows; ++i) {
    for (int64_t n = 0; n < k; ++n) {
      const auto at = static_cast<size_t>(i * k + n);
      const int32_t j = neighbours.indices[at];
      rows[static_cast<size_t>(i)].emplace_back(j, p[at] * share);
      rows[static_cast<size_t>(j)].emplace_back(static_cast<int32_t>(i), p[at] * share);
    }
  }
  Affinities result;
  result.begins.push_back(0);
  for (auto& row : rows) {
    std::sort(row.begin(), row.end());
    for (size_t e = 0; e < row.size(); ++e) {
      const bool both = e + 1 < row.size() && row[e + 1].first == row[e].first;
      result.others.push_back(row[e].first);
      result.values.push_back(static_cast<float>(row[e].second + (both ? row[e + 1].second : 0)));
      e += both ? 1 : 0;
    }
    result.begins.push_back(static_cast<int64_t>(result.others.size()));
  }
  return result;
}

MapForces map_forces(ThreadPool& pool, const Affinities& p, std::span<const float> map, double exaggeration,
                     const TsneOptions& options) {
  const int64_t points = p.points();
  const std::vector<Repulsion> repelled = repulsions(pool, map, options);
  double z = 0;
  for (const Repulsion& point : repelled) {
    z += point.q;
  }
  MapForces result{.divergence = 0, .gradient = std::vector<float>(map.size())};
  std::vector<double> costs(static_cast<size_t>(points));
  for_each_point(pool, points, [&](int64_t point) {
    const auto i = static_cast<size_t>(point);
    double x = 0;
    double y = 0;
    for (int64_t e = p.begins[i]; e < p.begins[i + 1]; ++e) {
      const auto j = static_cast<size_t>(p.others[static_cast<size_t>(e)]);
      const double dx = static_cast<double>(map[2 * i]) - static_cast<double>(map[2 * j]);
      const double dy = static_cast<double>(map[2 * i + 1]) - static_cast<double>(map[2 * j + 1]);
      const double distance = 1 + dx * dx + dy * dy;
      const double pij = p.values[static_cast<size_t>(e)];
      x += pij / distance * dx;
      y += pij / distance * dy;
      costs[i] += pij > 0 ? pij * std::log(pij * distance) : 0;
    }
    result.gradient[2 * i] = static_cast<float>(4 * (exaggeration * x - repelled[i].x / z));
    result.gradient[2 * i + 1] = static_cast<float>(4 * (exaggeration * y - repelled[i].y / z));
  });
  for (const double cost : costs) {
    result.divergence += cost;
  }
  result.divergence += std::log(z);
  return result;
}

TsneMap tsne(Backend& backend, ThreadPool& pool, Embeddings points, const TsneOptions& options) {
  require(options.theta >= 0 && options.theta <= 0.7, "tsne", "theta must be in [0, 0.7], got ", options.theta);
  require(options.iterations >= 1 && options.exaggerated >= 0, "tsne", "needs at least one iteration, got ",
          options.iterations);
  const Affinities p = affinities(backend, pool, points, options.perplexity);
  const double rate = options.learning_rate > 0
                          ? options.learning_rate
                          : std::max(50.0, static_cast<double>(points.rows) / options.exaggeration / 4);
  TsneMap result{.positions = random_map(points.rows, options.seed), .divergences = {}};
  std::vector<float>& map = result.positions;
  std::vector<double> velocity(map.size(), 0);
  std::vector<double> gains(map.size(), 1);
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    const bool early = iteration < options.exaggerated;
    const MapForces forces = map_forces(pool, p, map, early ? options.exaggeration : 1, options);
    const double momentum = early ? 0.5 : 0.8;
    double centre[2] = {0, 0};
    for (size_t i = 0; i < map.size(); ++i) {
      const double slope = forces.gradient[i];
      gains[i] = std::max(0.01, (slope > 0) != (velocity[i] > 0) ? gains[i] + 0.2 : gains[i] * 0.8);
      velocity[i] = momentum * velocity[i] - rate * gains[i] * slope;
      map[i] = static_cast<float>(static_cast<double>(map[i]) + velocity[i]);
      centre[i % 2] += static_cast<double>(map[i]) / static_cast<double>(points.rows);
    }
    for (size_t i = 0; i < map.size(); ++i) {
      map[i] = static_cast<float>(static_cast<double>(map[i]) - centre[i % 2]);
    }
    result.divergences.push_back(forces.divergence);
    options.progress(iteration + 1);
  }
  return result;
}

}  // namespace gle
