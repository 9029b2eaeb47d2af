// BMP without compression: 1, 4 and 8 bits with a palette, 24 and 32 bits. Of our own, for stb_image gives pixels that
// refer to no colour of the palette whatever was in memory.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "data/codecs.h"

namespace gle::data {

namespace {

uint32_t word(std::span<const uint8_t> file, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

}  // namespace

// read_image_info() has seen to it that the header is one that is read, and that all rows are there.
std::string decode_bmp(std::span<const uint8_t> file, const ImageInfo& info, Image& image) {
  const size_t offset = word(file, 10);
  const size_t header = word(file, 14);
  const bool from_top = static_cast<int32_t>(word(file, 22)) < 0;
  const size_t bits = word(file, 28) & 0xFFFF;
  const bool masks = word(file, 30) == 3;
  if (masks && (file.size() < 66 || bits != 32 || word(file, 54) != 0xFF0000 || word(file, 58) != 0xFF00 ||
                word(file, 62) != 0xFF)) {
    return "a BMP file with an unusual order of colours, which is not read";
  }
  const size_t palette = 14 + std::min(header, file.size());
  size_t colours = 0;
  if (bits <= 8) {
    const size_t used = word(file, 46);
    const size_t room = offset > palette ? (offset - palette) / 4 : 0;
    colours = std::min(used == 0 ? size_t{1} << bits : used, room);
  }
  image.reshape(info.width, info.height, {0, 0, info.width, info.height});
  const size_t stride = (static_cast<size_t>(info.width) * bits + 31) / 32 * 4;
  for (int y = 0; y < info.height; ++y) {
    const uint8_t* row = file.data() + offset + stride * static_cast<size_t>(from_top ? y : info.height - 1 - y);
    uint8_t* out = image.stored_row(y);
    for (size_t x = 0; x < static_cast<size_t>(info.width); ++x, out += 3) {
      const uint8_t* pixel = row + x * bits / 8;
      if (bits <= 8) {
        const size_t shift = 8 - bits - x * bits % 8;
        const size_t index = static_cast<size_t>(*pixel >> shift) & ((size_t{1} << bits) - 1);
        if (index >= colours) {
          return "a BMP file with a pixel that is not in its palette";
        }
        pixel = file.data() + palette + index * 4;
      }
      out[0] = pixel[2];
      out[1] = pixel[1];
      out[2] = pixel[0];
    }
  }
  return "";
}

}  // namespace gle::data
