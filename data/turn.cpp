#include "data/turn.h"

#include <cmath>
#include <numbers>

namespace gle::data {

namespace {

constexpr int kBits = 16;
constexpr int64_t kOne = 1 << kBits;

int32_t fixed(double value) { return static_cast<int32_t>(std::lround(value * kOne)); }

}  // namespace

Turn turn_of(double degrees, double right, double down) {
  const double angle = degrees * std::numbers::pi / 180;
  return {fixed(std::cos(angle)), fixed(std::sin(angle)), fixed(right), fixed(down)};
}

uint8_t* Turner::begin(const Size& size, const Turn& turn, const std::array<uint8_t, 3>& fill) {
  size_ = size;
  turn_ = turn;
  fill_ = fill;
  picture_.resize(static_cast<size_t>(size.width) * static_cast<size_t>(size.height) * 3);
  return picture_.data();
}

const uint8_t* Turner::row(int y, int x, int width) {
  line_.resize(static_cast<size_t>(width) * 3);
  const auto pixel = [&](int64_t px, int64_t py) {
    const bool inside = px >= 0 && py >= 0 && px < size_.width && py < size_.height;
    return inside ? &picture_[static_cast<size_t>(py * size_.width + px) * 3] : fill_.data();
  };
  // Where the pixel comes from: the turn undone around the centre, offsets doubled so that centres are whole numbers.
  const int64_t dy = (int64_t{2} * y + 1 - size_.height) * kOne - 2 * int64_t{turn_.down};
  for (int i = 0; i < width; ++i) {
    const int64_t dx = (int64_t{2} * (x + i) + 1 - size_.width) * kOne - 2 * int64_t{turn_.right};
    const int64_t from_x = ((turn_.cosine * dx - turn_.sine * dy) >> (kBits + 1)) + (size_.width - 1) * kOne / 2;
    const int64_t from_y = ((turn_.sine * dx + turn_.cosine * dy) >> (kBits + 1)) + (size_.height - 1) * kOne / 2;
    const int64_t left = from_x >> kBits;
    const int64_t top = from_y >> kBits;
    const int64_t share_x = (from_x & (kOne - 1)) >> 8;
    const int64_t share_y = (from_y & (kOne - 1)) >> 8;
    const uint8_t* a = pixel(left, top);
    const uint8_t* b = pixel(left + 1, top);
    const uint8_t* c = pixel(left, top + 1);
    const uint8_t* d = pixel(left + 1, top + 1);
    for (size_t k = 0; k < 3; ++k) {
      const int64_t above = a[k] * (256 - share_x) + b[k] * share_x;
      const int64_t below = c[k] * (256 - share_x) + d[k] * share_x;
      line_[static_cast<size_t>(i) * 3 + k] =
          static_cast<uint8_t>((above * (256 - share_y) + below * share_y + (1 << 15)) >> 16);
    }
  }
  return line_.data();
}

}  // namespace gle::data
