#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>

namespace gle {

// One to four sizes, outermost first: [N,H,W,C] for images, [N,C] for rows, [C] for a vector. All are positive.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);

  int rank() const { return rank_; }
  // Size of one dimension; negative numbers count from the last.
  int64_t operator[](int i) const { return sizes_[static_cast<size_t>(i < 0 ? i + rank_ : i)]; }
  int64_t channels() const { return rank_ == 0 ? 0 : sizes_[static_cast<size_t>(rank_ - 1)]; }
  int64_t rows() const { return rank_ == 0 ? 0 : elements() / channels(); }
  int64_t elements() const;

  // The same shape with another number of channels.
  Shape with_channels(int64_t channels) const;

  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, 4> sizes_{};
  int rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace gle
