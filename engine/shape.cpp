#include "engine/shape.h"

#include <limits>
#include <ostream>

#include "engine/error.h"

namespace gle {

Shape::Shape(std::initializer_list<int64_t> sizes) {
  require(sizes.size() >= 1 && sizes.size() <= sizes_.size(), "shape", "1 to 4 dimensions are possible, got ",
          sizes.size());
  int64_t product = 1;
  for (const int64_t size : sizes) {
    require(size > 0, "shape", "every size must be positive, got ", size, " in dimension ", rank_);
    require(product <= std::numeric_limits<int64_t>::max() / 64 / size, "shape", "too many elements");
    product *= size;
    sizes_[static_cast<size_t>(rank_++)] = size;
  }
}

int64_t Shape::elements() const {
  if (rank_ == 0) {
    return 0;
  }
  int64_t product = 1;
  for (int i = 0; i < rank_; ++i) {
    product *= (*this)[i];
  }
  return product;
}

Shape Shape::with_channels(int64_t channels) const {
  require(rank_ > 0, "shape", "an empty one has no channels");
  require(channels > 0, "shape", "every size must be positive, got ", channels, " channels");
  Shape result = *this;
  result.sizes_[static_cast<size_t>(rank_ - 1)] = channels;
  return result;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (int i = 0; i < shape.rank(); ++i) {
    out << (i ? "," : "") << shape[i];
  }
  return out << ']';
}

}  // namespace gle
