// A picture decoded whole and in part: both fail, or both agree on the part.
#include <cstring>

#include "data/decode.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gle::data;
  return gle::fuzz::only(gle::ErrorCode::data, [&] {
    const std::span<const uint8_t> file(data, size);
    DecodeOptions options;
    options.max_side = 512;
    options.max_pixels = 1 << 16;
    options.exif = size % 2 == 0 ? Exif::rotate : Exif::ignore;
    const ImageInfo info = read_image_info(file, "fuzz", options);
    const Region part{info.width / 3, info.height / 4, (info.width + 1) / 2, (info.height + 1) / 2};
    Image cut;
    decode_image(file, "fuzz", info, part, options, cut);
    Image whole;
    decode_image(file, "fuzz", options, whole);
    for (int y = part.y; y < part.y + part.height; ++y) {
      gle::invariant(std::memcmp(whole.at(part.x, y), cut.at(part.x, y), static_cast<size_t>(part.width) * 3) == 0,
                     "a part differs from the whole");
    }
  });
}
