#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/error.h"
#include "models/files/file.h"

namespace gle::test {

inline std::string fixture(const std::string& name) { return std::string(GLE_FIXTURES) + name; }

// The message of the Error of `code` that `work` throws; a failure of the test if it throws none.
inline std::string error_of(ErrorCode code, const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Damage {
  int refused = 0;
  int accepted = 0;
};

// Calls `parse` with every truncation of `bytes`, in a block of its own so that a sanitizer sees a step too far.
inline Damage try_truncations(const std::vector<std::byte>& bytes, const std::function<void(Bytes)>& parse,
                              size_t step = 1) {
  Damage result;
  for (size_t size = 0; size < bytes.size(); size += step) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    try {
      parse(cut);
      ++result.accepted;
    } catch (const Error&) {
      ++result.refused;
    }
  }
  return result;
}

// Calls `parse` with `count` copies of `bytes`, a single bit flipped in each.
inline Damage try_bit_flips(std::vector<std::byte> bytes, const std::function<void(Bytes)>& parse, int count) {
  Damage result;
  uint64_t state = 12345;
  for (int i = 0; i < count; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const size_t bit = static_cast<size_t>((state >> 16U) % (bytes.size() * 8));
    const auto mask = static_cast<std::byte>(1U << (bit % 8));
    bytes[bit / 8] ^= mask;
    try {
      parse(bytes);
      ++result.accepted;
    } catch (const Error&) {
      ++result.refused;
    }
    bytes[bit / 8] ^= mask;
  }
  return result;
}

}  // namespace gle::test
