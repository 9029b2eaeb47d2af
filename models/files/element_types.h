#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/files/byte_reader.h"

namespace gle {

// What the tensors of weight files are made of, little-endian.
enum class ElementType { f32, f64, f16, bf16, other };

struct ElementKind {
  ElementType type = ElementType::other;
  size_t bytes = 0;
};

// "F32" and the like of safetensors; "FloatStorage" and the like of PyTorch. Nothing if there is no such type.
std::optional<ElementKind> safetensors_kind(std::string_view name);
std::optional<ElementKind> torch_storage_kind(std::string_view name);

// Element i of `data`, which has it. Not for ElementType::other.
float element_as_float(Bytes data, ElementType type, size_t i);
// The first `count` elements of `data`.
std::vector<float> elements_as_floats(Bytes data, ElementType type, size_t count);

}  // namespace gle
