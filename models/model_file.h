#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "models/network.h"
#include "models/weights.h"

namespace gle {

// How a network wants its images at inference: pixels of three floats, (v * scale - mean) / deviation of the bytes v.
struct InputDescription {
  int height = 224;
  int width = 224;
  int short_side = 0;  // the picture's is brought to this, then the middle is cut out; 0: all of it is resized
  bool bgr = false;    // mean and deviation are in this order too
  float scale = 1.0F / 255;
  std::array<float, 3> mean = {0, 0, 0};
  std::array<float, 3> deviation = {1, 1, 1};

  bool operator==(const InputDescription&) const = default;
};

// As the published ImageNet weights of this network were trained.
InputDescription published_input(const std::string& network);

// All that is needed beside the weights to use a network. It travels with them as JSON, in the metadata "gle" of
// .safetensors files and checkpoints.
struct ModelDescription {
  NetworkOptions network;
  InputDescription input;
};

std::map<std::string, std::string> metadata_of(const ModelDescription& model);
// Throws ErrorCode::weights if the file says nothing of its network, or nonsense.
ModelDescription description_of(const WeightFile& file);
bool has_description(const WeightFile& file);

// The network of a file, with its weights.
std::unique_ptr<Network> open_network(Backend& backend, const WeightFile& file);

// The .safetensors file of a network, which open_network() opens.
std::vector<std::byte> format_model(Backend& backend, Network& network, const InputDescription& input);

}  // namespace gle
