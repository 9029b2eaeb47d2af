#pragma once

#include <cstdint>
#include <span>

namespace gle {

// Rows of numbers in host memory, one after the other: a view.
struct Embeddings {
  const float* values = nullptr;
  int64_t rows = 0;
  int64_t dimensions = 0;

  std::span<const float> operator[](int64_t row) const {
    return {values + row * dimensions, static_cast<size_t>(dimensions)};
  }
};

// Throws ErrorCode::data, naming `what` and the row, unless there are rows and every number is finite.
void check(const Embeddings& embeddings, const char* what);

}  // namespace gle
