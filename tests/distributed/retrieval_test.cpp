// What ranks do together has the bits of what one process does alone.
#include <gtest/gtest.h>

#include "retrieval/clustering.h"
#include "retrieval/evaluate.h"
#include "retrieval/nearest.h"
#include "retrieval/rerank.h"
#include "tests/distributed/ranks.h"
#include "tests/retrieval/support.h"

namespace gle::test {
namespace {

// Blocks of 960 rows: some for each of three ranks, and one that is cut short.
constexpr int64_t kGallery = 2100;
constexpr int64_t kQueries = 1000;

TEST(RetrievalOfRanks, SharesFillInWhatTheOthersHave) {
  Comm& comm = all_ranks();
  for (const int64_t rows : {0, 1, 5, 6, 7, 23}) {
    const Shares shares(&comm, rows, 3);
    std::vector<int64_t> found(static_cast<size_t>(2 * rows), -1);
    std::vector<std::vector<int32_t>> lists(static_cast<size_t>(rows));
    int64_t place = 0;
    for (const int64_t row : shares.own()) {
      EXPECT_EQ(shares.place(row), place++);
      found[static_cast<size_t>(2 * row)] = row;
      found[static_cast<size_t>(2 * row + 1)] = 1000 + row;
      lists[static_cast<size_t>(row)].assign(static_cast<size_t>(row % 4), static_cast<int32_t>(row));
    }
    shares.gather(found);
    shares.gather(lists);
    for (int64_t row = 0; row < rows; ++row) {
      EXPECT_EQ(found[static_cast<size_t>(2 * row)], row);
      EXPECT_EQ(found[static_cast<size_t>(2 * row + 1)], 1000 + row);
      EXPECT_EQ(lists[static_cast<size_t>(row)],
                std::vector<int32_t>(static_cast<size_t>(row % 4), static_cast<int32_t>(row)));
    }
  }
}

TEST(RetrievalOfRanks, Nearest) {
  Machine m;
  const Matrix queries = random_matrix(kQueries, 24, 1);
  const Matrix gallery = random_matrix(kGallery, 24, 2);
  Distances distances(*m.backend, m.pool, queries.view(), gallery.view());
  const Neighbours alone = nearest(distances, 7, Self::included);
  const Neighbours together = nearest(distances, 7, Self::included, &all_ranks());
  EXPECT_EQ(alone.indices, together.indices);
  EXPECT_EQ(alone.distances, together.distances);
}

std::vector<float> final_distances(const Embeddings& queries, const Embeddings& gallery, const RerankOptions& options,
                                   Comm* comm) {
  Machine m;
  Rerank rerank(*m.backend, m.pool, queries, gallery, options, comm);
  std::vector<float> result(static_cast<size_t>(rerank.queries() * rerank.gallery()));
  rerank.for_each_row([&](int64_t query, std::span<float> row) {
    std::copy(row.begin(), row.end(), result.begin() + query * rerank.gallery());
  });
  rerank.shares().gather(result);
  return result;
}

TEST(RetrievalOfRanks, Rerank) {
  const Matrix queries = random_matrix(kQueries, 16, 3);
  const Matrix gallery = random_matrix(kGallery, 16, 4);
  for (const int64_t k2 : {1, 6}) {
    const RerankOptions options{.k1 = 20, .k2 = k2};
    EXPECT_EQ(final_distances(queries.view(), gallery.view(), options, nullptr),
              final_distances(queries.view(), gallery.view(), options, &all_ranks()));
  }
  const RerankOptions doubled{.duplicate_self = true};
  EXPECT_EQ(final_distances({}, queries.view(), doubled, nullptr),
            final_distances({}, queries.view(), doubled, &all_ranks()));
}

TEST(RetrievalOfRanks, Clusters) {
  Machine m;
  const Matrix points = random_matrix(kGallery, 16, 5);
  KMeansOptions options{.clusters = 30, .iterations = 10, .restarts = 2};
  const KMeansResult alone = k_means(*m.backend, m.pool, points.view(), options);
  options.comm = &all_ranks();
  const KMeansResult together = k_means(*m.backend, m.pool, points.view(), options);
  EXPECT_EQ(alone.assignment, together.assignment);
  EXPECT_EQ(alone.centres, together.centres);
  EXPECT_EQ(alone.inertia, together.inertia);
}

TEST(RetrievalOfRanks, Evaluation) {
  Machine m;
  const Matrix queries = random_matrix(kQueries, 16, 6);
  const Matrix gallery = random_matrix(kGallery, 16, 7);
  const Identities identities{.query_labels = random_labels(kQueries, 40, 8),
                              .gallery_labels = random_labels(kGallery, 40, 9)};
  for (const bool reranked : {false, true}) {
    EvaluateOptions options{.clustering_restarts = reranked ? 0 : 1};
    if (reranked) {
      options.rerank.emplace();
    }
    const Evaluation alone = evaluate(*m.backend, m.pool, queries.view(), gallery.view(), identities, options);
    options.comm = &all_ranks();
    const Evaluation together = evaluate(*m.backend, m.pool, queries.view(), gallery.view(), identities, options);
    EXPECT_EQ(alone.metrics.recall, together.metrics.recall);
    EXPECT_EQ(alone.metrics.map, together.metrics.map);
    EXPECT_EQ(alone.metrics.minp, together.metrics.minp);
    EXPECT_EQ(alone.metrics.map_at_r, together.metrics.map_at_r);
    EXPECT_EQ(alone.nmi, together.nmi);
  }
}

}  // namespace
}  // namespace gle::test
