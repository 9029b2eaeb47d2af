#include "training/checkpoint_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "engine/error.h"
#include "training/atomic_file.h"
#include "training/crc32c.h"

namespace gle {

namespace {

constexpr std::string_view kMagic = "GLECKPT\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 32;
constexpr size_t kMostNameBytes = 4096;

template <class Number>
void put(std::vector<std::byte>& to, Number value) {
  for (size_t i = 0; i < sizeof(Number); ++i) {
    to.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
}

void put_text(std::vector<std::byte>& to, std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// Reads within bounds; past the end it throws with the file and the part that was being read.
class Reader {
 public:
  Reader(const std::filesystem::path& path, const char* part, std::span<const std::byte> bytes)
      : path_(path), part_(part), left_(bytes) {}

  std::span<const std::byte> take(size_t count) {
    if (count > left_.size()) {
      fail(ErrorCode::weights, path_.string(), ": the ", part_, " is cut short");
    }
    const auto result = left_.first(count);
    left_ = left_.subspan(count);
    return result;
  }

  template <class Number>
  Number number() {
    Number value = 0;
    const auto bytes = take(sizeof(Number));
    for (size_t i = 0; i < sizeof(Number); ++i) {
      value |= static_cast<Number>(static_cast<Number>(bytes[i]) << (8 * i));
    }
    return value;
  }

  size_t left() const { return left_.size(); }

 private:
  const std::filesystem::path& path_;
  const char* part_;
  std::span<const std::byte> left_;
};

std::vector<std::byte> read_whole(const std::filesystem::path& path) {
  std::error_code problem;
  const auto size = std::filesystem::file_size(path, problem);
  std::ifstream file(path, std::ios::binary);
  if (problem || !file) {
    fail(ErrorCode::io, path.string(), ": cannot be read: ", problem ? problem.message() : std::strerror(errno));
  }
  std::vector<std::byte> content(size);
  file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(size));
  if (file.gcount() != static_cast<std::streamsize>(size)) {
    fail(ErrorCode::io, path.string(), ": only ", file.gcount(), " of ", size, " bytes could be read");
  }
  return content;
}

}  // namespace

void CheckpointWriter::add(std::string name, std::span<const std::byte> bytes) {
  invariant(!name.empty() && name.size() <= kMostNameBytes, "a checkpoint section needs a name of reasonable length");
  sections_.push_back({std::move(name), bytes});
}

void CheckpointWriter::write(const std::filesystem::path& path) const {
  std::vector<std::byte> directory;
  for (const Section& section : sections_) {
    put(directory, static_cast<uint32_t>(section.name.size()));
    put_text(directory, section.name);
    put(directory, static_cast<uint64_t>(section.bytes.size()));
    put(directory, crc32c(section.bytes));
  }
  std::vector<std::byte> header;
  put_text(header, kMagic);
  put(header, kVersion);
  put(header, static_cast<uint32_t>(sections_.size()));
  put(header, static_cast<uint64_t>(directory.size()));
  put(header, crc32c(directory));
  put(header, crc32c(header));

  std::vector<std::span<const std::byte>> pieces = {header, directory};
  for (const Section& section : sections_) {
    pieces.push_back(section.bytes);
  }
  write_atomically(path, pieces);
}

CheckpointFile::CheckpointFile(const std::filesystem::path& path) : path_(path), content_(read_whole(path)) {
  const std::span<const std::byte> all(content_);
  Reader reader(path_, "header", all);
  const auto header = reader.take(kHeaderBytes);
  Reader fields(path_, "header", header);
  const auto magic = fields.take(kMagic.size());
  if (!std::ranges::equal(magic, std::as_bytes(std::span(kMagic)))) {
    fail(ErrorCode::weights, path_.string(), ": not a checkpoint of this engine");
  }
  const auto version = fields.number<uint32_t>();
  const auto count = fields.number<uint32_t>();
  const auto directory_size = fields.number<uint64_t>();
  const auto directory_checksum = fields.number<uint32_t>();
  if (fields.number<uint32_t>() != crc32c(header.first(kHeaderBytes - 4))) {
    fail(ErrorCode::weights, path_.string(), ": the header is damaged");
  }
  if (version != kVersion) {
    fail(ErrorCode::weights, path_.string(), ": version ", version, " of the format; this program reads ", kVersion);
  }

  if (directory_size > reader.left()) {
    fail(ErrorCode::weights, path_.string(), ": the directory is cut short");
  }
  const auto directory_bytes = reader.take(directory_size);
  if (crc32c(directory_bytes) != directory_checksum) {
    fail(ErrorCode::weights, path_.string(), ": the directory is damaged");
  }
  Reader directory(path_, "directory", directory_bytes);
  for (uint32_t i = 0; i < count; ++i) {
    const auto name_bytes = directory.take(directory.number<uint32_t>());
    const std::string name(reinterpret_cast<const char*>(name_bytes.data()), name_bytes.size());
    const auto size = directory.number<uint64_t>();
    const auto checksum = directory.number<uint32_t>();
    if (size > reader.left()) {
      fail(ErrorCode::weights, path_.string(), ": section '", name, "' is cut short: ", size, " bytes expected, ",
           reader.left(), " found");
    }
    const auto bytes = reader.take(size);
    if (crc32c(bytes) != checksum) {
      fail(ErrorCode::weights, path_.string(), ": section '", name, "' is damaged");
    }
    sections_.push_back({name, bytes});
  }
  if (directory.left() != 0 || reader.left() != 0) {
    fail(ErrorCode::weights, path_.string(), ": ", directory.left() + reader.left(), " bytes beyond its sections");
  }
}

std::span<const std::byte> CheckpointFile::operator[](std::string_view name) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const Section& section) { return section.name == name; });
  if (found == sections_.end()) {
    fail(ErrorCode::weights, path_.string(), ": there is no section '", name, "'");
  }
  return found->bytes;
}

}  // namespace gle
