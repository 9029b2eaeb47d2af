#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/error.h"
#include "models/files/byte_reader.h"

namespace gle::fuzz {

// Whatever the bytes are, a parser gives data or an Error of ErrorCode::weights.
template <class Parse>
int run(const uint8_t* data, size_t size, Parse&& parse) {
  try {
    parse(std::as_bytes(std::span(data, size)));
  } catch (const Error& error) {
    invariant(error.code() == ErrorCode::weights, "a parser threw another kind of error");
  }
  return 0;
}

}  // namespace gle::fuzz
