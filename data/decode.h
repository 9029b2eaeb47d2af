#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/image.h"

namespace gle::data {

enum class ImageFormat { jpeg, png, bmp };

enum class Exif { ignore, rotate };
enum class StbJpeg { refuse, allow };

// Limits hold before anything is decoded or allocated: they are checked against the file's header.
struct DecodeOptions {
  int max_side = 16384;
  int64_t max_pixels = int64_t{64} << 20;
  // Turn the picture as its camera says (Pillow's ImageOps.exif_transpose); Pillow itself and torchvision ignore it.
  Exif exif = Exif::ignore;
  // In a build without libjpeg-turbo: whether stb_image may read JPEG. It is not safe on hostile files, and its pixels
  // differ from Pillow's by up to 3 levels.
  StbJpeg stb_jpeg = StbJpeg::refuse;
};

struct ImageInfo {
  ImageFormat format = ImageFormat::jpeg;
  // As decoded: after the turn, if there is one.
  int width = 0;
  int height = 0;
  // 1 to 8 as in EXIF; 1, upright, unless options.exif says rotate.
  int orientation = 1;
};

// What the header says. The format is told by the first bytes, never by the name, which is for messages only. A file
// that is no picture, of a kind that is not read (GIF, TIFF, WebP, ...), or over the limits throws ErrorCode::data.
ImageInfo read_image_info(std::span<const uint8_t> file, const std::string& name, const DecodeOptions& options);

// The pixels of at least `wanted`, as Pillow's Image.open(...).convert("RGB") has them, byte for byte. JPEG decodes
// little more than that part; the other formats decode all. A damaged or truncated file throws ErrorCode::data; what
// is returned never has made-up pixels.
void decode_image(std::span<const uint8_t> file, const std::string& name, const ImageInfo& info, const Region& wanted,
                  const DecodeOptions& options, Image& image);

// The whole picture.
void decode_image(std::span<const uint8_t> file, const std::string& name, const DecodeOptions& options, Image& image);

// "libjpeg-turbo 2.1.5, libspng 0.7.3", for logs and reports.
std::string decoder_versions();

// Whether this build reads JPEG by libjpeg-turbo.
bool has_jpeg();

// Pillow's conversion of a row of inverted CMYK, as Adobe's JPEG files hold it.
void rgb_of_cmyk(const uint8_t* inverted, int width, uint8_t* rgb);

}  // namespace gle::data
