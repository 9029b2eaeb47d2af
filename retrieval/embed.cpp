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

}  // namespace

int64_t embedding_dimensions(std::span<const EmbeddingModel> models) {
  int64_t total = 0;
  for (const EmbeddingModel& model : models) {
    total += model.network->embedding_channels();
  }
  return total;
}

bool embed(Backend& backend, std::span<const EmbeddingModel> models, std::shared_ptr<const data::Dataset> data,
           std::span<const uint32_t> items, const EmbedOptions& options, const TakeBatch& take, int64_t first_batch) {
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
  std::vector<float> rows;
  std::vector<float> part;
  for (int64_t batch_index = first_batch; batch_index < plan.batches(); ++batch_index) {
    const auto of_batch = plan.of_batch(batch_index);
    rows.resize(of_batch.size() * static_cast<size_t>(dimensions));
    int64_t column = 0;
    for (size_t m = 0; m < models.size(); ++m) {
      data::Batch batch;
      invariant(loaders[m]->next(batch), "the loader ends before its plan");
      ForwardOptions forward = models[m].forward;
      forward.with_logits = false;
      Context ctx{.backend = backend};
      const Tensor embedding =
          models[m].network->forward(ctx, Var(on_device(backend, batch.images)), forward).embedding.value();
      part.resize(static_cast<size_t>(embedding.elements()));
      backend.download(embedding, part.data());
      for (int64_t row = 0; row < embedding.rows(); ++row) {
        std::copy_n(part.data() + row * embedding.channels(), embedding.channels(),
                    rows.data() + row * dimensions + column);
      }
      column += embedding.channels();
    }
    const EmbeddedBatch done{batch_index * options.batch,
                             {rows.data(), static_cast<int64_t>(of_batch.size()), dimensions}};
    for (size_t i = 0; i < of_batch.size(); ++i) {
      const auto row = done.rows[static_cast<int64_t>(i)];
      if (!std::all_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); })) {
        fail(ErrorCode::not_finite, data->name_of(data->items[of_batch[i]]), ": its embedding is not finite");
      }
    }
    if (!take(done)) {
      return false;
    }
  }
  return true;
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
