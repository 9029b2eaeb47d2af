#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gle {

// Named sections of bytes in one file, of which every byte is under a checksum: a file that was cut or changed anywhere
// is refused, and the message names the section. Little-endian:
//   magic "GLECKPT\n", u32 version, u32 sections, u64 directory bytes, u32 CRC-32C of the directory, u32 of these 28
//   directory: per section u32 name length, name, u64 bytes, u32 CRC-32C of its bytes
//   the sections' bytes, one after the other, to the end of the file
// The section "weights" is a whole safetensors file: read_weights() opens a checkpoint as any other file of weights.
inline constexpr std::string_view kWeightsSection = "weights";

struct CheckpointSection {
  std::string name;
  std::span<const std::byte> bytes;
};

class CheckpointWriter {
 public:
  // `bytes` must stay until write().
  void add(std::string name, std::span<const std::byte> bytes);
  // Replaces the file as a whole or not at all.
  void write(const std::filesystem::path& path) const;

 private:
  std::vector<CheckpointSection> sections_;
};

bool looks_like_checkpoint(std::span<const std::byte> bytes);
// Views of the sections; anything wrong throws ErrorCode::weights.
std::vector<CheckpointSection> parse_checkpoint(std::span<const std::byte> bytes, const std::string& name);
// The section of that name; throws ErrorCode::weights if there is none.
std::span<const std::byte> section(std::span<const CheckpointSection> sections, std::string_view wanted,
                                   const std::string& file);

class CheckpointFile {
 public:
  // Reads and checks all of it; anything wrong throws ErrorCode::weights, or ErrorCode::io if it cannot be read.
  explicit CheckpointFile(const std::filesystem::path& path);
  // The same of a file that somebody else has read.
  CheckpointFile(std::filesystem::path path, std::vector<std::byte> content);

  const std::vector<CheckpointSection>& sections() const { return sections_; }
  std::span<const std::byte> operator[](std::string_view name) const {
    return section(sections_, name, path_.string());
  }
  const std::filesystem::path& path() const { return path_; }
  const std::vector<std::byte>& content() const { return content_; }

 private:
  std::filesystem::path path_;
  std::vector<std::byte> content_;
  std::vector<CheckpointSection> sections_;
};

}  // namespace gle
