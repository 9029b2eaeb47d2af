#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/error.h"

namespace gle::fuzz {

// Whatever the input is, a parser succeeds or throws the one kind of Error that its contract names.
template <class Parse>
int only(ErrorCode kind, Parse&& parse) {
  try {
    parse();
  } catch (const Error& error) {
    invariant(error.code() == kind, error.what());
  }
  return 0;
}

inline std::span<const std::byte> bytes_of(const uint8_t* data, size_t size) {
  return std::as_bytes(std::span(data, size));
}

}  // namespace gle::fuzz
