#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gle::data {

// A rectangle of pixels.
struct Region {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  bool operator==(const Region&) const = default;
};

// Bytes that grow but are never cleared: pictures of many sizes pass through one.
class PixelBuffer {
 public:
  uint8_t* resize(size_t bytes);
  uint8_t* data() { return bytes_.get(); }
  const uint8_t* data() const { return bytes_.get(); }
  size_t capacity() const { return capacity_; }

 private:
  std::unique_ptr<uint8_t[]> bytes_;
  size_t capacity_ = 0;
};

// An RGB picture of width x height pixels, of which the `stored` part is in memory: rows from the top, three bytes a
// pixel, no gaps. The buffer has kSlack readable bytes behind the last pixel, so that kernels may load four bytes at
// any pixel.
struct Image {
  static constexpr size_t kSlack = 64;

  int width = 0;
  int height = 0;
  Region stored;
  PixelBuffer pixels;

  // Makes room for `part` of a picture; what the pixels are is up to the caller.
  void reshape(int whole_width, int whole_height, const Region& part);
  size_t row_bytes() const { return static_cast<size_t>(stored.width) * 3; }
  size_t bytes() const { return row_bytes() * static_cast<size_t>(stored.height); }
  // Pixel (x, y) of the whole picture; it must be stored.
  const uint8_t* at(int x, int y) const {
    return pixels.data() + row_bytes() * static_cast<size_t>(y - stored.y) + static_cast<size_t>(x - stored.x) * 3;
  }
  uint8_t* stored_row(int row) { return pixels.data() + row_bytes() * static_cast<size_t>(row); }
};

}  // namespace gle::data
