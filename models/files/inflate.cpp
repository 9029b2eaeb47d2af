// DEFLATE: blocks of literal bytes and (length, distance) copies, coded by canonical prefix codes. A code is kept as
// the number of codes of each length and the symbols in their order; one bit at a time finds the symbol. Slow beside a
// table, but what is read here is small.
#include "models/files/inflate.h"

#include <array>

namespace gle {

namespace {

constexpr int kLongestCode = 15;
constexpr std::array<uint16_t, 29> kLengthBase = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                  31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<uint8_t, 29> kLengthBits = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr std::array<uint16_t, 30> kDistanceBase = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                                    33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                                    1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr std::array<uint8_t, 19> kOrderOfLengths = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

class BitReader {
 public:
  explicit BitReader(ByteReader& bytes) : bytes_(bytes) {}

  uint32_t bits(int count) {
    while (held_ < count) {
      buffer_ |= static_cast<uint64_t>(bytes_.u8()) << held_;
      held_ += 8;
    }
    const auto value = static_cast<uint32_t>(buffer_ & ((uint64_t{1} << count) - 1));
    buffer_ >>= count;
    held_ -= count;
    return value;
  }
  // Whole bytes are never held, so what is left is the rest of the current one.
  void skip_to_byte() { buffer_ = 0, held_ = 0; }
  ByteReader& bytes() { return bytes_; }

 private:
  ByteReader& bytes_;
  uint64_t buffer_ = 0;
  int held_ = 0;
};

class PrefixCode {
 public:
  PrefixCode(std::span<const uint8_t> lengths, const ByteReader& where) {
    for (const uint8_t length : lengths) {
      ++counts_[length];
    }
    counts_[0] = 0;
    int free = 1;
    for (int length = 1; length <= kLongestCode; ++length) {
      free = 2 * free - counts_[static_cast<size_t>(length)];
      if (free < 0) {
        where.refuse("damaged deflate stream: too many codes of length ", length);
      }
    }
    std::array<uint16_t, kLongestCode + 2> next{};
    for (size_t length = 1; length <= kLongestCode; ++length) {
      next[length + 1] = static_cast<uint16_t>(next[length] + counts_[length]);
    }
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] != 0) {
        symbols_[next[lengths[symbol]]++] = static_cast<uint16_t>(symbol);
      }
    }
  }

  uint32_t read(BitReader& in) const {
    int code = 0;
    int first = 0;
    int index = 0;
    for (size_t length = 1; length <= kLongestCode; ++length) {
      code |= static_cast<int>(in.bits(1));
      const int count = counts_[length];
      if (code - first < count) {
        return symbols_[static_cast<size_t>(index + code - first)];
      }
      index += count;
      first = 2 * (first + count);
      code *= 2;
    }
    in.bytes().refuse("damaged deflate stream: no such code");
  }

 private:
  std::array<uint16_t, kLongestCode + 1> counts_{};
  std::array<uint16_t, 288> symbols_{};
};

struct Output {
  std::vector<std::byte> bytes;
  size_t limit;
};

void copy_stored(BitReader& in, Output& out) {
  in.skip_to_byte();
  const uint16_t length = in.bytes().u16();
  const uint16_t complement = in.bytes().u16();
  if ((length ^ complement) != 0xFFFF) {
    in.bytes().refuse("damaged deflate stream: length of a stored block");
  }
  if (length > out.limit - out.bytes.size()) {
    in.bytes().refuse("the deflate stream holds more than the ", out.limit, " bytes declared");
  }
  const Bytes stored = in.bytes().take(length);
  out.bytes.insert(out.bytes.end(), stored.begin(), stored.end());
}

void copy_coded(BitReader& in, const PrefixCode& literals, const PrefixCode& distances, Output& out) {
  constexpr uint32_t kEnd = 256;
  for (;;) {
    const uint32_t symbol = literals.read(in);
    if (symbol == kEnd) {
      return;
    }
    if (symbol < kEnd) {
      if (out.bytes.size() == out.limit) {
        in.bytes().refuse("the deflate stream holds more than the ", out.limit, " bytes declared");
      }
      out.bytes.push_back(static_cast<std::byte>(symbol));
      continue;
    }
    const size_t row = symbol - kEnd - 1;
    if (row >= kLengthBase.size()) {
      in.bytes().refuse("damaged deflate stream: length symbol ", symbol);
    }
    const size_t length = kLengthBase[row] + in.bits(kLengthBits[row]);
    const uint32_t place = distances.read(in);
    if (place >= kDistanceBase.size()) {
      in.bytes().refuse("damaged deflate stream: distance symbol ", place);
    }
    const size_t distance = kDistanceBase[place] + in.bits(place < 2 ? 0 : static_cast<int>(place / 2 - 1));
    if (distance > out.bytes.size() || length > out.limit - out.bytes.size()) {
      in.bytes().refuse("damaged deflate stream: a copy of ", length, " bytes from ", distance, " back at ",
                        out.bytes.size(), " of ", out.limit);
    }
    for (size_t i = 0; i < length; ++i) {
      out.bytes.push_back(out.bytes[out.bytes.size() - distance]);
    }
  }
}

void copy_with_fixed_codes(BitReader& in, Output& out) {
  std::array<uint8_t, 288> lengths;
  for (size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  }
  std::array<uint8_t, 30> fives;
  fives.fill(5);
  copy_coded(in, PrefixCode(lengths, in.bytes()), PrefixCode(fives, in.bytes()), out);
}

void copy_with_own_codes(BitReader& in, Output& out) {
  const size_t literal_count = 257 + in.bits(5);
  const size_t distance_count = 1 + in.bits(5);
  const size_t length_count = 4 + in.bits(4);
  if (literal_count > 286 || distance_count > 30) {
    in.bytes().refuse("damaged deflate stream: ", literal_count, " literal and ", distance_count, " distance codes");
  }
  std::array<uint8_t, 19> code_lengths{};
  for (size_t i = 0; i < length_count; ++i) {
    code_lengths[kOrderOfLengths[i]] = static_cast<uint8_t>(in.bits(3));
  }
  const PrefixCode code(code_lengths, in.bytes());
  std::array<uint8_t, 286 + 30> lengths{};
  const size_t wanted = literal_count + distance_count;
  for (size_t i = 0; i < wanted;) {
    const uint32_t symbol = code.read(in);
    if (symbol < 16) {
      lengths[i++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && i == 0) {
      in.bytes().refuse("damaged deflate stream: nothing to repeat");
    }
    const uint8_t value = symbol == 16 ? lengths[i - 1] : uint8_t{0};
    const size_t times = symbol == 16 ? 3 + in.bits(2) : symbol == 17 ? 3 + in.bits(3) : 11 + in.bits(7);
    if (times > wanted - i) {
      in.bytes().refuse("damaged deflate stream: too many code lengths");
    }
    for (size_t k = 0; k < times; ++k) {
      lengths[i++] = value;
    }
  }
  const std::span<const uint8_t> all(lengths);
  copy_coded(in, PrefixCode(all.first(literal_count), in.bytes()),
             PrefixCode(all.subspan(literal_count, distance_count), in.bytes()), out);
}

}  // namespace

std::vector<std::byte> inflate(Bytes packed, size_t size, const std::string& name) {
  ByteReader bytes(packed, name);
  BitReader in(bytes);
  Output out{.bytes = {}, .limit = size};
  out.bytes.reserve(size);
  for (bool last = false; !last;) {
    last = in.bits(1) != 0;
    switch (in.bits(2)) {
      case 0:
        copy_stored(in, out);
        break;
      case 1:
        copy_with_fixed_codes(in, out);
        break;
      case 2:
        copy_with_own_codes(in, out);
        break;
      default:
        bytes.refuse("damaged deflate stream: unknown kind of block");
    }
  }
  if (out.bytes.size() != size || bytes.left() != 0) {
    bytes.refuse("the deflate stream gives ", out.bytes.size(), " bytes, ", size, " were declared, and leaves ",
                 bytes.left(), " unread");
  }
  return std::move(out.bytes);
}

}  // namespace gle
