#include "training/evaluation.h"

#include <algorithm>
#include <numeric>

#include "data/random.h"
#include "engine/error.h"
#include "retrieval/distances.h"
#include "retrieval/embed.h"
#include "retrieval/evaluate.h"

namespace gle {

std::vector<uint32_t> training_sample(const data::ClassMembers& members, int64_t images, uint64_t seed) {
  std::vector<size_t> classes(members.of_class.size());
  std::iota(classes.begin(), classes.end(), size_t{0});
  data::Random random(seed, 0, data::Purpose::sample);
  random.shuffle(classes);
  std::vector<uint32_t> items;
  for (size_t i = 0; i < classes.size(); ++i) {
    const std::vector<uint32_t>& more = members.of_class[classes[i]];
    if (i >= 2 && std::ssize(items) + std::ssize(more) > images) {
      break;
    }
    items.insert(items.end(), more.begin(), more.end());
  }
  std::sort(items.begin(), items.end());
  return items;
}

int64_t queries_without_match(const data::Dataset& data) {
  const std::vector<uint32_t> queries = data.query_items();
  const Identities identities = identities_of(data, queries, data.gallery_items());
  const Matches matches(identities);
  int64_t without = 0;
  for (int64_t query = 0; query < std::ssize(queries); ++query) {
    without += matches.has_match(query) ? 0 : 1;
  }
  return without;
}

Evaluator::Evaluator(Backend& backend, std::shared_ptr<const data::Dataset> data, const EvaluationOptions& options)
    : backend_(backend), data_(std::move(data)), options_(options), pool_(options.threads) {}

std::optional<EmbeddedItems> Evaluator::embed(Network& network, std::span<const uint32_t> items, const Stop& stop) {
  const EmbeddingModel model{.network = &network, .transform = options_.transform};
  EmbeddedItems result{.items = {}, .values = {}, .labels = {}, .dimensions = network.embedding_channels()};
  result.values.reserve(items.size() * static_cast<size_t>(result.dimensions));
  const bool complete = gle::embed(backend_, {&model, 1}, data_, items,
                                   {.decode = options_.decode,
                                    .batch = static_cast<int>(options_.batch),
                                    .workers = options_.workers,
                                    .comm = options_.comm,
                                    .bad_list = options_.bad_list},
                                   [&](const EmbeddedBatch& batch) {
                                     for (int64_t i = 0; i < batch.rows.rows; ++i) {
                                       const auto row = batch.rows[i];
                                       if (!is_left_out(row)) {
                                         result.items.push_back(items[static_cast<size_t>(batch.first + i)]);
                                         result.values.insert(result.values.end(), row.begin(), row.end());
                                       }
                                     }
                                     return !(stop && stop());
                                   });
  if (!complete) {
    return std::nullopt;
  }
  if (result.items.empty() && !items.empty()) {
    fail(ErrorCode::data, data_->name_of(data_->items[items.front()]), ": cannot be read, and none of the other ",
         items.size() - 1, " images to embed can");
  }
  for (const uint32_t item : result.items) {
    result.labels.push_back(data_->items[item].label);
  }
  return result;
}

std::optional<RankingMetrics> Evaluator::run(Network& network, const Stop& stop) {
  return rank(network, data_->query_items(), data_->gallery_items(), stop);
}

std::optional<RankingMetrics> Evaluator::rank(Network& network, std::span<const uint32_t> queries,
                                              std::span<const uint32_t> gallery, const Stop& stop) {
  const bool same = std::ranges::equal(queries, gallery);
  const auto gallery_rows = embed(network, gallery, stop);
  const auto query_rows = same || !gallery_rows ? gallery_rows : embed(network, queries, stop);
  if (!query_rows) {
    return std::nullopt;
  }
  Identities identities = identities_of(*data_, query_rows->items, gallery_rows->items);
  identities.same_set = same;
  const auto rows = [](const EmbeddedItems& items) {
    return Embeddings{items.values.data(), static_cast<int64_t>(items.labels.size()), items.dimensions};
  };
  Distances distances(backend_, pool_, rows(*query_rows), rows(*gallery_rows));
  std::vector<int64_t> ks = options_.ks;
  std::erase_if(ks, [&](int64_t k) { return k > std::max<int64_t>(1, others_of(identities)); });
  return summarise(rank_all(distances, Matches(identities), options_.comm), ks);
}

}  // namespace gle
