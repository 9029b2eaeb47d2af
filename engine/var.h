#pragma once

#include <utility>

#include "engine/error.h"
#include "engine/tensor.h"

namespace gle {

// A tensor that an op made, and where on the tape its gradient gathers. Without a slot it needs none. A slice of a
// wider Var shares the wider one's slot: writing the parts of a concatenation and reading the whole is all there is
// to concatenating. Its numbers are floats; labels and bytes stay Tensors.
class Var {
 public:
  Var() = default;
  explicit Var(Tensor value) : Var(std::move(value), kNoSlot, 0, 0) {}

  explicit operator bool() const { return static_cast<bool>(value_); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  Var slice(int64_t begin, int64_t end) const {
    return Var(value_.slice(begin, end), slot_, first_channel_ + begin, pass_);
  }

 private:
  friend class Tape;
  static constexpr int kNoSlot = -1;

  Var(Tensor value, int slot, int64_t first_channel, uint64_t pass)
      : value_(std::move(value)), slot_(slot), first_channel_(first_channel), pass_(pass) {
    require(value_.type() == DType::f32, "var", "floats are expected, got a tensor ", value_.shape(),
            " of another type");
  }

  Tensor value_;
  int slot_ = kNoSlot;
  int64_t first_channel_ = 0;
  uint64_t pass_ = 0;  // of a tape: what it recorded between two clear()
};

}  // namespace gle
