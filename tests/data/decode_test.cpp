#include "data/decode.h"

#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/data/support.h"

namespace gle::data::test {

namespace {

bool readable(const Bytes& file) { return has_jpeg() || file[0] != 0xFF; }

// stb_image stands in for libspng in some builds, and turns 16 bits into 8 in its own way.
bool same_as_pillow(const std::string& name) {
  return decoder_versions().find("libspng") != std::string::npos || name.find("16_") == std::string::npos;
}

Image decoded(const Bytes& file, const std::string& name, const DecodeOptions& options = {}) {
  Image image;
  decode_image(file, name, options, image);
  return image;
}

TEST(Decode, PixelsEqualPillowsOnGeneratedFiles) {
  const auto expected = hashes("images.csv");
  int compared = 0;
  ASSERT_GE(expected.size(), 500U);
  for (const auto& [name, file] : pictures()) {
    if (!readable(file) || !same_as_pillow(name)) {
      continue;
    }
    const Image image = decoded(file, name);
    const auto& row = expected.at(name);
    EXPECT_EQ(std::to_string(image.width), row.at("width")) << name;
    EXPECT_EQ(std::to_string(image.height), row.at("height")) << name;
    EXPECT_EQ(fnv(pixels_of(image)), row.at("pixels")) << name;
    ++compared;
  }
  RecordProperty("files", compared);
  std::printf("%d files equal to Pillow's pixels were expected, by %s\n", compared, decoder_versions().c_str());
}

TEST(Decode, TurnsAsExifSays) {
  const auto expected = hashes("images.csv");
  for (const auto& [name, file] : pictures()) {
    if (name.starts_with("exif") && readable(file)) {
      EXPECT_EQ(fnv(pixels_of(decoded(file, name, {.exif = Exif::rotate}))), expected.at(name).at("turned")) << name;
    }
  }
}

TEST(Decode, PixelsEqualPillowsOnCub) {
  const char* root = std::getenv("GLE_TEST_CUB");
  if (!root) {
    GTEST_SKIP() << "GLE_TEST_CUB is not set to the folder CUB_200_2011";
  }
  const Folder folder(std::string(root) + "/images");
  const auto expected = hashes("cub.csv");
  ASSERT_GE(expected.size(), 200U);
  for (const auto& [name, row] : expected) {
    Bytes file;
    folder.read(name, kMostImageBytes, file);
    EXPECT_EQ(fnv(pixels_of(decoded(file, name))), row.at("pixels")) << name;
  }
}

// What is decoded of a part is what a decoder of the whole has there.
TEST(Decode, PartsEqualTheWhole) {
  std::mt19937 random(7);
  int parts = 0;
  for (const auto& [name, file] : pictures()) {
    if (!readable(file)) {
      continue;
    }
    const Image whole = decoded(file, name);
    const ImageInfo info = read_image_info(file, name, {});
    for (int i = 0; i < 6; ++i) {
      Region part;
      part.width = 1 + static_cast<int>(random() % static_cast<uint32_t>(whole.width));
      part.height = 1 + static_cast<int>(random() % static_cast<uint32_t>(whole.height));
      part.x = static_cast<int>(random() % static_cast<uint32_t>(whole.width - part.width + 1));
      part.y = static_cast<int>(random() % static_cast<uint32_t>(whole.height - part.height + 1));
      Image image;
      decode_image(file, name, info, part, {}, image);
      for (int y = part.y; y < part.y + part.height; ++y) {
        ASSERT_EQ(std::memcmp(image.at(part.x, y), whole.at(part.x, y), static_cast<size_t>(part.width) * 3), 0)
            << name << " row " << y << " of " << part.x << "," << part.y << " " << part.width << "x" << part.height;
      }
      ++parts;
    }
  }
  EXPECT_GT(parts, 1000);
}

TEST(Decode, EveryTruncationIsAnErrorOrTheFullPicture) {
  int files = 0;
  int whole = 0;
  int cuts = 0;
  for (const auto& [name, file] : pictures()) {
    const bool chosen = name.find("_40x23") != std::string::npos || name.find("_17x33") != std::string::npos;
    if (!chosen || files >= 60 || file.size() > 4000 || !readable(file) ||
        (files % 3 == 0 && name.ends_with("1.jpg"))) {
      continue;
    }
    ++files;
    const std::string full = fnv(pixels_of(decoded(file, name)));
    for (size_t length = 0; length < file.size(); ++length) {
      ++cuts;
      try {
        Image image;
        const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
        decode_image(cut, name, {}, image);
        ASSERT_EQ(fnv(pixels_of(image)), full) << name << " cut to " << length << " of " << file.size();
        ++whole;
      } catch (const Error& e) {
        ASSERT_EQ(e.code(), ErrorCode::data);
      }
    }
  }
  EXPECT_GE(files, 20);
  std::printf("%d files, %d cuts: %d full pictures, else errors\n", files, cuts, whole);
}

TEST(Decode, RefusesWhatIsNoPicture) {
  const auto refusal = [](const Bytes& file) { return error_of(ErrorCode::data, [&] { decoded(file, "x.jpg"); }); };
  EXPECT_EQ(refusal({}), "x.jpg: an empty file; JPEG, PNG and BMP are read");
  EXPECT_NE(refusal(bytes_of("<!DOCTYPE html>")).find("a web page"), std::string::npos);
  EXPECT_NE(refusal(bytes_of("GIF89a....")).find("a GIF file"), std::string::npos);
  EXPECT_NE(refusal(bytes_of("RIFF....WEBPVP8 ")).find("a WebP file"), std::string::npos);
  EXPECT_NE(refusal(bytes_of("P6\n1 1\n255\n...")).find("PPM"), std::string::npos);
  EXPECT_NE(refusal(bytes_of("II*\0........")).find("no picture"), std::string::npos);
}

TEST(Decode, LimitsHoldBeforeDecoding) {
  Bytes file = pictures().at("rgb8_0_16x16_i0.png");
  file[16] = 0;
  file[17] = 1;  // 65,552 pixels wide
  EXPECT_NE(error_of(ErrorCode::data, [&] { read_image_info(file, "bomb.png", {}); }).find("the limits are 16384"),
            std::string::npos);
  const Bytes small = bmp_picture(10, 10, 1);
  EXPECT_EQ(error_of(ErrorCode::data, [&] { read_image_info(small, "x", {.max_pixels = 99}); }),
            "x: its header says 10 x 10 pixels; the limits are 16384 a side and 99 in all");
  EXPECT_EQ(read_image_info(small, "x", {.max_pixels = 100}).width, 10);
}

}  // namespace

}  // namespace gle::data::test
