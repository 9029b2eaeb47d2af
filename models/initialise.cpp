#include <cmath>
#include <numbers>

#include "engine/math/philox.h"
#include "models/network.h"

namespace gle {

namespace {

// The streams of parameters are those whose highest bit is set; the steps of a training run count from zero.
RandomKey key_of(const std::string& name, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : name) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3U;
  }
  return {seed, hash | (uint64_t{1} << 63U)};
}

float draw(const Initial& initial, RandomKey key, uint64_t index) {
  if (initial.kind == Initial::Kind::constant) {
    return initial.scale;
  }
  if (initial.kind == Initial::Kind::uniform) {
    return (2 * uniform(key, index) - 1) * initial.scale;
  }
  // Box and Muller; the first number is never 0.
  const PhiloxBlock block = random_words(key, index);
  const double radius = std::sqrt(-2 * std::log((block.word[0] + 1.0) * 0x1p-32));
  return static_cast<float>(initial.scale * radius * std::cos(2 * std::numbers::pi * block.word[1] * 0x1p-32));
}

}  // namespace

void Network::initialise(Backend& backend, uint64_t seed) {
  std::vector<float> values;
  for (const auto& [parameter, initial] : initials_) {
    values.resize(static_cast<size_t>(parameter->shape.elements()));
    const RandomKey key = key_of(parameter->name, seed);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = draw(initial, key, i);
    }
    backend.upload(values.data(), parameter->value);
  }
  parameters_->values_changed();
}

}  // namespace gle
