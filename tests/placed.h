#pragma once

#include <cstdint>
#include <vector>

#include "engine/backend.h"
#include "tests/array.h"

namespace gle::test {

enum class Layout { dense, slice };

// A tensor between guards: dense, or a slice of the channels of a wider one. Guards and the channels beside the slice
// hold a NaN of known bits, so that a kernel that reads them spoils its result and one that writes them is caught.
class Placed {
 public:
  Placed(Backend& backend, const Shape& shape, Layout layout, DType type = DType::f32);
  Placed(Backend& backend, const Array& values, Layout layout, DType type = DType::f32)
      : Placed(backend, values.shape, layout, type) {
    write(values.values);
  }

  const Tensor& tensor() const { return tensor_; }
  // The tensor that tensor() is a slice of; the same if it is dense.
  const Tensor& wide() const { return wide_; }
  int64_t first_channel() const { return first_channel_; }

  void write(const std::vector<double>& values);
  void fill_with_nan();
  std::vector<double> read() const;
  // The elements as bits.
  std::vector<uint32_t> bits() const;
  bool guards_intact() const;

 private:
  static constexpr int64_t kGuard = 16;
  static constexpr int64_t kBefore = 3;
  static constexpr int64_t kAfter = 5;

  std::vector<uint32_t> download() const;
  void upload(const std::vector<uint32_t>& words);
  template <class Visit>
  void for_each_element(Visit visit) const;

  Backend* backend_;
  DType type_;
  int64_t first_channel_;
  Tensor flat_, wide_, tensor_;
};

}  // namespace gle::test
