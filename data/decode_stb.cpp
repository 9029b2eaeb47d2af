// The fallback for builds without libjpeg-turbo or libspng.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_NO_FAILURE_STRINGS
#define STBI_MAX_DIMENSIONS 65535
#include <stb_image.h>

#include <climits>
#include <cstring>
#include <memory>

#include "data/codecs.h"

namespace gle::data {

std::string decode_with_stb(std::span<const uint8_t> file, const ImageInfo& info, Image& image) {
  if (file.size() > INT_MAX) {
    return "too large a file";
  }
  int width = 0;
  int height = 0;
  int channels = 0;
  struct Free {
    void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
  };
  const std::unique_ptr<stbi_uc, Free> pixels(
      stbi_load_from_memory(file.data(), static_cast<int>(file.size()), &width, &height, &channels, 3));
  if (!pixels) {
    return "damaged, or of a kind that is not read";
  }
  if (width != info.width || height != info.height) {
    return "a header whose size changes while it is read";
  }
  image.reshape(width, height, {0, 0, width, height});
  std::memcpy(image.pixels.data(), pixels.get(), image.bytes());
  return "";
}

}  // namespace gle::data
