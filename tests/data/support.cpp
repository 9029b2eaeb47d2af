#include "tests/data/support.h"

#include <unistd.h>

#include <cstring>
#include <fstream>

#include "data/csv.h"
#include "data/tar.h"

namespace gle::data::test {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string pattern = (fs::temp_directory_path() / "gle_data_XXXXXX").string();
  if (!::mkdtemp(pattern.data())) {
    throw std::runtime_error("no temporary folder");
  }
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void TempFolder::write(const std::string& relative, std::string_view text) const {
  write(relative, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

void TempFolder::write(const std::string& relative, std::span<const uint8_t> bytes) const {
  fs::create_directories(path(relative).parent_path());
  std::ofstream out(path(relative), std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(out.good()) << relative;
}

std::string fnv(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const uint8_t byte : bytes) {
    hash = (hash ^ byte) * 0x100000001B3;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::span<const uint8_t> pixels_of(const Image& image) { return {image.pixels.data(), image.bytes()}; }

const std::map<std::string, Bytes>& pictures() {
  static const std::map<std::string, Bytes> all = [] {
    const Folder folder(GLE_DATA_FIXTURES);
    const TarShard shard(folder, "images.tar.gz");
    std::map<std::string, Bytes> files;
    for (const TarMember& member : shard.members()) {
      shard.read(member, kMostImageBytes, files[member.name]);
    }
    return files;
  }();
  return all;
}

std::map<std::string, std::map<std::string, std::string>> hashes(const std::string& file) {
  Bytes text;
  Folder(GLE_DATA_FIXTURES).read(file, kMostListBytes, text);
  // The first line says what made it.
  const auto table_begin = std::find(text.begin(), text.end(), '\n') + 1;
  const CsvTable table = read_csv(std::span(table_begin, text.end()), file);
  std::map<std::string, std::map<std::string, std::string>> all;
  for (const CsvTable::Row& row : table.rows) {
    for (size_t i = 1; i < row.fields.size(); ++i) {
      all[row.fields[0]][table.header[i]] = row.fields[i];
    }
  }
  return all;
}

Bytes bmp_picture(int width, int height, uint32_t seed) {
  const int row = (width * 3 + 3) / 4 * 4;
  Bytes file(static_cast<size_t>(54 + row * height));
  const auto put = [&](size_t at, uint32_t value) { std::memcpy(file.data() + at, &value, 4); };
  file[0] = 'B';
  file[1] = 'M';
  put(2, static_cast<uint32_t>(file.size()));
  put(10, 54);
  put(14, 40);
  put(18, static_cast<uint32_t>(width));
  put(22, static_cast<uint32_t>(height));
  put(26, 1 | 24U << 16);
  for (size_t i = 54; i < file.size(); ++i) {
    seed = seed * 1664525 + 1013904223;
    file[i] = static_cast<uint8_t>(seed >> 24);
  }
  return file;
}

Bytes tar_of(const std::vector<std::pair<std::string, Bytes>>& members) {
  Bytes tar;
  for (const auto& [name, body] : members) {
    std::string header(512, '\0');
    std::snprintf(header.data(), 100, "%s", name.c_str());
    std::snprintf(header.data() + 124, 12, "%011llo", static_cast<unsigned long long>(body.size()));
    header[156] = '0';
    std::memcpy(header.data() + 148, "        ", 8);
    unsigned sum = 0;
    for (const char c : header) {
      sum += static_cast<uint8_t>(c);
    }
    std::snprintf(header.data() + 148, 8, "%06o", sum);
    tar.insert(tar.end(), header.begin(), header.end());
    tar.insert(tar.end(), body.begin(), body.end());
    tar.resize((tar.size() + 511) / 512 * 512);
  }
  tar.resize(tar.size() + 1024);
  return tar;
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

std::string error_of(ErrorCode code, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace gle::data::test
