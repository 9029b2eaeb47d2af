#include "retrieval/clustering.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "engine/error.h"
#include "engine/math/philox.h"
#include "retrieval/distances.h"
#include "retrieval/row_kernels.h"
#include "retrieval/shares.h"

namespace gle {

namespace {

// Seeds drawn between two updates of the distances: with thousands of clusters, one matrix product for many seeds
// instead of a pass over all points for each.
int64_t seeds_at_once(int64_t clusters) { return clusters <= 256 ? 1 : clusters / 128; }

class Lloyd {
 public:
  Lloyd(Backend& backend, ThreadPool& pool, Embeddings points, const KMeansOptions& options, uint64_t stream)
      : backend_(backend),
        pool_(pool),
        points_(points),
        options_(options),
        key_{.seed = options.seed, .stream = stream},
        nearest_(static_cast<size_t>(points.rows), std::numeric_limits<float>::infinity()) {
    result_.assignment.assign(static_cast<size_t>(points.rows), 0);
  }

  KMeansResult run() {
    seed();
    for (result_.iterations = 1; result_.iterations <= options_.iterations; ++result_.iterations) {
      const bool moved = assign();
      if (!moved && result_.iterations > 1) {
        break;
      }
      update_centres();
    }
    result_.iterations = std::min(result_.iterations, options_.iterations);
    assign();
    result_.inertia = 0;
    for (const float distance : nearest_) {
      result_.inertia += distance;
    }
    return std::move(result_);
  }

 private:
  void append_centre(int64_t point) {
    const auto row = points_[point];
    result_.centres.insert(result_.centres.end(), row.begin(), row.end());
  }

  Embeddings centres(int64_t begin = 0) const {
    const int64_t count = static_cast<int64_t>(result_.centres.size()) / points_.dimensions;
    return {result_.centres.data() + begin * points_.dimensions, count - begin, points_.dimensions};
  }

  // Each seed is a point drawn with a probability proportional to its squared distance from the seeds before.
  void seed() {
    uint64_t draws = 0;
    append_centre(
        std::min(points_.rows - 1, static_cast<int64_t>(uniform(key_, draws++) * static_cast<float>(points_.rows))));
    int64_t done = 0;
    std::vector<double> cumulative(nearest_.size());
    for (int64_t count = 1; count < options_.clusters; count = centres().rows) {
      Distances distances(backend_, pool_, points_, centres(done));
      done = count;
      for_each_own_row(distances, [&](int64_t point, std::span<float> row) {
        float& closest = nearest_[static_cast<size_t>(point)];
        closest = std::min(closest, row[static_cast<size_t>(kernels_.smallest(row.data(), std::ssize(row)))]);
      }).gather(nearest_);
      double sum = 0;
      for (size_t i = 0; i < nearest_.size(); ++i) {
        cumulative[i] = sum += nearest_[i];
      }
      const int64_t wanted = std::min(seeds_at_once(options_.clusters), options_.clusters - count);
      for (int64_t i = 0; i < wanted; ++i) {
        const double draw = static_cast<double>(uniform(key_, draws++)) * sum;
        const auto at = std::upper_bound(cumulative.begin(), cumulative.end(), draw) - cumulative.begin();
        append_centre(std::min<int64_t>(at, points_.rows - 1));
      }
    }
  }

  bool assign() {
    Distances distances(backend_, pool_, points_, centres());
    const std::vector<int32_t> before = result_.assignment;
    const Shares shares = for_each_own_row(distances, [&](int64_t point, std::span<float> row) {
      const auto cluster = static_cast<int32_t>(kernels_.smallest(row.data(), std::ssize(row)));
      nearest_[static_cast<size_t>(point)] = row[static_cast<size_t>(cluster)];
      result_.assignment[static_cast<size_t>(point)] = cluster;
    });
    shares.gather(nearest_);
    shares.gather(result_.assignment);
    return result_.assignment != before;
  }

  // Of this rank; what the others found is to be gathered by the shares returned.
  Shares for_each_own_row(Distances& distances, const Distances::Visit& visit) const {
    const Shares shares(options_.comm, points_.rows, distances.rows_at_once());
    shares.for_each_own([&](int64_t begin, int64_t end) { distances.for_each_row(begin, end, visit); });
    return shares;
  }

  void update_centres() {
    const auto dimensions = static_cast<size_t>(points_.dimensions);
    const auto clusters = static_cast<size_t>(options_.clusters);
    std::vector<double> sums(clusters * dimensions, 0);
    std::vector<int64_t> counts(clusters, 0);
    for (int64_t point = 0; point < points_.rows; ++point) {
      const auto cluster = static_cast<size_t>(result_.assignment[static_cast<size_t>(point)]);
      ++counts[cluster];
      kernels_.accumulate(points_[point].data(), points_.dimensions, sums.data() + cluster * dimensions);
    }
    for (size_t cluster = 0; cluster < clusters; ++cluster) {
      float* centre = result_.centres.data() + cluster * dimensions;
      if (counts[cluster] == 0) {
        const auto furthest = std::max_element(nearest_.begin(), nearest_.end());
        const auto row = points_[furthest - nearest_.begin()];
        std::copy(row.begin(), row.end(), centre);
        *furthest = 0;
        continue;
      }
      for (size_t d = 0; d < dimensions; ++d) {
        centre[d] = static_cast<float>(sums[cluster * dimensions + d] / static_cast<double>(counts[cluster]));
      }
    }
  }

  Backend& backend_;
  ThreadPool& pool_;
  const RowKernels& kernels_ = row_kernels();
  Embeddings points_;
  KMeansOptions options_;
  RandomKey key_;
  std::vector<float> nearest_;  // squared distance of every point to its centre
  KMeansResult result_;
};

double entropy(const std::map<int32_t, double>& counts, double total) {
  double sum = 0;
  for (const auto& [label, count] : counts) {
    sum -= count / total * std::log(count / total);
  }
  return sum;
}

}  // namespace

KMeansResult k_means(Backend& backend, ThreadPool& pool, Embeddings points, const KMeansOptions& options) {
  require(options.clusters >= 1 && options.clusters <= points.rows, "k_means", options.clusters, " clusters of ",
          points.rows, " points");
  require(options.iterations >= 1 && options.restarts >= 1, "k_means",
          "iterations and restarts must be at least 1, got ", options.iterations, " and ", options.restarts);
  KMeansResult best;
  for (int restart = 0; restart < options.restarts; ++restart) {
    KMeansResult result = Lloyd(backend, pool, points, options, static_cast<uint64_t>(restart)).run();
    if (restart == 0 || result.inertia < best.inertia) {
      best = std::move(result);
    }
  }
  return best;
}

double normalised_mutual_information(std::span<const int32_t> a, std::span<const int32_t> b, NmiMean mean) {
  require(!a.empty() && a.size() == b.size(), "nmi", "two labelings of the same points are needed, got ", a.size(),
          " and ", b.size());
  std::map<int32_t, double> in_a;
  std::map<int32_t, double> in_b;
  std::map<std::pair<int32_t, int32_t>, double> in_both;
  for (size_t i = 0; i < a.size(); ++i) {
    ++in_a[a[i]];
    ++in_b[b[i]];
    ++in_both[{a[i], b[i]}];
  }
  const auto total = static_cast<double>(a.size());
  const double entropy_a = entropy(in_a, total);
  const double entropy_b = entropy(in_b, total);
  double information = 0;
  for (const auto& [pair, count] : in_both) {
    information += count / total * std::log(count * total / (in_a[pair.first] * in_b[pair.second]));
  }
  const double norm = mean == NmiMean::arithmetic ? (entropy_a + entropy_b) / 2 : std::sqrt(entropy_a * entropy_b);
  if (norm == 0) {
    return entropy_a == entropy_b ? 1 : 0;
  }
  return std::clamp(information / norm, 0.0, 1.0);
}

}  // namespace gle
