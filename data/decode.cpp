#include "data/decode.h"

#include <algorithm>
#include <utility>

#include "data/codecs.h"
#include "engine/error.h"

namespace gle::data {

namespace {

uint8_t multiply_255(int a, int b) {
  const int t = a * b + 128;
  return static_cast<uint8_t>(((t >> 8) + t) >> 8);
}

}  // namespace

void rgb_of_cmyk(const uint8_t* inverted, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x) {
    const int white = inverted[4 * x + 3];
    for (int c = 0; c < 3; ++c) {
      rgb[3 * x + c] = static_cast<uint8_t>(std::clamp(white - multiply_255(255 - inverted[4 * x + c], white), 0, 255));
    }
  }
}

void turn_image(int orientation, Image& image) {
  const int W = image.width;
  const int H = image.height;
  const bool transposed = orientation >= 5;
  Image turned;
  turned.reshape(transposed ? H : W, transposed ? W : H, {0, 0, transposed ? H : W, transposed ? W : H});
  // Which of the source's axes run backwards: 2 3 4 mirror, half turn, flip; 5 ... 8 the same of the transpose.
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  for (int y = 0; y < turned.height; ++y) {
    uint8_t* out = turned.stored_row(y);
    for (int x = 0; x < turned.width; ++x) {
      const int sx = transposed ? y : x;
      const int sy = transposed ? x : y;
      const uint8_t* in = image.at(from_right ? W - 1 - sx : sx, from_bottom ? H - 1 - sy : sy);
      std::copy(in, in + 3, out + 3 * x);
    }
  }
  image = std::move(turned);
}

void decode_image(std::span<const uint8_t> file, const std::string& name, const ImageInfo& info, const Region& wanted,
                  const DecodeOptions& options, Image& image) {
  invariant(wanted.width > 0 && wanted.height > 0 && wanted.x >= 0 && wanted.y >= 0 &&
                wanted.x + wanted.width <= info.width && wanted.y + wanted.height <= info.height,
            "a region outside of the picture");
  const bool turn = info.orientation != 1;
  ImageInfo upright = info;
  if (info.orientation >= 5) {
    std::swap(upright.width, upright.height);
  }
  const Region part = turn ? Region{0, 0, upright.width, upright.height} : wanted;
  std::string problem;
  switch (info.format) {
    case ImageFormat::jpeg:
      problem = decode_jpeg(file, upright, part, options, image);
      break;
    case ImageFormat::png:
      problem = decode_png(file, upright, options, image);
      break;
    case ImageFormat::bmp:
      problem = decode_bmp(file, upright, image);
      break;
  }
  if (!problem.empty()) {
    fail(ErrorCode::data, name, ": ", problem);
  }
  if (turn) {
    turn_image(info.orientation, image);
  }
}

void decode_image(std::span<const uint8_t> file, const std::string& name, const DecodeOptions& options, Image& image) {
  const ImageInfo info = read_image_info(file, name, options);
  decode_image(file, name, info, {0, 0, info.width, info.height}, options, image);
}

std::string decoder_versions() { return jpeg_version() + ", " + png_version(); }

}  // namespace gle::data
