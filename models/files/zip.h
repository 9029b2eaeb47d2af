#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "models/files/byte_reader.h"

namespace gle {

struct ZipEntry {
  std::string name;
  Bytes packed;
  uint64_t size = 0;
  uint32_t crc = 0;
  bool deflated = false;
};

// Reads a zip archive in memory: stored and deflated entries, zip64. Nothing is ever written out, so a name is only a
// name. Refused with ErrorCode::weights: what does not fit into the file, entries that overlap or share a name, a
// directory and entries that disagree, encryption, more than 100,000 entries, a ratio above 1000 to 1.
class ZipArchive {
 public:
  // `bytes` must outlive the archive; `name` is for messages.
  ZipArchive(Bytes bytes, std::string name);

  const std::vector<ZipEntry>& entries() const { return entries_; }
  // Null if there is none.
  const ZipEntry* find(std::string_view name) const;
  // The unpacked bytes, checked against their CRC-32; valid as long as the archive.
  Bytes read(const ZipEntry& entry);

  static bool looks_like_zip(Bytes bytes);

 private:
  struct Directory {
    uint64_t offset, bytes, entries;
  };
  Directory find_directory() const;
  Directory find_zip64_directory(size_t end_record) const;
  void read_directory(const Directory& directory);
  ZipEntry read_local(ByteReader& central, uint64_t& begin, uint64_t& end) const;

  Bytes bytes_;
  std::string name_;
  std::vector<ZipEntry> entries_;              // sorted by name
  std::deque<std::vector<uint8_t>> unpacked_;  // what read() inflated
};

}  // namespace gle
