// A build without libjpeg-turbo.
#include "data/codecs.h"

namespace gle::data {

std::string decode_jpeg(std::span<const uint8_t> file, const ImageInfo& info, const Region&,
                        const DecodeOptions& options, Image& image) {
  if (options.stb_jpeg == StbJpeg::refuse) {
    return "a JPEG file, and this build has no libjpeg-turbo; configure with -DGLE_JPEG=ON, or allow stb_image for "
           "JPEG files that you trust";
  }
  return decode_with_stb(file, info, image);
}

std::string jpeg_version() { return "no libjpeg-turbo"; }

bool has_jpeg() { return false; }

}  // namespace gle::data
