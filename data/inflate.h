#pragma once

#include <cstddef>
#include <span>

#include "data/files.h"

namespace gle::data {

enum class Wrapping { zlib, gzip };

// Unpacks a whole stream; throws ErrorCode::data if it is damaged, cut off, or unpacks to more than `limit` bytes.
Bytes inflate_bytes(std::span<const uint8_t> packed, Wrapping wrapping, size_t limit, const std::string& name);

}  // namespace gle::data
