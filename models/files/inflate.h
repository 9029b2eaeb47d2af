#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/files/byte_reader.h"

namespace gle {

// Undoes DEFLATE (RFC 1951). Throws ErrorCode::weights, naming `name`, unless the stream is sound and gives exactly
// `size` bytes; the caller has made sure that `size` is a number it is ready to allocate.
std::vector<std::byte> inflate(Bytes packed, size_t size, const std::string& name);

}  // namespace gle
