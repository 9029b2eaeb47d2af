// A build without zlib: stb_image's inflate, with the checks around it that it leaves out.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_NO_FAILURE_STRINGS
#include <stb_image.h>

#include <algorithm>
#include <array>
#include <climits>

#include "data/inflate.h"
#include "engine/error.h"

namespace gle::data {

namespace {

uint32_t crc32_of(std::span<const uint8_t> bytes) {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit) {
      table[i] = table[i] >> 1 ^ ((table[i] & 1) != 0 ? 0xEDB88320U : 0U);
    }
  }
  uint32_t crc = ~0U;
  for (const uint8_t byte : bytes) {
    crc = crc >> 8 ^ table[(crc ^ byte) & 255];
  }
  return ~crc;
}

uint32_t adler32_of(std::span<const uint8_t> bytes) {
  uint32_t a = 1;
  uint32_t b = 0;
  for (const uint8_t byte : bytes) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

// How many bytes of gzip header there are; 0: not one that is read.
size_t gzip_header_bytes(std::span<const uint8_t> packed) {
  if (packed.size() < 18 || packed[0] != 0x1F || packed[1] != 0x8B || packed[2] != 8) {
    return 0;
  }
  const uint8_t flags = packed[3];
  size_t at = 10;
  if ((flags & 4) != 0) {
    at += 2 + static_cast<size_t>(packed[at] | packed[at + 1] << 8);
  }
  for (const int text : {8, 16}) {
    if ((flags & text) != 0) {
      while (at < packed.size() && packed[at] != 0) {
        ++at;
      }
      ++at;
    }
  }
  at += (flags & 2) != 0 ? 2 : 0;
  return at + 8 <= packed.size() ? at : 0;
}

}  // namespace

Bytes inflate_bytes(std::span<const uint8_t> packed, Wrapping wrapping, size_t limit, const std::string& name) {
  const size_t header = wrapping == Wrapping::gzip ? gzip_header_bytes(packed) : 2;
  const size_t trailer = wrapping == Wrapping::gzip ? 8 : 4;
  if (header == 0 || packed.size() < header + trailer || packed.size() > INT_MAX) {
    fail(ErrorCode::data, name, ": compressed data is damaged");
  }
  // Deflate never packs more than 1032 to 1.
  const size_t most = std::min({limit, packed.size() * 1032, size_t{INT_MAX}});
  Bytes out(most);
  // It reads two bytes beyond a stream's last code: the trailer lends them.
  const auto body = packed.subspan(header);
  const int got =
      stbi_zlib_decode_noheader_buffer(reinterpret_cast<char*>(out.data()), static_cast<int>(out.size()),
                                       reinterpret_cast<const char*>(body.data()), static_cast<int>(body.size()));
  if (got < 0) {
    fail(ErrorCode::data, name, ": compressed data is damaged, or unpacks to more than the limit of ", limit, " bytes");
  }
  out.resize(static_cast<size_t>(got));
  const auto tail = packed.subspan(packed.size() - trailer);
  const uint32_t stored = wrapping == Wrapping::gzip
                              ? static_cast<uint32_t>(tail[0] | tail[1] << 8 | tail[2] << 16) | uint32_t{tail[3]} << 24
                              : static_cast<uint32_t>(tail[3] | tail[2] << 8 | tail[1] << 16) | uint32_t{tail[0]} << 24;
  if (stored != (wrapping == Wrapping::gzip ? crc32_of(out) : adler32_of(out))) {
    fail(ErrorCode::data, name, ": compressed data does not match its check sum");
  }
  return out;
}

}  // namespace gle::data
