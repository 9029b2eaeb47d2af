#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/shape.h"

namespace gle::test {

// A tensor of the reference: doubles, NHWC, no pitch.
struct Array {
  Shape shape;
  std::vector<double> values;

  Array() = default;
  explicit Array(const Shape& s, double value = 0) : shape(s), values(static_cast<size_t>(s.elements()), value) {}
  Array(const Shape& s, std::vector<double> v) : shape(s), values(std::move(v)) {}

  explicit operator bool() const { return !values.empty(); }
  int64_t rows() const { return shape.rows(); }
  int64_t channels() const { return shape.channels(); }
  int64_t size() const { return static_cast<int64_t>(values.size()); }

  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
  double& operator()(int64_t row, int64_t c) { return (*this)[row * channels() + c]; }
  double operator()(int64_t row, int64_t c) const { return (*this)[row * channels() + c]; }
  double& operator()(int64_t n, int64_t h, int64_t w, int64_t c) { return (*this)[index(n, h, w, c)]; }
  double operator()(int64_t n, int64_t h, int64_t w, int64_t c) const { return (*this)[index(n, h, w, c)]; }

 private:
  int64_t index(int64_t n, int64_t h, int64_t w, int64_t c) const {
    return ((n * shape[1] + h) * shape[2] + w) * shape[3] + c;
  }
};

using Arrays = std::vector<Array>;

// Random numbers for drawing cases: the same everywhere, always.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed * 2 + 1) {}

  double uniform(double low, double high);
  int64_t integer(int64_t low, int64_t high);  // both included
  int small(int low, int high) { return static_cast<int>(integer(low, high)); }
  template <class T>
  T one_of(const std::vector<T>& choices) {
    return choices[static_cast<size_t>(integer(0, static_cast<int64_t>(choices.size()) - 1))];
  }

  // Every value drawn is exact in float.
  Array array(const Shape& shape, double low = -1, double high = 1);
  // At least `gap` away from zero, where activations have their kink.
  Array array_off_zero(const Shape& shape, double gap = 0.05);
  // All values differ by 1/256 or more, so that no maximum is a tie.
  Array array_of_distinct(const Shape& shape);
  std::vector<int> labels(int64_t count, int64_t classes);

 private:
  uint64_t next();
  uint64_t state_;
};

std::string name_of(const Shape& shape);

// Empty if every |actual - expected| <= tolerance * max(max|expected|, at_least) and nothing is NaN, else what differs.
std::string difference(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance,
                       double at_least = 0);

}  // namespace gle::test
