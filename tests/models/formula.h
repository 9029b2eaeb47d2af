#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "models/weights.h"

namespace gle::test {

// The formula of tests/oracle/network_fixtures.py: in [-1, 1), multiples of 2^-23.
inline std::vector<double> uniform(const std::string& name, size_t count) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3U;
  }
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) {
    uint64_t x = hash + (i + 1) * 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    x = x ^ (x >> 31U);
    values[i] = static_cast<double>(x >> 40U) * 0x1p-23 - 1;
  }
  return values;
}

// A weight's values, in the layout of the state_dict.
inline std::vector<float> formula_values(const std::string& name, const std::vector<int64_t>& shape) {
  double elements = 1;
  for (const int64_t size : shape) {
    elements *= static_cast<double>(size);
  }
  const double fan_in = elements / static_cast<double>(shape[0]);
  std::vector<float> values;
  for (const double u : uniform(name, static_cast<size_t>(elements))) {
    values.push_back(static_cast<float>(name.ends_with("running_var")    ? 1 + 0.5 * u
                                        : name.ends_with("running_mean") ? 0.1 * u
                                        : shape.size() >= 2              ? u * std::sqrt(6 / fan_in)
                                        : name.ends_with(".weight")      ? 1 + 0.25 * u
                                                                         : (u < 0 ? -3.5 : 3.5) + 0.1 * u));
  }
  return values;
}

inline WeightFile formula_weights(Backend& backend, Network& network) {
  WeightFile file{.name = "formula", .format = "formula", .tensors = network_weights(backend, network), .left_out = {}};
  for (WeightTensor& tensor : file.tensors) {
    tensor.values = formula_values(tensor.name, tensor.shape);
  }
  return file;
}

// NCHW numbers of the formula as a tensor [N,H,W,C].
inline Tensor formula_images(Backend& backend, const std::string& name, int64_t n, int64_t h, int64_t w) {
  const std::vector<double> from = uniform(name, static_cast<size_t>(n * 3 * h * w));
  std::vector<float> to;
  to.reserve(from.size());
  for (int64_t image = 0; image < n; ++image) {
    for (int64_t pixel = 0; pixel < h * w; ++pixel) {
      for (int64_t c = 0; c < 3; ++c) {
        to.push_back(static_cast<float>(from[static_cast<size_t>((image * 3 + c) * h * w + pixel)]));
      }
    }
  }
  Tensor images = backend.new_tensor("images", {n, h, w, 3});
  backend.upload(to.data(), images);
  return images;
}

inline std::vector<float> values_of(Backend& backend, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  backend.download(tensor, values.data());
  return values;
}

}  // namespace gle::test
