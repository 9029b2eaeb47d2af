#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/error.h"

namespace gle {

using Bytes = std::span<const std::byte>;

// Walks through bytes that a stranger wrote: little-endian numbers, every step checked against the end. Errors are
// ErrorCode::weights and name the file.
class ByteReader {
 public:
  ByteReader(Bytes bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}

  size_t size() const { return bytes_.size(); }
  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }
  const std::string& name() const { return name_; }

  void seek(uint64_t position) {
    if (position > bytes_.size()) {
      refuse("offset ", position, " lies beyond the end at ", bytes_.size());
    }
    position_ = static_cast<size_t>(position);
  }
  Bytes take(uint64_t count) {
    if (count > left()) {
      refuse(count, " bytes wanted at offset ", position_, ", ", left(), " left: the file is cut short or damaged");
    }
    const Bytes result = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return result;
  }
  uint8_t u8() { return static_cast<uint8_t>(number<1>()); }
  uint16_t u16() { return static_cast<uint16_t>(number<2>()); }
  uint32_t u32() { return static_cast<uint32_t>(number<4>()); }
  uint64_t u64() { return number<8>(); }
  std::string_view text(uint64_t count) {
    const Bytes bytes = take(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorCode::weights, name_, ": ", parts...);
  }

 private:
  template <int kBytes>
  uint64_t number() {
    uint64_t value = 0;
    int shift = 0;
    for (const std::byte byte : take(kBytes)) {
      value |= std::to_integer<uint64_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }

  Bytes bytes_;
  std::string name_;
  size_t position_ = 0;
};

// a * b, or nothing if it does not fit.
inline bool checked_multiply(uint64_t a, uint64_t b, uint64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

}  // namespace gle
