#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/decode.h"

namespace gle::data {

// The libraries behind decode_image. Each fills `image` with at least `wanted` and returns an empty string, or returns
// what is wrong with the file.
std::string decode_jpeg(std::span<const uint8_t> file, const ImageInfo& info, const Region& wanted,
                        const DecodeOptions& options, Image& image);
std::string decode_png(std::span<const uint8_t> file, const ImageInfo& info, const DecodeOptions& options,
                       Image& image);
std::string decode_bmp(std::span<const uint8_t> file, const ImageInfo& info, Image& image);
// PNG and (where allowed) JPEG in builds without their libraries.
std::string decode_with_stb(std::span<const uint8_t> file, const ImageInfo& info, Image& image);

std::string jpeg_version();
std::string png_version();

// What a JPEG file's segments up to its frame header say, and its EXIF orientation (1 if none). Empty: found.
struct JpegHeader {
  int width = 0;
  int height = 0;
  int orientation = 1;
};
std::string read_jpeg_header(std::span<const uint8_t> file, JpegHeader& header);

// The orientation in a TIFF block as EXIF has it, 1 if it has none.
int exif_orientation(std::span<const uint8_t> tiff);

// Turns the whole picture as EXIF orientation 2 ... 8 says.
void turn_image(int orientation, Image& image);

}  // namespace gle::data
