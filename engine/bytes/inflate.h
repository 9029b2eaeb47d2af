#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/error.h"

namespace gle {

// Compressed bytes that a stranger wrote. `most` bytes may come out; a stream that is damaged, cut short or gives more
// is an error of the code given, which names `name`.
struct PackedBytes {
  std::span<const uint8_t> bytes;
  size_t most;
  std::string name;
  ErrorCode code;
};

// DEFLATE (RFC 1951), all of the bytes.
std::vector<uint8_t> inflate(const PackedBytes& packed);
// DEFLATE with a zlib header and an Adler-32 (RFC 1950).
std::vector<uint8_t> inflate_zlib(const PackedBytes& packed);
// gzip (RFC 1952): one member or several, each with its CRC-32 and length.
std::vector<uint8_t> inflate_gzip(const PackedBytes& packed);

// As in zip, gzip and PNG; `before` is that of what comes before.
uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before = 0);

}  // namespace gle
