// PNG by libspng.
#include <spng.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "data/codecs.h"

namespace gle::data {

std::string decode_png(std::span<const uint8_t> file, const ImageInfo& info, const DecodeOptions&, Image& image) {
  struct Free {
    void operator()(spng_ctx* ctx) const { spng_ctx_free(ctx); }
  };
  const std::unique_ptr<spng_ctx, Free> ctx(spng_ctx_new(0));
  if (!ctx) {
    return "no memory for the PNG decoder";
  }
  // Text, profiles and the like: a picture needs none of them.
  constexpr size_t kMostChunkBytes = size_t{8} << 20;
  spng_ihdr header{};
  int status = spng_set_image_limits(ctx.get(), static_cast<uint32_t>(info.width), static_cast<uint32_t>(info.height));
  status = status ? status : spng_set_chunk_limits(ctx.get(), kMostChunkBytes, kMostChunkBytes);
  status = status ? status : spng_set_png_buffer(ctx.get(), file.data(), file.size());
  status = status ? status : spng_get_ihdr(ctx.get(), &header);
  const bool grey16 = header.bit_depth == 16 && header.color_type == SPNG_COLOR_TYPE_GRAYSCALE;
  const int format = grey16 ? SPNG_FMT_PNG : SPNG_FMT_RGB8;
  size_t bytes = 0;
  status = status ? status : spng_decoded_image_size(ctx.get(), format, &bytes);
  if (status) {
    return std::string("PNG: ") + spng_strerror(status);
  }
  image.reshape(info.width, info.height, {0, 0, info.width, info.height});
  const size_t pixels = image.bytes() / 3;
  if (bytes != (grey16 ? pixels * 2 : pixels * 3)) {
    return "a PNG header whose size changes while it is read";
  }
  status = spng_decode_image(ctx.get(), image.pixels.data(), bytes, format, 0);
  if (!status && grey16) {
    // From the back, for three bytes take the place of two. Pillow cuts off above 255, so that is what "white" is.
    uint8_t* out = image.pixels.data();
    for (size_t i = pixels; i-- > 0;) {
      uint16_t value = 0;
      std::memcpy(&value, out + 2 * i, sizeof value);
      std::memset(out + 3 * i, std::min<int>(value, 255), 3);
    }
  }
  return status ? std::string("PNG: ") + spng_strerror(status) : "";
}

std::string png_version() { return std::string("libspng ") + spng_version_string(); }

}  // namespace gle::data
