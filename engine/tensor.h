#pragma once

#include <cstdint>

#include "engine/buffer.h"
#include "engine/shape.h"

namespace gle {

enum class DType : uint8_t { f32, i32, u8 };

size_t bytes_of(DType type);

// A view of a Buffer: NHWC, channels innermost. `pitch` is the distance in elements between the channels of one pixel
// (or row) and those of the next; it exceeds channels() when the tensor is a slice of the channels of a wider one.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Buffer buffer, const Shape& shape, DType type = DType::f32);

  explicit operator bool() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  [[gnu::always_inline]] int64_t rows() const { return rows_; }
  [[gnu::always_inline]] int64_t channels() const { return channels_; }
  [[gnu::always_inline]] int64_t pitch() const { return pitch_; }
  [[gnu::always_inline]] bool dense() const { return pitch_ == channels_; }
  int64_t elements() const { return rows_ * channels_; }
  DType type() const { return type_; }
  Device device() const { return buffer_.device(); }

  [[gnu::always_inline]] float* data() const { return static_cast<float*>(data_); }
  [[gnu::always_inline]] int32_t* ints() const { return static_cast<int32_t*>(data_); }
  [[gnu::always_inline]] uint8_t* bytes() const { return static_cast<uint8_t*>(data_); }

  // Channels [begin, end) of every pixel, sharing memory.
  Tensor slice(int64_t begin, int64_t end) const;
  // The channels of one row, as a vector, sharing memory.
  Tensor row(int64_t row) const;
  // The same elements under another shape; dense tensors only, and tensors of a single row.
  Tensor reshaped(const Shape& shape) const;

 private:
  Buffer buffer_;
  void* data_ = nullptr;
  Shape shape_;
  int64_t rows_ = 0;
  int64_t channels_ = 0;
  int64_t pitch_ = 0;
  DType type_ = DType::f32;
};

}  // namespace gle
