#include "models/files/sha256.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <string_view>

namespace gle {

namespace {

constexpr size_t kBlock = 64;
constexpr std::string_view kDigits = "0123456789abcdef";

constexpr std::array<uint32_t, 64> kConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<uint32_t, 8>;

void take_block(State& state, const std::byte* block) {
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i) {
    for (size_t byte = 0; byte < 4; ++byte) {
      w[i] = (w[i] << 8U) | std::to_integer<uint32_t>(block[4 * i + byte]);
    }
  }
  for (size_t i = 16; i < w.size(); ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3U)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10U));
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < w.size(); ++i) {
    const uint32_t one =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + kConstants[i] + w[i];
    const uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const State sum = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i) {
    state[i] += sum[i];
  }
}

}  // namespace

std::string sha256(Bytes bytes) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const size_t whole = bytes.size() / kBlock * kBlock;
  for (size_t at = 0; at < whole; at += kBlock) {
    take_block(state, bytes.data() + at);
  }
  // The rest, a bit, zeros and the number of bits.
  std::array<std::byte, 2 * kBlock> last{};
  const Bytes rest = bytes.subspan(whole);
  std::copy(rest.begin(), rest.end(), last.begin());
  last[rest.size()] = std::byte{0x80};
  const size_t length = rest.size() + 9 <= kBlock ? kBlock : 2 * kBlock;
  for (size_t i = 0; i < 8; ++i) {
    last[length - 1 - i] = static_cast<std::byte>((uint64_t{bytes.size()} * 8) >> (8 * i));
  }
  for (size_t at = 0; at < length; at += kBlock) {
    take_block(state, last.data() + at);
  }
  std::string text;
  for (const uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) {
      text += kDigits[(word >> static_cast<unsigned>(shift)) & 0xFU];
    }
  }
  return text;
}

void require_sha256(Bytes bytes, const std::string& beginning, const std::string& name) {
  if (const std::string found = sha256(bytes); !found.starts_with(beginning)) {
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
