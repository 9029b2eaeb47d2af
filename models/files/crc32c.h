#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gle {

// The CRC-32C (Castagnoli) checksum; `before` is that of what comes before.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);
// The same, on processors without an instruction for it.
uint32_t crc32c_by_tables(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace gle
