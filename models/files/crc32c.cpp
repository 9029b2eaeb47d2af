// Eight table look-ups for eight bytes at a time ("slicing by eight").
#include "models/files/crc32c.h"

#include <array>
#include <cstring>

namespace gle {

namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // reflected

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    }
    tables[0][byte] = crc;
  }
  for (size_t table = 1; table < tables.size(); ++table) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[table - 1][byte];
      tables[table][byte] = (crc >> 8U) ^ tables[0][crc & 0xffU];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t crc = ~before;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) {
      crc ^= kTables[7 - i][(word >> (8 * i)) & 0xffU];
    }
  }
  for (; left > 0; --left, ++at) {
    crc = (crc >> 8U) ^ kTables[0][(crc ^ static_cast<uint32_t>(*at)) & 0xffU];
  }
  return ~crc;
}

}  // namespace gle
