#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/files.h"
#include "data/image.h"
#include "engine/error.h"

namespace gle::data::test {

// A folder that is gone at the end of the test.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::filesystem::path path(const std::string& relative = "") const { return path_ / relative; }
  // Writes a file, making the folders on its way.
  void write(const std::string& relative, std::string_view text) const;
  void write(const std::string& relative, std::span<const uint8_t> bytes) const;

 private:
  std::filesystem::path path_;
};

// 64-bit FNV-1a, as tests/oracle/make_image_fixtures.py has it.
std::string fnv(std::span<const uint8_t> bytes);
std::span<const uint8_t> pixels_of(const Image& image);

// The generated pictures of tests/data/fixtures, by name.
const std::map<std::string, Bytes>& pictures();
// A fixture's table: hashes of Pillow's pixels by column, by picture.
std::map<std::string, std::map<std::string, std::string>> hashes(const std::string& file);

// A picture in BMP, whose bytes are pixels: for tests that are not about decoding.
Bytes bmp_picture(int width, int height, uint32_t seed);
// Members with a path and a body, as a tar archive.
Bytes tar_of(const std::vector<std::pair<std::string, Bytes>>& members);
Bytes bytes_of(std::string_view text);

// The message of the Error that `work` throws, which must have this code; "" and a failed test if it throws none.
std::string error_of(ErrorCode code, const std::function<void()>& work);

}  // namespace gle::data::test
