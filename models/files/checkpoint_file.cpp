#include "models/files/checkpoint_file.h"

#include <algorithm>

#include "models/files/atomic_file.h"
#include "models/files/crc32c.h"
#include "models/files/file.h"

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

}  // namespace

void CheckpointWriter::add(std::string name, std::span<const std::byte> bytes) {
  invariant(!name.empty() && name.size() <= kMostNameBytes, "a checkpoint section needs a name of reasonable length");
  sections_.push_back({std::move(name), bytes});
}

void CheckpointWriter::write(const std::filesystem::path& path) const {
  std::vector<std::byte> directory;
  for (const CheckpointSection& section : sections_) {
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
  for (const CheckpointSection& section : sections_) {
    pieces.push_back(section.bytes);
  }
  write_atomically(path, pieces);
}

bool looks_like_checkpoint(Bytes bytes) {
  return bytes.size() >= kMagic.size() &&
         std::ranges::equal(bytes.first(kMagic.size()), std::as_bytes(std::span(kMagic)));
}

std::vector<CheckpointSection> parse_checkpoint(Bytes bytes, const std::string& name) {
  if (!looks_like_checkpoint(bytes)) {
    fail(ErrorCode::weights, name, ": not a checkpoint of this engine");
  }
  if (bytes.size() < kHeaderBytes) {
    fail(ErrorCode::weights, name, ": the header is cut short");
  }
  ByteReader in(bytes, name);
  const Bytes header = in.take(kHeaderBytes);
  ByteReader fields(header, name);
  fields.seek(kMagic.size());
  const uint32_t version = fields.u32();
  const uint32_t count = fields.u32();
  const uint64_t directory_size = fields.u64();
  const uint32_t directory_checksum = fields.u32();
  if (fields.u32() != crc32c(header.first(kHeaderBytes - 4))) {
    in.refuse("the header is damaged");
  }
  if (version != kVersion) {
    in.refuse("version ", version, " of the format; this program reads ", kVersion);
  }
  if (directory_size > in.left()) {
    in.refuse("the directory is cut short");
  }
  const Bytes directory_bytes = in.take(directory_size);
  if (crc32c(directory_bytes) != directory_checksum) {
    in.refuse("the directory is damaged");
  }
  ByteReader directory(directory_bytes, name);
  std::vector<CheckpointSection> sections;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t name_length = directory.u32();
    const std::string section_name(directory.text(name_length));
    const uint64_t size = directory.u64();
    const uint32_t checksum = directory.u32();
    if (size > in.left()) {
      in.refuse("section '", section_name, "' is cut short: ", size, " bytes expected, ", in.left(), " found");
    }
    const Bytes content = in.take(size);
    if (crc32c(content) != checksum) {
      in.refuse("section '", section_name, "' is damaged");
    }
    sections.push_back({section_name, content});
  }
  if (directory.left() != 0 || in.left() != 0) {
    in.refuse(directory.left() + in.left(), " bytes beyond its sections");
  }
  return sections;
}

Bytes section(std::span<const CheckpointSection> sections, std::string_view wanted, const std::string& file) {
  const auto found = std::ranges::find(sections, wanted, &CheckpointSection::name);
  if (found == sections.end()) {
    fail(ErrorCode::weights, file, ": there is no section '", wanted, "'");
  }
  return found->bytes;
}

CheckpointFile::CheckpointFile(const std::filesystem::path& path) : CheckpointFile(path, read_file(path.string())) {}

CheckpointFile::CheckpointFile(std::filesystem::path path, std::vector<std::byte> content)
    : path_(std::move(path)), content_(std::move(content)), sections_(parse_checkpoint(content_, path_.string())) {}

}  // namespace gle
