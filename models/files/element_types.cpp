#include "models/files/element_types.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "engine/error.h"

namespace gle {

namespace {

struct Row {
  std::string_view safetensors;
  std::string_view torch;
  ElementKind kind;
};

constexpr Row kRows[] = {
    {"F32", "FloatStorage", {ElementType::f32, 4}},
    {"F64", "DoubleStorage", {ElementType::f64, 8}},
    {"F16", "HalfStorage", {ElementType::f16, 2}},
    {"BF16", "BFloat16Storage", {ElementType::bf16, 2}},
    {"I64", "LongStorage", {ElementType::other, 8}},
    {"I32", "IntStorage", {ElementType::other, 4}},
    {"I16", "ShortStorage", {ElementType::other, 2}},
    {"I8", "CharStorage", {ElementType::other, 1}},
    {"U8", "ByteStorage", {ElementType::other, 1}},
    {"BOOL", "BoolStorage", {ElementType::other, 1}},
    {"U16", "", {ElementType::other, 2}},
    {"U32", "", {ElementType::other, 4}},
    {"U64", "", {ElementType::other, 8}},
};

std::optional<ElementKind> find(std::string_view name, std::string_view Row::*column) {
  for (const Row& row : kRows) {
    if (!name.empty() && row.*column == name) {
      return row.kind;
    }
  }
  return std::nullopt;
}

template <class T>
T at(Bytes data, size_t i) {
  T value;
  std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
  return value;
}

float from_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16U;
  const uint32_t exponent = (bits >> 10U) & 0x1FU;
  const uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(fraction), -24);
    return sign != 0 ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 0xFFU : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23U) | (fraction << 13U));
}

}  // namespace

std::optional<ElementKind> safetensors_kind(std::string_view name) { return find(name, &Row::safetensors); }
std::optional<ElementKind> torch_storage_kind(std::string_view name) { return find(name, &Row::torch); }

float element_as_float(Bytes data, ElementType type, size_t i) {
  switch (type) {
    case ElementType::f32:
      return at<float>(data, i);
    case ElementType::f64:
      return static_cast<float>(at<double>(data, i));
    case ElementType::f16:
      return from_half(at<uint16_t>(data, i));
    case ElementType::bf16:
      return std::bit_cast<float>(static_cast<uint32_t>(at<uint16_t>(data, i)) << 16U);
    case ElementType::other:
      break;
  }
  bug("not a type of floats");
}

std::vector<float> elements_as_floats(Bytes data, ElementType type, size_t count) {
  std::vector<float> values(count);
  if (type == ElementType::f32 && count > 0) {
    std::memcpy(values.data(), data.data(), count * sizeof(float));
    return values;
  }
  for (size_t i = 0; i < count; ++i) {
    values[i] = element_as_float(data, type, i);
  }
  return values;
}

}  // namespace gle
