#include "models/files/sha256.h"

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>

namespace gle {

namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

constexpr std::array<uint32_t, 64> kRounds = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<uint32_t, 8>;

void absorb(State& state, std::string_view block) {
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 64; ++i) {
    w[i / 4] = w[i / 4] << 8U | static_cast<uint8_t>(block[i]);
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3U;
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10U;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t one = h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t two = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const State added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) {
    state[i] += added[i];
  }
}

}  // namespace

std::string sha256(std::string_view bytes) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= 64; bytes.remove_prefix(64)) {
    absorb(state, bytes);
  }
  std::string last(bytes);
  last += '\x80';
  last.resize(last.size() <= 56 ? 56 : 120, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) {
    last += static_cast<char>(static_cast<uint8_t>(bits >> static_cast<unsigned>(shift)));
  }
  for (size_t i = 0; i < last.size(); i += 64) {
    absorb(state, std::string_view(last).substr(i));
  }
  std::string digest;
  for (const uint32_t word : state) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      digest += static_cast<char>(static_cast<uint8_t>(word >> static_cast<unsigned>(shift)));
    }
  }
  return digest;
}

std::string sha256_digits(Bytes bytes) {
  std::string digits;
  for (const char byte : sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    digits += kDigits[static_cast<uint8_t>(byte) >> 4U];
    digits += kDigits[static_cast<uint8_t>(byte) & 0xFU];
  }
  return digits;
}

void require_sha256(Bytes bytes, const std::string& beginning, const std::string& name) {
  if (const std::string found = sha256_digits(bytes); !found.starts_with(beginning)) {
    fail(ErrorCode::weights, name, ": its SHA-256 is ", found, ", not ", beginning,
         beginning.size() < found.size() ? "..." : "", ": it is damaged, or not the file that was meant");
  }
}

void require_sha256_of_name(Bytes bytes, const std::string& name) {
  const std::filesystem::path path(name);
  const std::string stem = path.stem().string();
  const size_t dash = stem.rfind('-');
  if (dash == std::string::npos || (path.extension() != ".pth" && path.extension() != ".pt")) {
    return;
  }
  const std::string beginning = stem.substr(dash + 1);
  const bool digits = beginning.find_first_not_of(kDigits) == std::string::npos;
  const bool letters = beginning.find_first_of("abcdef") != std::string::npos;
  if (beginning.size() >= 8 && beginning.size() <= 64 && digits && letters) {
    require_sha256(bytes, beginning, name);
  }
}

}  // namespace gle
