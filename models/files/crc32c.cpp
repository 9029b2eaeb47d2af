// The processor's instruction for it where there is one, else eight table look-ups for eight bytes at a time ("slicing
// by eight").
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

uint64_t word_at(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

uint32_t with_bytes(uint32_t crc, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    crc = (crc >> 8U) ^ kTables[0][(crc ^ static_cast<uint32_t>(byte)) & 0xffU];
  }
  return crc;
}

#if defined(__x86_64__)
[[gnu::target("sse4.2")]] uint32_t crc32c_by_instruction(std::span<const std::byte> bytes, uint32_t before) {
  uint64_t crc = ~before;
  const size_t whole = bytes.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    crc = __builtin_ia32_crc32di(crc, word_at(bytes.data() + i));
  }
  return ~with_bytes(static_cast<uint32_t>(crc), bytes.subspan(whole));
}
#endif

}  // namespace

uint32_t crc32c_by_tables(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t crc = ~before;
  const size_t whole = bytes.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    const uint64_t word = word_at(bytes.data() + i) ^ crc;
    crc = 0;
    for (size_t byte = 0; byte < 8; ++byte) {
      crc ^= kTables[7 - byte][(word >> (8 * byte)) & 0xffU];
    }
  }
  return ~with_bytes(crc, bytes.subspan(whole));
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") != 0) {
    return crc32c_by_instruction(bytes, before);
  }
#endif
  return crc32c_by_tables(bytes, before);
}

}  // namespace gle
