#include "retrieval/evaluate.h"

#include <algorithm>
#include <set>

#include "engine/error.h"
#include "retrieval/distances.h"
#include "retrieval/shares.h"

namespace gle {

namespace {

void check(const EvaluateOptions& options, const Identities& identities) {
  const int64_t others = others_of(identities);
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

// The embeddings and their identities without junk, which re-ranking would take for neighbours.
struct WithoutJunk {
  std::vector<int64_t> queries;  // rows that are left
  std::vector<float> query_values, gallery_values;
  Identities identities;
};

WithoutJunk without_junk(const Embeddings& queries, const Embeddings& gallery, const Identities& id) {
  WithoutJunk left;
  left.identities.same_set = id.same_set;
  std::vector<int32_t> places(static_cast<size_t>(gallery.rows), -1);
  const bool cameras = !id.query_cameras.empty();
  for (int64_t row = 0; row < gallery.rows; ++row) {
    const auto i = static_cast<size_t>(row);
    if (id.gallery_labels[i] != Identities::kJunk) {
      places[i] = static_cast<int32_t>(left.identities.gallery_labels.size());
      left.identities.gallery_labels.push_back(id.gallery_labels[i]);
      left.gallery_values.insert(left.gallery_values.end(), gallery[row].begin(), gallery[row].end());
      if (cameras) {
        left.identities.gallery_cameras.push_back(id.gallery_cameras[i]);
      }
    }
  }
  for (int64_t row = 0; row < queries.rows; ++row) {
    const auto i = static_cast<size_t>(row);
    if (id.query_labels[i] != Identities::kJunk) {
      left.queries.push_back(row);
      left.identities.query_labels.push_back(id.query_labels[i]);
      if (!id.same_set) {
        left.query_values.insert(left.query_values.end(), queries[row].begin(), queries[row].end());
      }
      if (cameras) {
        left.identities.query_cameras.push_back(id.query_cameras[i]);
      }
      if (!id.self.empty()) {
        left.identities.self.push_back(id.self[i] < 0 ? -1 : places[static_cast<size_t>(id.self[i])]);
      }
    }
  }
  return left;
}

std::vector<QueryMetrics> reranked(Backend& backend, ThreadPool& pool, const Embeddings& queries,
                                   const Embeddings& gallery, const Identities& identities,
                                   const EvaluateOptions& options) {
  const Matches matches(identities);
  std::vector<QueryMetrics> result(static_cast<size_t>(queries.rows));
  Rerank rerank(backend, pool, identities.same_set ? Embeddings{} : queries, gallery, *options.rerank, options.comm);
  rerank.for_each_row([&](int64_t query, std::span<float> row) {
    result[static_cast<size_t>(query)] = query_metrics(matches.ranks(query, row));
  });
  rerank.shares().gather(result);
  return result;
}

std::vector<QueryMetrics> reranked_without_junk(Backend& backend, ThreadPool& pool, const Embeddings& queries,
                                                const Embeddings& gallery, const Identities& identities,
                                                const EvaluateOptions& options) {
  const WithoutJunk left = without_junk(queries, gallery, identities);
  std::vector<QueryMetrics> result(static_cast<size_t>(queries.rows));  // junk has no match
  if (left.queries.empty() || left.identities.gallery_labels.empty()) {
    return result;
  }
  const auto rows = [&](const std::vector<float>& values) {
    return Embeddings{values.data(), std::ssize(values) / gallery.dimensions, gallery.dimensions};
  };
  const Embeddings left_gallery = rows(left.gallery_values);
  const std::vector<QueryMetrics> found =
      reranked(backend, pool, identities.same_set ? left_gallery : rows(left.query_values), left_gallery,
               left.identities, options);
  for (size_t i = 0; i < found.size(); ++i) {
    result[static_cast<size_t>(left.queries[i])] = found[i];
  }
  return result;
}

bool has_junk(const Identities& id) {
  const auto has = [](const std::vector<int32_t>& labels) {
    return std::ranges::find(labels, Identities::kJunk) != labels.end();
  };
  return has(id.gallery_labels) || has(id.query_labels);
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
  if (!id.same_set) {
    std::vector<int32_t> places(data.items.size(), -1);
    for (size_t i = 0; i < gallery.size(); ++i) {
      places[gallery[i]] = static_cast<int32_t>(i);
    }
    bool any = false;
    for (const uint32_t item : queries) {
      id.self.push_back(places[item]);
      any |= places[item] >= 0;
    }
    if (!any) {
      id.self.clear();
    }
  }
  forget_unknown_cameras(id);
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
  check(options, identities);
  Evaluation result;
  if (options.rerank) {
    result.queries =
        (has_junk(identities) ? reranked_without_junk : reranked)(backend, pool, queries, gallery, identities, options);
  } else {
    Distances distances(backend, pool, queries, gallery);
    result.queries = rank_all(distances, Matches(identities), options.comm);
  }
  result.metrics = summarise(result.queries, options.ks);
  if (options.clustering_restarts > 0) {
    result.nmi = nmi_of(backend, pool, gallery, identities, options);
  }
  return result;
}

}  // namespace gle
