// Retrieval at the size of the field's data sets, on random clusters that bench/peers/retrieval.py reads too:
//   gle-bench-retrieval make FILE.npy ROWS DIMENSIONS CLASSES     writes embeddings; row i is of class i mod CLASSES
//   gle-bench-retrieval recall FILE.npy CLASSES                   Recall@1,10,100,1000 and mAP of all against all
//   gle-bench-retrieval rerank FILE.npy CLASSES K1 K2 LAMBDA      the same after re-ranking
//   gle-bench-retrieval pairs FILE.npy QUERIES K1 K2 LAMBDA OUT.npy   the first rows query the rest; some distances
//   gle-bench-retrieval search FILE.npy QUERIES K                 the first rows look for their neighbours in the rest
//   gle-bench-retrieval kmeans FILE.npy CLUSTERS ITERATIONS       seconds of one iteration
// Prints seconds, the process's largest size, and the figures, one line of words.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/machine.h"
#include "engine/error.h"
#include "engine/math/philox.h"
#include "models/files/npy.h"
#include "retrieval/clustering.h"
#include "retrieval/distances.h"
#include "retrieval/nearest.h"
#include "retrieval/ranking.h"
#include "retrieval/rerank.h"

namespace gle::bench {

namespace {

struct Points {
  std::vector<float> values;
  Embeddings view;

  explicit Points(const char* path) {
    NpyArray array = read_npy(path);
    require(array.shape.size() == 2, path, "expected rows and columns");
    values = array.floats();
    view = {values.data(), array.shape[0], array.shape[1]};
  }
  Embeddings rows(int64_t begin, int64_t end) const {
    return {values.data() + begin * view.dimensions, end - begin, view.dimensions};
  }
};

double gibibytes() { return peak_mebibytes() / 1024; }

float noise(uint64_t stream, uint64_t i) {
  const RandomKey key{.seed = 7, .stream = stream};
  return uniform(key, 2 * i) + uniform(key, 2 * i + 1) - 1.0F;
}

// Class centres with as much noise around them as lets a share of the neighbours be wrong.
int make(const char* path, int64_t rows, int64_t dimensions, int64_t classes) {
  std::vector<float> values(static_cast<size_t>(rows * dimensions));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t d = 0; d < dimensions; ++d) {
      const auto centre = static_cast<uint64_t>(row % classes * dimensions + d);
      const auto at = static_cast<uint64_t>(row * dimensions + d);
      values[at] = noise(1, centre) + 1.9F * noise(2, at);
    }
  }
  write_npy(path, npy_of(values, {rows, dimensions}));
  return 0;
}

std::vector<int32_t> labels(int64_t rows, int64_t classes) {
  std::vector<int32_t> result(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    result[static_cast<size_t>(row)] = static_cast<int32_t>(row % classes);
  }
  return result;
}

template <class Rows>
RankingMetrics rank(Rows& rows, const Identities& id) {
  const Matches matches(id);
  std::vector<QueryMetrics> queries(id.query_labels.size());
  rows.for_each_row([&](int64_t query, std::span<float> row) {
    queries[static_cast<size_t>(query)] = query_metrics(matches.ranks(query, row));
  });
  const std::vector<int64_t> ks = {1, 10, 100, 1000};
  return summarise(queries, ks);
}

int evaluate(const char* path, int64_t classes, const RerankOptions* rerank) {
  const Points points(path);
  ThreadPool pool;
  const std::vector<int32_t> classes_of_rows = labels(points.view.rows, classes);
  const Identities id{.query_labels = classes_of_rows, .gallery_labels = classes_of_rows, .same_set = true};
  Backend& b = backend();
  RankingMetrics found;
  const double time = seconds([&] {
    if (rerank) {
      Rerank rows(b, pool, Embeddings{}, points.view, *rerank);
      found = rank(rows, id);
    } else {
      Distances rows(b, pool, points.view, points.view);
      found = rank(rows, id);
    }
  });
  std::printf("%.3f %.3f", time, gibibytes());
  for (const double recall : found.recall) {
    std::printf(" %.17g", recall);
  }
  std::printf(" %.17g\n", found.map);
  return 0;
}

int pairs(const char* path, int64_t queries, const RerankOptions& options, const char* out) {
  const Points points(path);
  ThreadPool pool;
  Backend& b = backend();
  std::vector<float> final_distances;
  const double time = seconds([&] {
    Rerank rows(b, pool, points.rows(0, queries), points.rows(queries, points.view.rows), options);
    final_distances.resize(static_cast<size_t>(rows.queries() * rows.gallery()));
    rows.for_each_row([&](int64_t query, std::span<float> row) {
      std::copy(row.begin(), row.end(), final_distances.begin() + query * rows.gallery());
    });
  });
  write_npy(out, npy_of(final_distances, {queries, points.view.rows - queries}));
  std::printf("%.3f %.3f\n", time, gibibytes());
  return 0;
}

int search(const char* path, int64_t queries, int64_t k) {
  const Points points(path);
  ThreadPool pool;
  Backend& b = backend();
  const double time = seconds([&] {
    Distances distances(b, pool, points.rows(0, queries), points.rows(queries, points.view.rows));
    nearest(distances, k, Self::included);
  });
  std::printf("%.3f %.3f\n", time, gibibytes());
  return 0;
}

int kmeans(const char* path, int64_t clusters, int iterations) {
  const Points points(path);
  ThreadPool pool;
  Backend& b = backend();
  const auto run = [&](int count) {
    return seconds([&] { k_means(b, pool, points.view, {.clusters = clusters, .iterations = count, .seed = 1}); });
  };
  const double one = run(1);
  const double many = run(1 + iterations);
  std::printf("%.3f %.3f\n", (many - one) / iterations, gibibytes());
  return 0;
}

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  const auto whole = [&](int i) { return std::strtoll(argv[i], nullptr, 10); };
  const auto options = [&](int i) {
    return RerankOptions{.k1 = whole(i), .k2 = whole(i + 1), .lambda = std::strtof(argv[i + 2], nullptr)};
  };
  if (what == "make" && argc == 6) {
    return make(argv[2], whole(3), whole(4), whole(5));
  }
  if (what == "recall" && argc == 4) {
    return evaluate(argv[2], whole(3), nullptr);
  }
  if (what == "rerank" && argc == 7) {
    const RerankOptions rerank = options(4);
    return evaluate(argv[2], whole(3), &rerank);
  }
  if (what == "pairs" && argc == 8) {
    return pairs(argv[2], whole(3), options(4), argv[7]);
  }
  if (what == "search" && argc == 5) {
    return search(argv[2], whole(3), whole(4));
  }
  if (what == "kmeans" && argc == 5) {
    return kmeans(argv[2], whole(3), static_cast<int>(whole(4)));
  }
  fail(ErrorCode::usage, "expected make, recall, rerank, pairs, search or kmeans and their arguments");
}

}  // namespace

}  // namespace gle::bench

int main(int argc, char** argv) {
  try {
    return gle::bench::main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-bench-retrieval: %s\n", e.what());
    return 2;
  }
}
