#include "engine/tensor.h"

#include <ostream>

#include "engine/error.h"

namespace gle {

size_t bytes_of(DType type) { return type == DType::u8 ? 1 : 4; }

std::ostream& operator<<(std::ostream& out, Device device) {
  if (device.kind == Device::Kind::cpu) {
    return out << "cpu";
  }
  return out << "cuda:" << device.index;
}

Tensor::Tensor(Buffer buffer, const Shape& shape, DType type)
    : buffer_(std::move(buffer)),
      shape_(shape),
      rows_(shape.rows()),
      channels_(shape.channels()),
      pitch_(shape.channels()),
      type_(type) {
  const auto bytes = static_cast<int64_t>(bytes_of(type));
  invariant(shape.elements() * bytes <= static_cast<int64_t>(buffer_.bytes()), "tensor beyond its buffer");
  data_ = buffer_.data();
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  require(0 <= begin && begin < end && end <= channels_, "slice", "channels ", begin, " to ", end,
          " are not within the ", channels_, " of ", shape_);
  Tensor result = *this;
  result.shape_ = shape_.with_channels(end - begin);
  result.channels_ = end - begin;
  result.data_ = static_cast<std::byte*>(data_) + begin * static_cast<int64_t>(bytes_of(type_));
  return result;
}

Tensor Tensor::row(int64_t row) const {
  require(0 <= row && row < rows_, "row", row, " is not within the ", rows_, " of ", shape_);
  Tensor result = *this;
  result.shape_ = Shape{channels_};
  result.rows_ = 1;
  result.pitch_ = channels_;
  result.data_ = static_cast<std::byte*>(data_) + row * pitch_ * static_cast<int64_t>(bytes_of(type_));
  return result;
}

Tensor Tensor::reshaped(const Shape& shape) const {
  require(dense() || rows_ == 1, "reshape", "a slice of channels cannot be reshaped: ", shape_, " with pitch ", pitch_);
  require(shape.elements() == elements(), "reshape", shape_, " and ", shape, " differ in size");
  Tensor result = *this;
  result.shape_ = shape;
  result.rows_ = shape.rows();
  result.channels_ = result.pitch_ = shape.channels();
  return result;
}

}  // namespace gle
