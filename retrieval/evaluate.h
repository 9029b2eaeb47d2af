#pragma once

#include <optional>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "engine/backend.h"
#include "engine/comm/comm.h"
#include "engine/thread_pool.h"
#include "retrieval/clustering.h"
#include "retrieval/embeddings.h"
#include "retrieval/ranking.h"
#include "retrieval/rerank.h"

namespace gle {

struct EvaluateOptions {
  std::vector<int64_t> ks = {1, 2, 4, 8};
  std::optional<RerankOptions> rerank = std::nullopt;
  // As many clusters of the gallery as it has labels; 0 restarts: no clustering, and no NMI.
  int clustering_restarts = 0;
  int clustering_iterations = 100;
  uint64_t seed = 0;
  // Ranks that share the work; all get the result. Nothing: no others.
  Comm* comm = nullptr;
};

struct Evaluation {
  RankingMetrics metrics;
  std::vector<QueryMetrics> queries;
  std::optional<double> nmi;
};

// What a data set says of its queries and its gallery.
Identities identities_of(const data::Dataset& data, std::span<const uint32_t> queries,
                         std::span<const uint32_t> gallery);

// Ranks the gallery for every query. With identities.same_set the queries are the gallery and need not be given.
Evaluation evaluate(Backend& backend, ThreadPool& pool, Embeddings queries, Embeddings gallery,
                    const Identities& identities, const EvaluateOptions& options);

}  // namespace gle
