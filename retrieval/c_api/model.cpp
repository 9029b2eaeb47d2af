#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "data/decode.h"
#include "data/files.h"
#include "engine/backends.h"
#include "engine/cpu/cpu.h"
#include "models/files/file.h"
#include "models/model_file.h"
#include "retrieval/c_api/guard.h"
#include "retrieval/input.h"

struct gle_model {
  static constexpr uint64_t kMagic = 0x676c65206d6f6465;

  gle_model(const char* path, const gle_model_options& wanted)
      : backend(gle::make_backend(
            {.device = wanted.device == nullptr ? "auto" : wanted.device,
             .memory_limit = wanted.memory_limit == 0 ? gle::CachingAllocator::kNoLimit : wanted.memory_limit,
             .threads = wanted.threads})),
        forward{.last_slope = wanted.last_slope,
                .max_share = wanted.max_share < 0 ? std::nullopt : std::optional(wanted.max_share),
                .beta = wanted.beta < 0 ? std::nullopt : std::optional(wanted.beta),
                .flip = wanted.flip != 0,
                .with_logits = false} {
    const gle::WeightFile file = gle::read_weights(path);
    input = gle::description_of(file).input;
    network = gle::open_network(*backend, file);
    transform = gle::inference_transform(input);
    transformer.emplace(transform, gle::data::pixel_kernels(gle::cpu::chosen_isa()));
  }

  void embed(const gle::Tensor& images, float* embeddings) {
    gle::Context ctx{.backend = *backend};
    const gle::Tensor found = network->forward(ctx, gle::Var(images), forward).embedding.value();
    backend->download(found, embeddings);
    if (!std::all_of(embeddings, embeddings + found.elements(), [](float v) { return std::isfinite(v); })) {
      gle::fail(gle::ErrorCode::not_finite, "the embedding is not finite");
    }
  }

  void embed(const gle::data::Image& picture, float* embedding) {
    gle::data::Random chance(0, 0, gle::data::Purpose::transform);
    const gle::data::TransformPlan plan =
        gle::data::plan_transform(transform, picture.width, picture.height, {}, chance);
    pixels.resize(static_cast<size_t>(input.height) * static_cast<size_t>(input.width) * 3);
    transformer->run(picture, plan, pixels.data());
    const gle::Tensor images = backend->new_tensor("picture", {1, input.height, input.width, 3});
    backend->upload(pixels.data(), images);
    embed(images, embedding);
  }

  uint64_t magic = kMagic;
  std::mutex mutex;
  std::unique_ptr<gle::Backend> backend;
  gle::ForwardOptions forward;
  gle::InputDescription input;
  std::unique_ptr<gle::Network> network;
  gle::data::TransformOptions transform;
  std::optional<gle::data::Transformer> transformer;
  gle::data::Image image;
  std::vector<float> pixels;
};

using gle::c_api::guarded;
using gle::c_api::require_handle;
using gle::c_api::require_pointer;

void gle_model_defaults(gle_model_options* options) {
  if (options != nullptr) {
    *options = {
        .device = "auto", .threads = 0, .memory_limit = 0, .last_slope = 0, .max_share = -1, .beta = -1, .flip = 0};
  }
}

gle_status gle_model_open(const char* path, const gle_model_options* options, gle_model** model) {
  return guarded([&] {
    require_pointer(model, "model");
    *model = nullptr;
    require_pointer(path, "path");
    gle_model_options wanted;
    gle_model_defaults(&wanted);
    wanted = options != nullptr ? *options : wanted;
    gle::require(wanted.threads >= 0 && wanted.threads <= 1024, "gle_model_open", "threads must be 0 to 1024, got ",
                 wanted.threads);
    *model = new gle_model(path, wanted);
  });
}

void gle_model_close(gle_model* model) {
  if (gle::c_api::alive(model)) {
    model->magic = 0;
    delete model;
  }
}

int64_t gle_model_dimensions(const gle_model* model) {
  return gle::c_api::alive(model) ? model->network->embedding_channels() : 0;
}

gle_status gle_model_input(const gle_model* model, int* height, int* width) {
  return guarded([&] {
    require_handle(model, "gle_model_input");
    require_pointer(height, "height");
    require_pointer(width, "width");
    *height = model->input.height;
    *width = model->input.width;
  });
}

gle_status gle_embed_file(gle_model* model, const char* path, float* embedding) {
  return guarded([&] {
    require_handle(model, "gle_embed_file");
    require_pointer(path, "path");
    require_pointer(embedding, "embedding");
    const std::vector<std::byte> bytes = gle::read_file(path);
    const std::lock_guard lock(model->mutex);
    gle::data::decode_image({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, path, {}, model->image);
    model->embed(model->image, embedding);
  });
}

gle_status gle_embed_encoded(gle_model* model, const void* bytes, size_t size, float* embedding) {
  return guarded([&] {
    require_handle(model, "gle_embed_encoded");
    require_pointer(bytes, "bytes");
    require_pointer(embedding, "embedding");
    const std::lock_guard lock(model->mutex);
    gle::data::decode_image({static_cast<const uint8_t*>(bytes), size}, "the picture", {}, model->image);
    model->embed(model->image, embedding);
  });
}

gle_status gle_embed_pixels(gle_model* model, const uint8_t* rgb, int width, int height, size_t row_bytes,
                            float* embedding) {
  return guarded([&] {
    require_handle(model, "gle_embed_pixels");
    require_pointer(rgb, "rgb");
    require_pointer(embedding, "embedding");
    const gle::data::DecodeOptions limits;
    gle::require(width >= 1 && height >= 1 && width <= limits.max_side && height <= limits.max_side &&
                     static_cast<int64_t>(width) * height <= limits.max_pixels,
                 "gle_embed_pixels", "a picture of ", width, " x ", height, " is out of range");
    gle::require(row_bytes >= static_cast<size_t>(width) * 3, "gle_embed_pixels", "row_bytes must be at least ",
                 width * 3, ", got ", row_bytes);
    const std::lock_guard lock(model->mutex);
    model->image.reshape(width, height, {0, 0, width, height});
    for (int y = 0; y < height; ++y) {
      std::memcpy(model->image.stored_row(y), rgb + static_cast<size_t>(y) * row_bytes, model->image.row_bytes());
    }
    model->embed(model->image, embedding);
  });
}

gle_status gle_embed_tensor(gle_model* model, const float* images, int64_t count, int height, int width,
                            float* embeddings) {
  return guarded([&] {
    require_handle(model, "gle_embed_tensor");
    require_pointer(images, "images");
    require_pointer(embeddings, "embeddings");
    gle::require(count >= 1 && height >= 1 && width >= 1, "gle_embed_tensor", "sizes must be positive, got ", count,
                 " x ", height, " x ", width);
    const std::lock_guard lock(model->mutex);
    const gle::Tensor batch = model->backend->new_tensor("images", {count, height, width, 3});
    model->backend->upload(images, batch);
    model->embed(batch, embeddings);
  });
}
