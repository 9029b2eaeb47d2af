#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>

namespace gle {

// Replaces `path` by the pieces, one after the other, or leaves it as it was: they go to a temporary file beside it,
// which is synced, renamed, and its folder synced. Whatever goes wrong throws ErrorCode::io with the file and the
// system's reason, and removes the temporary file.
void write_atomically(const std::filesystem::path& path, std::span<const std::span<const std::byte>> pieces);
inline void write_atomically(const std::filesystem::path& path,
                             std::initializer_list<std::span<const std::byte>> pieces) {
  write_atomically(path, std::span(pieces.begin(), pieces.size()));
}

}  // namespace gle
