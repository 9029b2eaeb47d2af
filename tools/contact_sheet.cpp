#include "tools/contact_sheet.h"

#include <algorithm>
#include <cmath>

#include "data/transform.h"
#include "engine/cpu/cpu.h"
#include "engine/error.h"

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#include <stb_image_write.h>

namespace gle::tools {

namespace {

constexpr int kSide = 128;
constexpr int kGap = 6;
constexpr int kStep = kSide + kGap;
constexpr uint8_t kFrame[3] = {30, 90, 220};

}  // namespace

ContactSheet::ContactSheet(int rows, int columns)
    : width_(columns * kStep + kGap),
      height_(rows * kStep + kGap),
      pixels_(static_cast<size_t>(width_) * static_cast<size_t>(height_) * 3, 255) {}

void ContactSheet::place(int row, int column, const data::Dataset& data, const data::Item& item,
                         const data::DecodeOptions& options) {
  data::TransformOptions small{.geometry = data::Geometry::resize_short_side,
                               .short_side = kSide,
                               .crop = data::Crop::centre,
                               .crop_size = {kSide, kSide},
                               .colours = {.scale = 1}};
  data::Bytes file;
  data.read(item, file);
  data::Image image;
  data::decode_image(file, data.name_of(item), options, image);
  data::Random none(0, 0, data::Purpose::transform);
  const data::TransformPlan plan = data::plan_transform(small, image.width, image.height, item.box, none);
  std::vector<float> values(static_cast<size_t>(kSide) * kSide * 3);
  data::Transformer(small, data::pixel_kernels(cpu::chosen_isa())).run(image, plan, values.data());

  const int left = kGap + column * kStep;
  const int top = kGap + row * kStep;
  const auto at = [&](int x, int y) {
    return pixels_.data() + (static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3;
  };
  if (column == 0) {
    for (int y = top - kGap / 2; y < top + kSide + kGap / 2; ++y) {
      for (int x = left - kGap / 2; x < left + kSide + kGap / 2; ++x) {
        std::copy_n(kFrame, 3, at(x, y));
      }
    }
  }
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide * 3; ++x) {
      at(left, top + y)[x] = static_cast<uint8_t>(std::lround(values[static_cast<size_t>(y * kSide * 3 + x)]));
    }
  }
}

std::vector<std::byte> ContactSheet::png() const {
  std::vector<std::byte> result;
  const auto append = [](void* to, void* bytes, int count) {
    const auto* from = static_cast<const std::byte*>(bytes);
    static_cast<std::vector<std::byte>*>(to)->insert(static_cast<std::vector<std::byte>*>(to)->end(), from,
                                                     from + count);
  };
  if (stbi_write_png_to_func(append, &result, width_, height_, 3, pixels_.data(), width_ * 3) == 0) {
    fail(ErrorCode::memory, "contact sheet: no memory for ", width_, " x ", height_, " pixels");
  }
  return result;
}

}  // namespace gle::tools
