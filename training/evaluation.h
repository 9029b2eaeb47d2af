#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "data/loader.h"
#include "data/sampler.h"
#include "engine/comm/comm.h"
#include "engine/thread_pool.h"
#include "models/network.h"
#include "retrieval/ranking.h"

namespace gle {

struct EvaluationOptions {
  data::TransformOptions transform = {};
  data::DecodeOptions decode = {};
  int64_t batch = 64;
  int workers = 2;
  int threads = 0;
  std::vector<int64_t> ks = {1};  // those beyond the gallery are left out
  Comm* comm = nullptr;           // ranks that share the work; all get the result
  // Of images that cannot be read, which are then left out; null: they are an error.
  std::shared_ptr<data::BadImageList> bad_list = nullptr;
};

// Embeddings of some items of a data set, in their order; rows x dimensions in host memory.
struct EmbeddedItems {
  std::vector<uint32_t> items;  // that could be read
  std::vector<float> values;
  std::vector<int32_t> labels;
  int64_t dimensions = 0;
};

// Training images of classes that the seed chooses, as many classes as have at most `images` between them (but two).
std::vector<uint32_t> training_sample(const data::ClassMembers& members, int64_t images, uint64_t seed);

// Of a data set's queries, those that nothing in the gallery answers.
int64_t queries_without_match(const data::Dataset& data);

// Ranks a data set's queries against its gallery by the embeddings of a network.
class Evaluator {
 public:
  Evaluator(Backend& backend, std::shared_ptr<const data::Dataset> data, const EvaluationOptions& options);

  // Asked between batches; true, from one rank, ends the work with nothing to show for it.
  using Stop = std::function<bool()>;
  // Nothing if `stop` said so. Throws ErrorCode::data if not one of the items can be read.
  std::optional<RankingMetrics> run(Network& network, const Stop& stop);
  std::optional<RankingMetrics> rank(Network& network, std::span<const uint32_t> queries,
                                     std::span<const uint32_t> gallery, const Stop& stop);
  std::optional<EmbeddedItems> embed(Network& network, std::span<const uint32_t> items, const Stop& stop);

 private:
  Backend& backend_;
  std::shared_ptr<const data::Dataset> data_;
  EvaluationOptions options_;
  ThreadPool pool_;
};

}  // namespace gle
