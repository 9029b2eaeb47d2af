#include "data/resample.h"

#include <cstdlib>
#include <cstring>

#include "data/decode.h"
#include "engine/cpu/cpu.h"
#include "tests/data/support.h"

namespace gle::data::test {

namespace {

struct Target {
  const char* column;
  Size size;
  Filter filter;
};

constexpr Target kTargets[] = {
    {"bilinear_31x17", {31, 17}, Filter::bilinear},
    {"bilinear_9x64", {9, 64}, Filter::bilinear},
    {"bicubic_31x17", {31, 17}, Filter::bicubic},
    {"bicubic_64x6", {64, 6}, Filter::bicubic},
};

Bytes resized(const Image& image, const Size& size, Filter filter, const Region& window, cpu::Isa isa) {
  Resampler resampler(pixel_kernels(isa));
  resampler.begin(image, {0, 0, image.width, image.height}, size, window, filter);
  Bytes pixels;
  for (int y = 0; y < window.height; ++y) {
    const uint8_t* row = resampler.row(y);
    pixels.insert(pixels.end(), row, row + static_cast<size_t>(window.width) * 3);
  }
  return pixels;
}

class OnIsa : public testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override {
    if (!cpu::supported(GetParam())) {
      GTEST_SKIP() << "not on this machine";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Resample, OnIsa, testing::Values(cpu::Isa::baseline, cpu::Isa::avx2, cpu::Isa::avx512),
                         [](const auto& info) { return cpu::name_of(info.param); });

// Equal hashes: not one level of difference in any pixel.
TEST_P(OnIsa, PixelsEqualPillows) {
  const auto expected = hashes("images.csv");
  int compared = 0;
  for (const auto& [name, file] : pictures()) {
    if (name.ends_with(".bmp") || (has_jpeg() && !name.ends_with(".png"))) {
      Image image;
      decode_image(file, name, {}, image);
      for (const Target& target : kTargets) {
        const Region all{0, 0, target.size.width, target.size.height};
        EXPECT_EQ(fnv(resized(image, target.size, target.filter, all, GetParam())), expected.at(name).at(target.column))
            << name << " " << target.column;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100);
}

TEST_P(OnIsa, PixelsEqualPillowsOnCub) {
  const char* root = std::getenv("GLE_TEST_CUB");
  if (!root) {
    GTEST_SKIP() << "GLE_TEST_CUB is not set to the folder CUB_200_2011";
  }
  const Folder folder(std::string(root) + "/images");
  for (const auto& [name, row] : hashes("cub.csv")) {
    Bytes file;
    folder.read(name, kMostImageBytes, file);
    Image image;
    decode_image(file, name, {}, image);
    for (const Target& target : kTargets) {
      const Region all{0, 0, target.size.width, target.size.height};
      EXPECT_EQ(fnv(resized(image, target.size, target.filter, all, GetParam())), row.at(target.column)) << name;
    }
  }
}

TEST_P(OnIsa, AWindowIsThatPartOfTheWhole) {
  Image image;
  decode_image(bmp_picture(50, 41, 3), "x", {}, image);
  for (const Filter filter : {Filter::bilinear, Filter::bicubic}) {
    for (const Size size : {Size{50, 41}, Size{90, 41}, Size{50, 20}, Size{23, 99}}) {
      const Bytes whole = resized(image, size, filter, {0, 0, size.width, size.height}, GetParam());
      const Region window{5, 3, 13, 11};
      const Bytes part = resized(image, size, filter, window, GetParam());
      for (int y = 0; y < window.height; ++y) {
        const uint8_t* expected = whole.data() + ((window.y + y) * size.width + window.x) * 3;
        ASSERT_EQ(std::memcmp(part.data() + y * window.width * 3, expected, static_cast<size_t>(window.width) * 3), 0);
      }
    }
  }
}

}  // namespace

}  // namespace gle::data::test
