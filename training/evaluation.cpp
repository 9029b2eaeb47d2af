#include "training/evaluation.h"

#include <algorithm>

#include "engine/error.h"
#include "retrieval/distances.h"

namespace gle {

Evaluator::Evaluator(Backend& backend, std::shared_ptr<const data::Dataset> data, const EvaluationOptions& options)
    : backend_(backend), data_(std::move(data)), options_(options), pool_(options.threads) {}

std::optional<EmbeddedItems> Evaluator::embed(Network& network, std::span<const uint32_t> items, const Stop& stop) {
  data::Loader loader(data_, {.transform = options_.transform,
                              .decode = options_.decode,
                              .workers = options_.workers,
                              .on_bad = data::OnBad::error});
  loader.start(data::plan_in_order(items, static_cast<int>(options_.batch)), 0);
  EmbeddedItems result;
  data::Batch batch;
  while (loader.next(batch)) {
    if (stop && stop()) {
      return std::nullopt;
    }
    Tensor images = batch.images;
    if (images.device() != backend_.device()) {
      images = backend_.new_tensor("images", batch.images.shape());
      backend_.upload(batch.images.data(), images);
    }
    Context ctx{.backend = backend_};
    const Tensor embedding = network.forward(ctx, Var(images), {.with_logits = false}).embedding.value();
    if (result.dimensions == 0) {
      result.dimensions = embedding.channels();
      result.values.reserve(items.size() * static_cast<size_t>(result.dimensions));
    }
    const size_t begin = result.values.size();
    result.values.resize(begin + static_cast<size_t>(embedding.elements()));
    backend_.download(embedding, result.values.data() + begin);
    result.labels.insert(result.labels.end(), batch.labels.begin(), batch.labels.end());
  }
  return result;
}

std::optional<RankingMetrics> Evaluator::run(Network& network, const Stop& stop) {
  const std::vector<uint32_t> queries = data_->query_items();
  const std::vector<uint32_t> gallery = data_->gallery_items();
  const bool same = queries == gallery;
  const auto gallery_rows = embed(network, gallery, stop);
  const auto query_rows = same || !gallery_rows ? gallery_rows : embed(network, queries, stop);
  if (!query_rows) {
    return std::nullopt;
  }
  Identities identities{.query_labels = query_rows->labels, .gallery_labels = gallery_rows->labels, .same_set = same};
  const auto cameras = [&](const std::vector<uint32_t>& items) {
    std::vector<int32_t> list;
    for (const uint32_t item : items) {
      list.push_back(data_->items[item].camera);
    }
    return list;
  };
  if (std::any_of(gallery.begin(), gallery.end(), [&](uint32_t item) { return data_->items[item].camera >= 0; })) {
    identities.query_cameras = cameras(queries);
    identities.gallery_cameras = cameras(gallery);
  }
  const auto rows = [](const EmbeddedItems& items) {
    return Embeddings{items.values.data(), static_cast<int64_t>(items.labels.size()), items.dimensions};
  };
  Distances distances(backend_, pool_, rows(*query_rows), rows(*gallery_rows));
  std::vector<QueryMetrics> each(queries.size());
  const Matches matches(identities);
  distances.for_each_row([&](int64_t query, std::span<float> to) {
    each[static_cast<size_t>(query)] = query_metrics(matches.ranks(query, to));
  });
  return summarise(each, options_.ks);
}

}  // namespace gle
