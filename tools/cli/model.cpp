#include "tools/cli/model.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "models/dry_backend.h"
#include "models/files/crc32c.h"
#include "models/files/file.h"
#include "models/model_file.h"
#include "retrieval/input.h"
#include "tools/cli/command.h"

namespace gle::tools {

namespace {

namespace fs = std::filesystem;

std::unique_ptr<Network> named_network(Backend& backend, const std::string& name, const WeightFile& file) {
  NetworkOptions options{.name = name};
  DryBackend dry;
  const std::string classifier = Network(dry, options).classifier_name() + ".weight";
  for (const WeightTensor& tensor : file.tensors) {
    if (tensor.name.ends_with(classifier) && tensor.shape.size() >= 2) {
      options.head.classes = tensor.shape[0];
    }
  }
  auto network = std::make_unique<Network>(backend, options);
  network->initialise(backend, 0);
  load_weights(backend, *network, file);
  return network;
}

void apply_size(const std::string& text, InputDescription& input) {
  int height = 0;
  int width = 0;
  int read = 0;
  if (std::sscanf(text.c_str(), "%5dx%5d%n", &height, &width, &read) != 2 || static_cast<size_t>(read) != text.size() ||
      height < 1 || width < 1) {
    fail(ErrorCode::usage, "--input ", text, ": HEIGHTxWIDTH is expected, as 227x227");
  }
  // The margin around the crop keeps its share; of a square, on the crop's longer side.
  input.short_side = input.short_side * std::min(height, width) / std::min(input.height, input.width);
  input.square = std::max(input.square * height / input.height, input.square * width / input.width);
  input.height = height;
  input.width = width;
}

}  // namespace

void add_model_options(CLI::App& app, ModelOptions& options) {
  app.add_option("--network", options.network, "of a weight file that does not say: bn_inception, densenet121, ...")
      ->option_text("NAME")
      ->check(suggested(network_names()));
  app.add_option("--input", options.input, "size of the images instead of the model's")->option_text("HxW");
}

std::string weight_file_of(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    return path;
  }
  for (const char* name : {"checkpoints/best.gle", "checkpoints/last.gle"}) {
    if (fs::is_regular_file(fs::path(path) / name, ignored)) {
      return (fs::path(path) / name).string();
    }
  }
  fail(ErrorCode::weights, path, ": is a folder without checkpoints/best.gle or last.gle: no run was saved there");
}

OpenedModel open_model(Backend& backend, const std::string& path, const ModelOptions& options) {
  OpenedModel model;
  model.path = weight_file_of(path);
  const std::vector<std::byte> bytes = read_file(model.path);
  model.checksum = crc32c(bytes);
  const WeightFile file = parse_weights(bytes, model.path);
  InputDescription input;
  if (has_description(file)) {
    model.network = open_network(backend, file);
    input = description_of(file).input;
  } else if (!options.network.empty()) {
    model.network = named_network(backend, options.network, file);
    input = published_input(options.network);
  } else {
    fail(ErrorCode::weights, model.path, ": does not say what network it is of; name it with --network");
  }
  if (!options.input.empty()) {
    apply_size(options.input, input);
  }
  model.transform = inference_transform(input);
  return model;
}

std::vector<OpenedModel> open_models(Backend& backend, const std::vector<std::string>& paths,
                                     const ModelOptions& options) {
  std::vector<OpenedModel> models;
  models.reserve(paths.size());
  for (const std::string& path : paths) {
    models.push_back(open_model(backend, path, options));
  }
  // Of several, it may be meant for another of them.
  if (models.size() == 1 && !options.network.empty() && models[0].network->options().name != options.network) {
    fail(ErrorCode::weights, models[0].path, ": does not fit ", options.network, ": it says that it is of ",
         models[0].network->options().name);
  }
  return models;
}

nlohmann::json notes_of(const std::vector<OpenedModel>& models) {
  nlohmann::json notes = nlohmann::json::array();
  for (const OpenedModel& model : models) {
    notes.push_back({{"path", fs::absolute(model.path).lexically_normal().string()},
                     {"crc32c", model.checksum},
                     {"network", model.network->options().name}});
  }
  return notes;
}

std::vector<EmbeddingModel> embedding_models(const std::vector<OpenedModel>& models, const ForwardOptions& forward) {
  std::vector<EmbeddingModel> result;
  result.reserve(models.size());
  for (const OpenedModel& model : models) {
    result.push_back({model.network.get(), model.transform, forward});
  }
  return result;
}

}  // namespace gle::tools
