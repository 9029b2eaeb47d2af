#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/network.h"
#include "retrieval/embed.h"
#include "tools/cli/program.h"

namespace gle::tools {

// What a program is told of its networks beside their files.
struct ModelOptions {
  std::string network;  // of a file that does not say
  std::string input;    // HxW instead of the file's
};
// --network, --input.
void add_model_options(CLI::App& app, ModelOptions& options);

struct OpenedModel {
  std::string path;  // of the file, below the run's folder if that was named
  uint32_t checksum = 0;
  std::unique_ptr<Network> network;
  data::TransformOptions transform;
};

// The file that is meant by a file of weights, a checkpoint, or the folder of a run: its best checkpoint, or else the
// last.
std::string weight_file_of(const std::string& path);
// Path, checksum and network, for files that say what they were made of.
nlohmann::json notes_of(const std::vector<OpenedModel>& models);

// As weight_file_of().
OpenedModel open_model(Backend& backend, const std::string& path, const ModelOptions& options);
std::vector<OpenedModel> open_models(Backend& backend, const std::vector<std::string>& paths,
                                     const ModelOptions& options);
std::vector<EmbeddingModel> embedding_models(const std::vector<OpenedModel>& models, const ForwardOptions& forward);

}  // namespace gle::tools
