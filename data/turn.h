#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/resample.h"

namespace gle::data {

// A turn around the centre, counter-clockwise, and then a shift to the right and down; in 65536ths, so that the same
// plan gives the same pixels on every machine.
struct Turn {
  int32_t cosine = 1 << 16;
  int32_t sine = 0;
  int32_t right = 0;  // pixels
  int32_t down = 0;

  bool operator==(const Turn&) const = default;
};

Turn turn_of(double degrees, double right, double down);

// Rows of a picture after a turn: bilinear between pixels, `fill` beyond its edges. One object per thread.
class Turner {
 public:
  // A picture of `size`, three bytes a pixel, rows one after the other, to be filled by the caller.
  uint8_t* begin(const Size& size, const Turn& turn, const std::array<uint8_t, 3>& fill);
  // Pixels [x, x + width) of row y, until the next call.
  const uint8_t* row(int y, int x, int width);

 private:
  Size size_;
  Turn turn_;
  std::array<uint8_t, 3> fill_{};
  std::vector<uint8_t> picture_;
  std::vector<uint8_t> line_;
};

}  // namespace gle::data
