#include "models/model_file.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "models/files/safetensors.h"

namespace gle {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKey = "gle";
constexpr int kVersion = 1;
constexpr int64_t kMostClasses = 100'000'000;
constexpr int64_t kMostWidth = 1'000'000;
constexpr int64_t kMostSide = 16'384;

template <class Number>
Number number(const Json& object, const char* key, double least, double most) {
  const double value = object.at(key).get<double>();
  if (!(value >= least && value <= most)) {
    throw std::out_of_range(std::string(key) + " is out of range");
  }
  return static_cast<Number>(value);
}

std::array<float, 3> triple(const Json& object, const char* key) {
  const auto values = object.at(key).get<std::vector<float>>();
  if (values.size() != 3 || !std::ranges::all_of(values, [](float v) { return std::isfinite(v); })) {
    throw std::out_of_range(std::string(key) + " is not three numbers");
  }
  return {values[0], values[1], values[2]};
}

ModelDescription parse(const std::string& text) {
  const Json json = Json::parse(text);
  const int version = json.at("version").get<int>();
  if (version != kVersion) {
    throw std::out_of_range("version " + std::to_string(version) + "; this program knows " + std::to_string(kVersion));
  }
  ModelDescription model;
  model.network.name = json.at("network").get<std::string>();
  if (!std::ranges::count(network_names(), model.network.name)) {
    throw std::out_of_range("there is no network '" + model.network.name + "'");
  }
  HeadOptions& head = model.network.head;
  head.classes = number<int64_t>(json, "classes", 0, kMostClasses);
  head.embedding = number<int64_t>(json, "embedding", 0, kMostWidth);
  head.bnneck = json.at("bnneck").get<bool>();
  head.max_share = number<float>(json, "max_share", 0, 1);
  if (json.contains("norm_eps")) {
    model.network.norms.eps = number<float>(json, "norm_eps", 0, 1);
  }
  model.network.norms.momentum = number<float>(json, "norm_momentum", 0, 1);

  const Json& input = json.at("input");
  model.input.height = number<int>(input, "height", 1, kMostSide);
  model.input.width = number<int>(input, "width", 1, kMostSide);
  model.input.short_side = number<int>(input, "short_side", 0, kMostSide);
  model.input.bgr = input.at("bgr").get<bool>();
  model.input.scale = number<float>(input, "scale", -1e6, 1e6);
  model.input.mean = triple(input, "mean");
  model.input.deviation = triple(input, "deviation");
  if (std::ranges::count(model.input.deviation, 0.0F) > 0) {
    throw std::out_of_range("deviation is 0");
  }
  return model;
}

}  // namespace

InputDescription published_input(const std::string& network) {
  if (network == "bn_inception") {
    return {.height = 224, .width = 224, .short_side = 256, .bgr = true, .scale = 1, .mean = {104, 117, 128}};
  }
  if (network == "inception_v3") {
    return {
        .height = 299, .width = 299, .short_side = 342, .mean = {0.5F, 0.5F, 0.5F}, .deviation = {0.5F, 0.5F, 0.5F}};
  }
  if (network == "inception_v3_2015") {
    return {.height = 299,
            .width = 299,
            .short_side = 342,
            .scale = 1,
            .mean = {128, 128, 128},
            .deviation = {128, 128, 128}};
  }
  return {.short_side = 256, .mean = {0.485F, 0.456F, 0.406F}, .deviation = {0.229F, 0.224F, 0.225F}};
}

std::map<std::string, std::string> metadata_of(const ModelDescription& model) {
  const HeadOptions& head = model.network.head;
  const InputDescription& input = model.input;
  Json json = {
      {"version", kVersion},
      {"network", model.network.name},
      {"classes", head.classes},
      {"embedding", head.embedding},
      {"bnneck", head.bnneck},
      {"max_share", head.max_share},
      {"norm_momentum", model.network.norms.momentum},
      {"input",
       {{"height", input.height},
        {"width", input.width},
        {"short_side", input.short_side},
        {"bgr", input.bgr},
        {"scale", input.scale},
        {"mean", input.mean},
        {"deviation", input.deviation}}},
  };
  if (model.network.norms.eps) {
    json["norm_eps"] = *model.network.norms.eps;
  }
  return {{kKey, json.dump()}};
}

bool has_description(const WeightFile& file) { return file.metadata.contains(kKey); }

ModelDescription description_of(const WeightFile& file) {
  const auto found = file.metadata.find(kKey);
  if (found == file.metadata.end()) {
    fail(ErrorCode::weights, file.name, ": bare weights (", file.format,
         ") that do not say which network they are of; name it, or import them first: gle-model import");
  }
  try {
    return parse(found->second);
  } catch (const std::exception& e) {
    fail(ErrorCode::weights, file.name, ": the description of the network is damaged: ", e.what());
  }
}

std::unique_ptr<Network> open_network(Backend& backend, const WeightFile& file) {
  auto network = std::make_unique<Network>(backend, description_of(file).network);
  load_weights(backend, *network, file);
  return network;
}

std::vector<std::byte> format_model(Backend& backend, Network& network, const InputDescription& input) {
  return format_safetensors(network_weights(backend, network), metadata_of({network.options(), input}));
}

}  // namespace gle
