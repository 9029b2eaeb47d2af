#include "tools/report/thumbnails.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/cpu/cpu.h"
#include "engine/error.h"

#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#include <stb_image_write.h>

namespace gle::report {

namespace {

constexpr int kQuality = 80;

}  // namespace

std::string jpeg_of(const std::vector<uint8_t>& pixels, int width, int height, int quality) {
  std::string file;
  const auto append = [](void* to, void* bytes, int count) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(bytes), static_cast<size_t>(count));
  };
  invariant(stbi_write_jpg_to_func(append, &file, width, height, 3, pixels.data(), quality) != 0,
            "a JPEG that cannot be written to memory");
  return file;
}

Thumbnails::Thumbnails(const data::Dataset& data, const data::DecodeOptions& decode)
    : data_(data), options_(decode), resampler_(data::pixel_kernels(cpu::chosen_isa())) {}

void Thumbnails::decode(uint32_t item) {
  const data::Item& of = data_.items[item];
  data_.read(of, bytes_);
  data::decode_image(bytes_, data_.name_of(of), options_, image_);
  const data::Region whole{0, 0, image_.width, image_.height};
  const int left = std::clamp(of.box.x, 0, image_.width);
  const int top = std::clamp(of.box.y, 0, image_.height);
  const data::Region inside{left, top, std::min(of.box.width, image_.width - left),
                            std::min(of.box.height, image_.height - top)};
  box_ = inside.width > 0 && inside.height > 0 ? inside : whole;
}

void Thumbnails::resize(const data::Region& box, const data::Size& size, uint8_t* out, size_t stride) {
  resampler_.begin(image_, box, size, {0, 0, size.width, size.height}, data::Filter::bilinear);
  for (int y = 0; y < size.height; ++y) {
    std::memcpy(out + static_cast<size_t>(y) * stride, resampler_.row(y), static_cast<size_t>(size.width) * 3);
  }
}

Picture Thumbnails::picture(uint32_t item, int side) {
  decode(item);
  const double scale = static_cast<double>(side) / std::max(box_.width, box_.height);
  const data::Size size{std::max(1, static_cast<int>(std::lround(box_.width * scale))),
                        std::max(1, static_cast<int>(std::lround(box_.height * scale)))};
  const size_t stride = static_cast<size_t>(size.width) * 3;
  std::vector<uint8_t> pixels(stride * static_cast<size_t>(size.height));
  resize(box_, size, pixels.data(), stride);
  return {jpeg_of(pixels, size.width, size.height, kQuality), size.width, size.height};
}

Sheet Thumbnails::sheet(std::span<const uint32_t> items, int side) {
  Sheet sheet{.side = side,
              .columns = std::max(1, static_cast<int>(std::ceil(std::sqrt(static_cast<double>(items.size())))))};
  const int rows = std::max(1, (static_cast<int>(items.size()) + sheet.columns - 1) / sheet.columns);
  const size_t stride = static_cast<size_t>(sheet.columns) * static_cast<size_t>(side) * 3;
  std::vector<uint8_t> pixels(stride * static_cast<size_t>(rows) * static_cast<size_t>(side), 255);
  for (size_t i = 0; i < items.size(); ++i) {
    decode(items[i]);
    const int square = std::min(box_.width, box_.height);
    const data::Region middle{box_.x + (box_.width - square) / 2, box_.y + (box_.height - square) / 2, square, square};
    const size_t row = i / static_cast<size_t>(sheet.columns);
    const size_t column = i % static_cast<size_t>(sheet.columns);
    resize(middle, {side, side}, pixels.data() + (row * stride + column * 3) * static_cast<size_t>(side), stride);
  }
  sheet.picture = {jpeg_of(pixels, sheet.columns * side, rows * side, kQuality), sheet.columns * side, rows * side};
  return sheet;
}

}  // namespace gle::report
