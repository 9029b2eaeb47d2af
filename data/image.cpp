#include "data/image.h"

#include <algorithm>
#include <cstring>

namespace gle::data {

uint8_t* PixelBuffer::resize(size_t bytes) {
  if (bytes > capacity_) {
    capacity_ = 0;
    bytes_.reset(new uint8_t[bytes]);
    capacity_ = bytes;
  }
  return bytes_.get();
}

void Image::reshape(int whole_width, int whole_height, const Region& part) {
  width = whole_width;
  height = whole_height;
  stored = part;
  std::memset(pixels.resize(bytes() + kSlack) + bytes(), 0, kSlack);
}

}  // namespace gle::data
