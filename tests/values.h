#pragma once

#include <vector>

#include "engine/backend.h"

namespace gle::test {

inline Tensor tensor_of(Backend& backend, const Shape& shape, const std::vector<float>& values) {
  Tensor tensor = backend.new_tensor("test", shape);
  backend.upload(values.data(), tensor);
  return tensor;
}

inline Tensor filled(Backend& backend, const Shape& shape, float value) {
  Tensor tensor = backend.new_tensor("test", shape);
  backend.fill(value, tensor);
  return tensor;
}

inline Tensor labels_of(Backend& backend, const std::vector<int32_t>& labels) {
  Tensor tensor = backend.new_tensor("test", {static_cast<int64_t>(labels.size())}, DType::i32);
  backend.upload(labels.data(), tensor);
  return tensor;
}

inline std::vector<float> read(Backend& backend, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  backend.download(tensor, values.data());
  return values;
}

}  // namespace gle::test
