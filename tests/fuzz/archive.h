#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bytes/inflate.h"
#include "models/weights.h"
#include "tests/fuzz/fuzz.h"

namespace gle::fuzz {

// The input as a sound zip archive: else its checksums and its directory would keep every change from the parser behind
// it. Of each name the input gives two bytes of length and that many bytes; none of length 0 is there.
class Archive {
 public:
  Archive(std::span<const uint8_t> input, std::initializer_list<std::string_view> names) {
    std::string directory;
    unsigned entries = 0;
    for (const std::string_view name : names) {
      if (input.size() < 2) {
        break;
      }
      const size_t wanted = input[0] + input[1] * 256U;
      input = input.subspan(2);
      const std::span<const uint8_t> content = input.first(std::min(wanted, input.size()));
      input = input.subspan(content.size());
      if (!content.empty()) {
        add(name, content, directory);
        ++entries;
      }
    }
    const size_t begin = file_.size();
    file_ += directory;
    put(file_, {{0x06054b50, 4}, {0, 4}, {entries, 2}, {entries, 2}, {directory.size(), 4}, {begin, 4}, {0, 2}});
  }

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(file_)); }

 private:
  struct Field {
    uint64_t value;
    int bytes;
  };
  static void put(std::string& to, std::initializer_list<Field> fields) {
    for (const Field& field : fields) {
      for (int i = 0; i < field.bytes; ++i) {
        to.push_back(static_cast<char>(field.value >> (8 * i)));
      }
    }
  }
  void add(std::string_view name, std::span<const uint8_t> content, std::string& directory) {
    const uint64_t begin = file_.size(), crc = crc32(content), size = content.size();
    put(file_, {{0x04034b50, 4}, {20, 2}, {0, 8}, {crc, 4}, {size, 4}, {size, 4}, {name.size(), 2}, {0, 2}});
    file_.append(name).append(content.begin(), content.end());
    put(directory, {{0x02014b50, 4}, {20, 4}, {0, 8}, {crc, 4}, {size, 4}, {size, 4}, {name.size(), 2}, {0, 12}});
    put(directory, {{begin, 4}});
    directory.append(name);
  }

  std::string file_;
};

inline int read_archive(const uint8_t* data, size_t size, std::initializer_list<std::string_view> names) {
  const Archive archive({data, size}, names);
  return only(ErrorCode::weights, [&] { (void)parse_weights(archive.bytes(), "x"); });
}

}  // namespace gle::fuzz
