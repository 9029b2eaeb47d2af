#include "tests/array.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

namespace gle::test {

// splitmix64
uint64_t Draw::next() {
  uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

double Draw::uniform(double low, double high) {
  return low + (high - low) * static_cast<double>(next() >> 11U) * 0x1p-53;
}

int64_t Draw::integer(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
}

Array Draw::array(const Shape& shape, double low, double high) {
  Array result(shape);
  for (double& v : result.values) {
    v = static_cast<float>(uniform(low, high));
  }
  return result;
}

Array Draw::array_off_zero(const Shape& shape, double gap) {
  Array result(shape);
  for (double& v : result.values) {
    v = static_cast<float>(uniform(gap, 1) * (integer(0, 1) == 0 ? -1 : 1));
  }
  return result;
}

Array Draw::array_of_distinct(const Shape& shape) {
  Array result(shape);
  std::vector<int64_t> order(result.values.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<size_t>(integer(0, static_cast<int64_t>(i) - 1))]);
  }
  const double middle = static_cast<double>(order.size()) / 2;
  for (size_t i = 0; i < order.size(); ++i) {
    result.values[i] = (static_cast<double>(order[i]) - middle) / 256;
  }
  return result;
}

std::vector<int> Draw::labels(int64_t count, int64_t classes) {
  std::vector<int> result(static_cast<size_t>(count));
  for (int& label : result) {
    label = small(0, static_cast<int>(classes) - 1);
  }
  return result;
}

std::string name_of(const Shape& shape) {
  std::ostringstream text;
  text << shape;
  return text.str();
}

std::string difference(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance,
                       double at_least) {
  std::ostringstream text;
  if (actual.size() != expected.size()) {
    text << actual.size() << " values, expected " << expected.size();
    return text.str();
  }
  double largest = at_least;
  for (const double v : expected) {
    largest = std::max(largest, std::abs(v));
  }
  const double allowed = tolerance * largest;
  size_t wrong = 0, worst = 0;
  double worst_error = -1;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(actual[i] - expected[i]);
    if (error <= allowed) {
      continue;
    }
    ++wrong;
    if (!std::isfinite(error) || error > worst_error) {
      worst = i;
      worst_error = error;
    }
  }
  if (wrong > 0) {
    text << wrong << " of " << expected.size() << " values are wrong, element " << worst << " is " << actual[worst]
         << ", expected " << expected[worst] << " within " << allowed;
  }
  return text.str();
}

}  // namespace gle::test
