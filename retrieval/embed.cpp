#include "retrieval/embed.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"

namespace gle {

namespace {

Tensor on_device(Backend& backend, const Tensor& images) {
  if (images.device() == backend.device()) {
    return images;
  }
  Tensor copy = backend.new_tensor("images", images.shape());
  backend.upload(images.data(), copy);
  return copy;
}

using Ways = std::vector<ForwardOptions>;

// A batch of images by one of the ways: the embeddings of all models side by side.
struct Rows {
  std::vector<float> values;
  int64_t dimensions = 0;

  void put(const std::vector<float>& part, int64_t rows, int64_t column) {
    const int64_t width = static_cast<int64_t>(part.size()) / rows;
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(part.data() + row * width, width, values.data() + row * dimensions + column);
    }
  }
};

void check_finite(const data::Dataset& data, std::span<const uint32_t> items, const Embeddings& rows) {
  for (size_t i = 0; i < items.size(); ++i) {
    const auto row = rows[static_cast<int64_t>(i)];
    if (!std::all_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); })) {
      fail(ErrorCode::not_finite, data.name_of(data.items[items[i]]), ": its embedding is not finite");
    }
  }
}

// Every model by as many ways as the others, which may be other ways.
bool embed_by(Backend& backend, std::span<const EmbeddingModel> models, std::span<const Ways> ways,
              std::shared_ptr<const data::Dataset> data, std::span<const uint32_t> items, const EmbedOptions& options,
              const TakeBatches& take, int64_t first_batch) {
  require(!models.empty() && options.batch >= 1, "embed", "needs a network and a batch of at least 1, got ",
          models.size(), " and ", options.batch);
  const data::EpochPlan plan = data::plan_in_order(items, options.batch);
  std::vector<std::unique_ptr<data::Loader>> loaders;
  for (const EmbeddingModel& model : models) {
    loaders.push_back(std::make_unique<data::Loader>(data, data::LoaderOptions{.transform = model.transform,
                                                                               .decode = options.decode,
                                                                               .workers = options.workers,
                                                                               .on_bad = data::OnBad::error}));
    loaders.back()->start(plan, 0, first_batch);
  }

  const int64_t dimensions = embedding_dimensions(models);
  std::vector<Rows> rows(ways.front().size(), Rows{{}, dimensions});
  std::vector<EmbeddedBatch> done(rows.size());
  std::vector<float> part;
  for (int64_t batch_index = first_batch; batch_index < plan.batches(); ++batch_index) {
    const auto of_batch = plan.of_batch(batch_index);
    const auto count = static_cast<int64_t>(of_batch.size());
    for (Rows& of_way : rows) {
      of_way.values.resize(of_batch.size() * static_cast<size_t>(dimensions));
    }
    int64_t column = 0;
    for (size_t m = 0; m < models.size(); ++m) {
      data::Batch batch;
      invariant(loaders[m]->next(batch), "the loader ends before its plan");
      Context ctx{.backend = backend};
      const std::vector<Var> found = models[m].network->embeddings(ctx, Var(on_device(backend, batch.images)), ways[m]);
      for (size_t way = 0; way < found.size(); ++way) {
        part.resize(static_cast<size_t>(found[way].value().elements()));
        backend.download(found[way].value(), part.data());
        rows[way].put(part, count, column);
      }
      column += models[m].network->embedding_channels();
    }
    for (size_t way = 0; way < rows.size(); ++way) {
      done[way] = {batch_index * options.batch, {rows[way].values.data(), count, dimensions}};
      check_finite(*data, of_batch, done[way].rows);
    }
    if (!take(done)) {
      return false;
    }
  }
  return true;
}

}  // namespace

int64_t embedding_dimensions(std::span<const EmbeddingModel> models) {
  int64_t total = 0;
  for (const EmbeddingModel& model : models) {
    total += model.network->embedding_channels();
  }
  return total;
}

bool embed(Backend& backend, std::span<const EmbeddingModel> models, std::span<const ForwardOptions> ways,
           std::shared_ptr<const data::Dataset> data, std::span<const uint32_t> items, const EmbedOptions& options,
           const TakeBatches& take, int64_t first_batch) {
  const std::vector<Ways> of_models(models.size(), Ways(ways.begin(), ways.end()));
  return embed_by(backend, models, of_models, std::move(data), items, options, take, first_batch);
}

bool embed(Backend& backend, std::span<const EmbeddingModel> models, std::shared_ptr<const data::Dataset> data,
           std::span<const uint32_t> items, const EmbedOptions& options, const TakeBatch& take, int64_t first_batch) {
  std::vector<Ways> of_models;
  for (const EmbeddingModel& model : models) {
    of_models.push_back({model.forward});
  }
  return embed_by(
      backend, models, of_models, std::move(data), items, options,
      [&](std::span<const EmbeddedBatch> batches) { return take(batches.front()); }, first_batch);
}

EmbeddedRows embed_all(Backend& backend, std::span<const EmbeddingModel> models,
                       std::shared_ptr<const data::Dataset> data, std::span<const uint32_t> items,
                       const EmbedOptions& options, const std::function<bool(int64_t done)>& progress) {
  EmbeddedRows result{.values = {}, .dimensions = embedding_dimensions(models)};
  result.values.reserve(items.size() * static_cast<size_t>(result.dimensions));
  embed(backend, models, std::move(data), items, options, [&](const EmbeddedBatch& batch) {
    result.values.insert(result.values.end(), batch.rows.values,
                         batch.rows.values + batch.rows.rows * batch.rows.dimensions);
    return progress(batch.first + batch.rows.rows);
  });
  return result;
}

}  // namespace gle
