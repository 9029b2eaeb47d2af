// Sizes and orientation from the first bytes of a picture, without a library: nothing is allocated before its limits
// are known to hold.
#include <algorithm>
#include <cstring>

#include "data/codecs.h"
#include "engine/error.h"

namespace gle::data {

namespace {

using Bytes = std::span<const uint8_t>;

uint32_t big16(Bytes bytes, size_t at) { return static_cast<uint32_t>(bytes[at] << 8 | bytes[at + 1]); }
uint32_t big32(Bytes bytes, size_t at) { return big16(bytes, at) << 16 | big16(bytes, at + 2); }
uint32_t little16(Bytes bytes, size_t at) { return static_cast<uint32_t>(bytes[at + 1] << 8 | bytes[at]); }
uint32_t little32(Bytes bytes, size_t at) { return little16(bytes, at + 2) << 16 | little16(bytes, at); }

bool begins_with(Bytes file, const char* text, size_t length, size_t at = 0) {
  return file.size() >= at + length && std::memcmp(file.data() + at, text, length) == 0;
}

// What is named in a refusal, so that its reader knows what to convert.
const char* kind_of_unread(Bytes file) {
  if (file.empty()) {
    return "an empty file";
  }
  if (begins_with(file, "GIF8", 4)) {
    return "a GIF file";
  }
  if (begins_with(file, "II*\0", 4) || begins_with(file, "MM\0*", 4)) {
    return "a TIFF file";
  }
  if (begins_with(file, "RIFF", 4) && begins_with(file, "WEBP", 4, 8)) {
    return "a WebP file";
  }
  if (file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '7' && file[2] <= ' ') {
    return "a PPM or PGM file";
  }
  if (file[0] == '<') {
    return "a web page or other text";
  }
  return "no picture";
}

std::string read_png_header(Bytes file, ImageInfo& info, bool rotate) {
  if (file.size() < 33 || !begins_with(file, "IHDR", 4, 12)) {
    return "a PNG file without its header";
  }
  const uint32_t width = big32(file, 16);
  const uint32_t height = big32(file, 20);
  if (width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX) {
    return "a PNG header with an impossible size";
  }
  info.width = static_cast<int>(width);
  info.height = static_cast<int>(height);
  for (size_t at = 33; rotate && at + 8 <= file.size() && !begins_with(file, "IDAT", 4, at + 4);) {
    const size_t length = big32(file, at);
    if (length > file.size() - at - 8) {
      break;
    }
    if (begins_with(file, "eXIf", 4, at + 4)) {
      info.orientation = exif_orientation(file.subspan(at + 8, length));
    }
    at += std::min(length + 12, file.size() - at);
  }
  return "";
}

std::string read_bmp_header(Bytes file, ImageInfo& info) {
  if (file.size() < 54) {
    return "a BMP file cut off in its header";
  }
  const uint32_t offset = little32(file, 10);
  const uint32_t header = little32(file, 14);
  if (header < 40) {
    return "a BMP file of the OS/2 kind, which is not read";
  }
  const auto width = static_cast<int32_t>(little32(file, 18));
  const auto height = static_cast<int32_t>(little32(file, 22));
  const uint32_t bits = little16(file, 28);
  const uint32_t compression = little32(file, 30);
  if (width <= 0 || height == 0 || height == INT32_MIN) {
    return "a BMP header with an impossible size";
  }
  if ((bits != 1 && bits != 4 && bits != 8 && bits != 24 && bits != 32) || (compression != 0 && compression != 3)) {
    return "a BMP file with 16 bits a pixel or compressed rows, which is not read";
  }
  info.width = width;
  info.height = std::abs(height);
  const uint64_t row = (static_cast<uint64_t>(width) * bits + 31) / 32 * 4;
  if (offset > file.size() || row * static_cast<uint64_t>(info.height) > file.size() - offset) {
    return "a BMP file cut off before its last row";
  }
  return "";
}

}  // namespace

int exif_orientation(Bytes tiff) {
  const bool little = begins_with(tiff, "II", 2);
  if (tiff.size() < 8 || (!little && !begins_with(tiff, "MM", 2))) {
    return 1;
  }
  const auto read16 = [&](size_t at) { return little ? little16(tiff, at) : big16(tiff, at); };
  const size_t directory = little ? little32(tiff, 4) : big32(tiff, 4);
  if (directory + 2 > tiff.size()) {
    return 1;
  }
  const size_t entries = read16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + i * 12;
    if (at + 12 > tiff.size()) {
      return 1;
    }
    constexpr uint32_t kOrientation = 0x112;
    constexpr uint32_t kShort = 3;
    if (read16(at) == kOrientation && read16(at + 2) == kShort) {
      const uint32_t value = read16(at + 8);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  }
  return 1;
}

std::string read_jpeg_header(Bytes file, JpegHeader& header) {
  size_t at = 2;
  while (true) {
    // Garbage between segments is skipped, as the decoder does.
    while (at < file.size() && file[at] != 0xFF) {
      ++at;
    }
    while (at < file.size() && file[at] == 0xFF) {
      ++at;
    }
    if (at >= file.size()) {
      return "a JPEG file cut off before its frame header";
    }
    const uint8_t marker = file[at++];
    if (marker == 0 || marker == 1 || (marker >= 0xD0 && marker <= 0xD8)) {
      continue;
    }
    if (marker == 0xD9 || marker == 0xDA || at + 2 > file.size()) {
      return "a JPEG file without a frame header";
    }
    const size_t length = big16(file, at);
    if (length < 2 || length > file.size() - at) {
      return "a JPEG file cut off in its header";
    }
    const Bytes body = file.subspan(at + 2, length - 2);
    const bool frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (frame) {
      if (body.size() < 6) {
        return "a JPEG file with a broken frame header";
      }
      header.height = static_cast<int>(big16(body, 1));
      header.width = static_cast<int>(big16(body, 3));
      return header.width > 0 && header.height > 0 ? "" : "a JPEG header with an impossible size";
    }
    if (marker == 0xE1 && begins_with(body, "Exif\0\0", 6)) {
      header.orientation = exif_orientation(body.subspan(6));
    }
    at += length;
  }
}

ImageInfo read_image_info(Bytes file, const std::string& name, const DecodeOptions& options) {
  ImageInfo info;
  const bool rotate = options.exif == Exif::rotate;
  std::string problem;
  if (begins_with(file, "\xFF\xD8\xFF", 3)) {
    info.format = ImageFormat::jpeg;
    JpegHeader header;
    problem = read_jpeg_header(file, header);
    info.width = header.width;
    info.height = header.height;
    info.orientation = rotate ? header.orientation : 1;
  } else if (begins_with(file, "\x89PNG\r\n\x1A\n", 8)) {
    info.format = ImageFormat::png;
    problem = read_png_header(file, info, rotate);
  } else if (begins_with(file, "BM", 2)) {
    info.format = ImageFormat::bmp;
    problem = read_bmp_header(file, info);
  } else {
    problem = std::string(kind_of_unread(file)) + "; JPEG, PNG and BMP are read";
  }
  if (!problem.empty()) {
    fail(ErrorCode::data, name, ": ", problem);
  }
  if (info.width > options.max_side || info.height > options.max_side ||
      int64_t{info.width} * info.height > options.max_pixels) {
    fail(ErrorCode::data, name, ": its header says ", info.width, " x ", info.height, " pixels; the limits are ",
         options.max_side, " a side and ", options.max_pixels, " in all");
  }
  if (info.orientation >= 5) {
    std::swap(info.width, info.height);
  }
  return info;
}

}  // namespace gle::data
