#include "retrieval/evaluate.h"

#include <algorithm>
#include <set>

#include "engine/error.h"
#include "retrieval/distances.h"
#include "retrieval/shares.h"

namespace gle {

namespace {

void check(const EvaluateOptions& options, const Embeddings& gallery, const Identities& identities) {
  const int64_t others = gallery.rows - (identities.same_set ? 1 : 0);
  for (const int64_t k : options.ks) {
    require(k >= 1 && k <= others, "evaluate", "Recall@", k, " asked of a gallery of ", others);
  }
}

double nmi_of(Backend& backend, ThreadPool& pool, const Embeddings& gallery, const Identities& identities,
              const EvaluateOptions& options) {
  std::vector<int32_t> labels;
  std::vector<float> values;
  for (int64_t i = 0; i < gallery.rows; ++i) {
    const int32_t label = identities.gallery_labels[static_cast<size_t>(i)];
    if (label != Identities::kJunk && label != Identities::kDistractor) {
      labels.push_back(label);
      values.insert(values.end(), gallery[i].begin(), gallery[i].end());
    }
  }
  if (labels.empty()) {
    fail(ErrorCode::data, "evaluate: the gallery has no label to compare clusters with");
  }
  const Embeddings points{values.data(), static_cast<int64_t>(labels.size()), gallery.dimensions};
  const KMeansResult clusters =
      k_means(backend, pool, points,
              {.clusters = static_cast<int64_t>(std::set<int32_t>(labels.begin(), labels.end()).size()),
               .iterations = options.clustering_iterations,
               .restarts = options.clustering_restarts,
               .seed = options.seed,
               .comm = options.comm});
  return normalised_mutual_information(labels, clusters.assignment);
}

}  // namespace

Identities identities_of(const data::Dataset& data, std::span<const uint32_t> queries,
                         std::span<const uint32_t> gallery) {
  Identities id;
  const auto fill = [&](std::span<const uint32_t> items, std::vector<int32_t>& labels, std::vector<int32_t>& cameras) {
    for (const uint32_t item : items) {
      labels.push_back(data.items[item].label);
      cameras.push_back(data.items[item].camera);
    }
  };
  fill(queries, id.query_labels, id.query_cameras);
  fill(gallery, id.gallery_labels, id.gallery_cameras);
  id.same_set = std::equal(queries.begin(), queries.end(), gallery.begin(), gallery.end());
  if (std::all_of(id.gallery_cameras.begin(), id.gallery_cameras.end(), [](int32_t camera) { return camera < 0; })) {
    id.query_cameras.clear();
    id.gallery_cameras.clear();
  }
  return id;
}

Evaluation evaluate(Backend& backend, ThreadPool& pool, Embeddings queries, Embeddings gallery,
                    const Identities& identities, const EvaluateOptions& options) {
  if (identities.same_set) {
    queries = gallery;
  }
  gle::check(queries, "queries");
  gle::check(gallery, "gallery");
  gle::check(identities, queries.rows, gallery.rows);
  check(options, gallery, identities);
  const Matches matches(identities);
  Evaluation result;
  if (options.rerank) {
    result.queries.resize(static_cast<size_t>(queries.rows));
    Rerank rerank(backend, pool, identities.same_set ? Embeddings{} : queries, gallery, *options.rerank, options.comm);
    rerank.for_each_row([&](int64_t query, std::span<float> row) {
      result.queries[static_cast<size_t>(query)] = query_metrics(matches.ranks(query, row));
    });
    rerank.shares().gather(result.queries);
  } else {
    Distances distances(backend, pool, queries, gallery);
    result.queries = rank_all(distances, matches, options.comm);
  }
  result.metrics = summarise(result.queries, options.ks);
  if (options.clustering_restarts > 0) {
    result.nmi = nmi_of(backend, pool, gallery, identities, options);
  }
  return result;
}

}  // namespace gle
