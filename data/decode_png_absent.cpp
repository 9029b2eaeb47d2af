// A build without libspng.
#include "data/codecs.h"

namespace gle::data {

std::string decode_png(std::span<const uint8_t> file, const ImageInfo& info, const DecodeOptions&, Image& image) {
  return decode_with_stb(file, info, image);
}

std::string png_version() { return "stb_image (PNG)"; }

}  // namespace gle::data
