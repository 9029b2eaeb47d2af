#include "retrieval/embed.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

void check_finite(const data::Dataset& data, std::span<const uint32_t> items, const Embeddings& rows) {
  for (size_t i = 0; i < items.size(); ++i) {
    const auto row = rows[static_cast<int64_t>(i)];
    if (!std::all_of(row.begin(), row.end(), [](float v) { return std::isfinite(v); })) {
      fail(ErrorCode::not_finite, data.name_of(data.items[items[i]]), ": its embedding is not finite");
    }
  }
}

// Batches of a plan through the networks, one after the other: every model by as many ways as the others, which may be
// other ways.
class BatchEmbedder {
 public:
  BatchEmbedder(Backend& backend, std::span<const EmbeddingModel> models, std::span<const Ways> ways,
                std::shared_ptr<const data::Dataset> data, data::EpochPlan plan, const EmbedOptions& options)
      : backend_(backend), models_(models), ways_(ways), data_(std::move(data)), plan_(std::move(plan)) {
    for (const EmbeddingModel& model : models_) {
      loaders_.push_back(std::make_unique<data::Loader>(
          data_, data::LoaderOptions{.transform = model.transform,
                                     .decode = options.decode,
                                     .workers = options.workers,
                                     .on_bad = options.bad_list ? data::OnBad::leave_out : data::OnBad::error,
                                     .bad_list = options.bad_list}));
      loaders_.back()->start(plan_, 0);
    }
  }

  // [way][image of the batch][embeddings of all models side by side]
  void next(std::vector<float>& rows) {
    const auto items = plan_.of_batch(done_++);
    const auto count = static_cast<int64_t>(items.size());
    const int64_t dimensions = embedding_dimensions(models_);
    const size_t ways = ways_.front().size();
    rows.resize(ways * static_cast<size_t>(count * dimensions));
    const auto of_way = [&](size_t way) { return rows.data() + static_cast<int64_t>(way) * count * dimensions; };
    int64_t column = 0;
    left_out_.clear();
    for (size_t m = 0; m < models_.size(); ++m) {
      data::Batch batch;
      invariant(loaders_[m]->next(batch), "the loader ends before its plan");
      left_out_.insert(left_out_.end(), batch.left_out.begin(), batch.left_out.end());
      Context ctx{.backend = backend_};
      const std::vector<Var> found =
          models_[m].network->embeddings(ctx, Var(on_device(backend_, batch.images)), ways_[m]);
      const int64_t width = models_[m].network->embedding_channels();
      part_.resize(static_cast<size_t>(count * width));
      for (size_t way = 0; way < ways; ++way) {
        backend_.download(found[way].value(), part_.data());
        for (int64_t row = 0; row < count; ++row) {
          std::copy_n(part_.data() + row * width, width, of_way(way) + row * dimensions + column);
        }
      }
      column += width;
    }
    for (size_t way = 0; way < ways; ++way) {
      check_finite(*data_, items, {of_way(way), count, dimensions});
      for (const size_t row : left_out_) {
        std::fill_n(of_way(way) + static_cast<int64_t>(row) * dimensions, dimensions,
                    std::numeric_limits<float>::quiet_NaN());
      }
    }
  }

 private:
  Backend& backend_;
  std::span<const EmbeddingModel> models_;
  std::span<const Ways> ways_;
  std::shared_ptr<const data::Dataset> data_;
  data::EpochPlan plan_;
  std::vector<std::unique_ptr<data::Loader>> loaders_;
  std::vector<float> part_;
  std::vector<size_t> left_out_;  // of the batch under way
  int64_t done_ = 0;
};

data::EpochPlan every_nth(const data::EpochPlan& all, int64_t first, int64_t n) {
  data::EpochPlan plan{{}, all.batch};
  for (int64_t b = first; b < all.batches(); b += n) {
    const auto items = all.of_batch(b);
    plan.items.insert(plan.items.end(), items.begin(), items.end());
  }
  return plan;
}

// A batch of each rank, and whether all of them want more.
struct Round {
  std::vector<std::vector<std::byte>> messages;
  std::vector<std::span<const float>> rows;
  bool wanted = true;
};

Round exchange(Comm* comm, std::vector<float>& rows, bool wanted) {
  Round round;
  if (comm == nullptr || comm->size() == 1) {
    round.rows.emplace_back(rows);
    return round;
  }
  rows.push_back(wanted ? 1.0F : 0.0F);
  round.messages = comm->gather(std::as_bytes(std::span(rows)));
  for (const std::vector<std::byte>& message : round.messages) {
    const std::span<const float> values(reinterpret_cast<const float*>(message.data()), message.size() / sizeof(float));
    round.rows.push_back(values.first(values.size() - 1));
    round.wanted = round.wanted && values.back() != 0;
  }
  return round;
}

bool embed_by(Backend& backend, std::span<const EmbeddingModel> models, std::span<const Ways> ways,
              std::shared_ptr<const data::Dataset> data, std::span<const uint32_t> items, const EmbedOptions& options,
              const TakeBatches& take, int64_t first_batch) {
  require(!models.empty() && options.batch >= 1, "embed", "needs a network and a batch of at least 1, got ",
          models.size(), " and ", options.batch);
  const int64_t rank = options.comm != nullptr ? options.comm->rank() : 0;
  const int64_t ranks = options.comm != nullptr ? options.comm->size() : 1;
  const int64_t dimensions = embedding_dimensions(models);
  const data::EpochPlan all = data::plan_in_order(items, options.batch);
  BatchEmbedder own(backend, models, ways, std::move(data), every_nth(all, first_batch + rank, ranks), options);
  std::vector<EmbeddedBatch> batches(ways.front().size());
  std::vector<float> rows;
  bool wanted = true;
  for (int64_t round = first_batch; round < all.batches(); round += ranks) {
    rows.clear();
    if (round + rank < all.batches()) {
      own.next(rows);
    }
    const Round done = exchange(options.comm, rows, wanted);
    for (int64_t of = 0; of < ranks && round + of < all.batches(); ++of) {
      const std::span<const float> part = done.rows[static_cast<size_t>(of)];
      const int64_t of_way = std::ssize(part) / std::ssize(batches);
      for (size_t way = 0; way < batches.size(); ++way) {
        batches[way] = {(round + of) * options.batch,
                        {part.data() + static_cast<int64_t>(way) * of_way, of_way / dimensions, dimensions}};
      }
      wanted = take(batches) && wanted;
    }
    if (!done.wanted || (ranks == 1 && !wanted)) {
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
