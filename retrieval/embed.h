#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "data/loader.h"
#include "engine/comm/comm.h"
#include "models/network.h"
#include "retrieval/embeddings.h"

namespace gle {

// A network as it is used here. Several make an ensemble: their embeddings side by side.
struct EmbeddingModel {
  Network* network = nullptr;
  data::TransformOptions transform = {};
  ForwardOptions forward = {};
};

struct EmbedOptions {
  data::DecodeOptions decode = {};
  int batch = 64;
  int workers = 2;
  // Ranks that share the work, batch by batch in turn; every one of them gets every batch. Nothing: no others.
  Comm* comm = nullptr;
  // With a list, images that cannot be read are noted there, and their rows are NaN. Without: they are an error.
  std::shared_ptr<data::BadImageList> bad_list = nullptr;
};

// Whether a row stands for an image that could not be read.
inline bool is_left_out(std::span<const float> row) { return std::isnan(row.front()); }

// Rows [first, first + rows.rows) of the items asked for; both lists last for the call.
struct EmbeddedBatch {
  int64_t first = 0;
  Embeddings rows;
};

// Embeds items of a data set in their order, one batch after the other from `first_batch` on, so that memory does not
// grow with their number. `take` gets every batch; false from it, on one of the ranks, ends the work soon, and embed()
// then returns false. Throws ErrorCode::data for an image that cannot be read (or, with a list, for more than its
// budget), ErrorCode::not_finite for an embedding that is not.
using TakeBatch = std::function<bool(const EmbeddedBatch&)>;
bool embed(Backend& backend, std::span<const EmbeddingModel> models, std::shared_ptr<const data::Dataset> data,
           std::span<const uint32_t> items, const EmbedOptions& options, const TakeBatch& take,
           int64_t first_batch = 0);

// The same by several ways to use all of the models, instead of their own: each image passes through a network once, or
// twice if one of the ways flips. `take` gets a batch for every way.
using TakeBatches = std::function<bool(std::span<const EmbeddedBatch>)>;
bool embed(Backend& backend, std::span<const EmbeddingModel> models, std::span<const ForwardOptions> ways,
           std::shared_ptr<const data::Dataset> data, std::span<const uint32_t> items, const EmbedOptions& options,
           const TakeBatches& take, int64_t first_batch = 0);

// Of all models together.
int64_t embedding_dimensions(std::span<const EmbeddingModel> models);

// Embeddings that own their memory.
struct EmbeddedRows {
  std::vector<float> values;
  int64_t dimensions = 0;

  Embeddings view() const {
    return {values.data(), dimensions == 0 ? 0 : static_cast<int64_t>(values.size()) / dimensions, dimensions};
  }
};

// All of them in memory. `progress` is told how many are done after every batch; false from it ends the work with what
// there is.
EmbeddedRows embed_all(
    Backend& backend, std::span<const EmbeddingModel> models, std::shared_ptr<const data::Dataset> data,
    std::span<const uint32_t> items, const EmbedOptions& options,
    const std::function<bool(int64_t done)>& progress = [](int64_t) { return true; });

}  // namespace gle
