// DEFLATE: blocks of literal bytes and (length, distance) copies, coded by canonical prefix codes. Codes of up to
// kTableBits bits are found by one look into a table, longer ones bit by bit.
#include "engine/bytes/inflate.h"

#include <algorithm>
#include <array>

namespace gle {

namespace {

constexpr int kLongestCode = 15;
constexpr int kTableBits = 10;
constexpr std::array<uint16_t, 29> kLengthBase = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                                  31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::array<uint8_t, 29> kLengthBits = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr std::array<uint16_t, 30> kDistanceBase = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                                    33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                                    1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr std::array<uint8_t, 19> kOrderOfLengths = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

// Bits from the low end of each byte on.
class BitReader {
 public:
  explicit BitReader(const PackedBytes& packed) : packed_(packed) {}

  uint32_t bits(int count) {
    const auto value = static_cast<uint32_t>(peek() & ((uint64_t{1} << count) - 1));
    drop(count);
    return value;
  }
  // At least 15 bits, zeros behind the end.
  uint64_t peek() {
    while (held_ <= 56 && position_ < packed_.bytes.size()) {
      buffer_ |= static_cast<uint64_t>(packed_.bytes[position_++]) << held_;
      held_ += 8;
    }
    return buffer_;
  }
  void drop(int count) {
    if (count > held_) {
      refuse("it is cut short");
    }
    buffer_ >>= count;
    held_ -= count;
  }
  // Of the byte after the one that the last bits came from.
  size_t byte_position() const { return position_ - static_cast<size_t>(held_ / 8); }
  void seek(size_t position) {
    position_ = position;
    buffer_ = 0;
    held_ = 0;
  }
  std::span<const uint8_t> take(size_t count) {
    const size_t begin = byte_position();
    if (count > packed_.bytes.size() - begin) {
      refuse("it is cut short");
    }
    seek(begin + count);
    return packed_.bytes.subspan(begin, count);
  }
  size_t left() const { return packed_.bytes.size() - byte_position(); }

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(packed_.code, packed_.name, ": compressed data is damaged: ", parts...);
  }
  [[noreturn]] void too_much() const {
    fail(packed_.code, packed_.name, ": unpacks to more than the ", packed_.most, " bytes expected");
  }

 private:
  const PackedBytes& packed_;
  size_t position_ = 0;
  uint64_t buffer_ = 0;
  int held_ = 0;
};

class PrefixCode {
 public:
  PrefixCode(std::span<const uint8_t> lengths, const BitReader& where) {
    for (const uint8_t length : lengths) {
      ++counts_[length];
    }
    counts_[0] = 0;
    int free = 1;
    for (int length = 1; length <= kLongestCode; ++length) {
      free = 2 * free - counts_[static_cast<size_t>(length)];
      if (free < 0) {
        where.refuse("too many codes of length ", length);
      }
    }
    std::array<uint16_t, kLongestCode + 2> place{};
    std::array<uint32_t, kLongestCode + 2> next{};
    for (size_t length = 1; length <= kLongestCode; ++length) {
      place[length + 1] = static_cast<uint16_t>(place[length] + counts_[length]);
      next[length + 1] = (next[length] + counts_[length]) * 2;
    }
    for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      const size_t length = lengths[symbol];
      if (length == 0) {
        continue;
      }
      symbols_[place[length]++] = static_cast<uint16_t>(symbol);
      const uint32_t code = next[length]++;
      if (length <= kTableBits) {
        enter(code, length, symbol);
      }
    }
  }

  uint32_t read(BitReader& in) const {
    const uint64_t ahead = in.peek();
    const uint16_t entry = table_[ahead & ((1U << kTableBits) - 1)];
    if (entry != 0) {
      in.drop(entry & 15);
      return entry >> 4;
    }
    return read_long(in, ahead);
  }

 private:
  // The stream has a code's first bit lowest: all entries that end in it.
  void enter(uint32_t code, size_t length, size_t symbol) {
    uint32_t reversed = 0;
    for (size_t bit = 0; bit < length; ++bit) {
      reversed |= (code >> bit & 1U) << (length - 1 - bit);
    }
    for (size_t at = reversed; at < table_.size(); at += size_t{1} << length) {
      table_[at] = static_cast<uint16_t>(symbol << 4 | length);
    }
  }
  uint32_t read_long(BitReader& in, uint64_t ahead) const {
    int code = 0;
    int first = 0;
    int index = 0;
    for (int length = 1; length <= kLongestCode; ++length) {
      code |= static_cast<int>(ahead >> (length - 1) & 1U);
      const int count = counts_[static_cast<size_t>(length)];
      if (code - first < count) {
        in.drop(length);
        return symbols_[static_cast<size_t>(index + code - first)];
      }
      index += count;
      first = 2 * (first + count);
      code *= 2;
    }
    in.refuse("no such code");
  }

  std::array<uint16_t, kLongestCode + 1> counts_{};
  std::array<uint16_t, 288> symbols_{};
  std::array<uint16_t, 1 << kTableBits> table_{};  // symbol * 16 + length; 0: longer, or none
};

struct Output {
  std::vector<uint8_t> bytes;
  size_t most;

  bool has_room(size_t count) const { return count <= most - bytes.size(); }
};

void copy_stored(BitReader& in, Output& out) {
  in.seek(in.byte_position());
  const auto head = in.take(4);
  const auto length = static_cast<size_t>(head[0] | head[1] << 8);
  if ((length ^ static_cast<size_t>(head[2] | head[3] << 8)) != 0xFFFF) {
    in.refuse("length of a stored block");
  }
  if (!out.has_room(length)) {
    in.too_much();
  }
  const auto stored = in.take(length);
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
      if (!out.has_room(1)) {
        in.too_much();
      }
      out.bytes.push_back(static_cast<uint8_t>(symbol));
      continue;
    }
    const size_t row = symbol - kEnd - 1;
    if (row >= kLengthBase.size()) {
      in.refuse("length symbol ", symbol);
    }
    const size_t length = kLengthBase[row] + in.bits(kLengthBits[row]);
    const uint32_t place = distances.read(in);
    if (place >= kDistanceBase.size()) {
      in.refuse("distance symbol ", place);
    }
    const size_t distance = kDistanceBase[place] + in.bits(place < 2 ? 0 : static_cast<int>(place / 2 - 1));
    const size_t size = out.bytes.size();
    if (distance > size) {
      in.refuse("a copy from ", distance, " back at ", size);
    }
    if (!out.has_room(length)) {
      in.too_much();
    }
    out.bytes.resize(size + length);
    for (size_t i = size; i < size + length; ++i) {  // may overlap itself
      out.bytes[i] = out.bytes[i - distance];
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
  copy_coded(in, PrefixCode(lengths, in), PrefixCode(fives, in), out);
}

void copy_with_own_codes(BitReader& in, Output& out) {
  const size_t literal_count = 257 + in.bits(5);
  const size_t distance_count = 1 + in.bits(5);
  const size_t length_count = 4 + in.bits(4);
  if (literal_count > 286 || distance_count > 30) {
    in.refuse(literal_count, " literal and ", distance_count, " distance codes");
  }
  std::array<uint8_t, 19> code_lengths{};
  for (size_t i = 0; i < length_count; ++i) {
    code_lengths[kOrderOfLengths[i]] = static_cast<uint8_t>(in.bits(3));
  }
  const PrefixCode code(code_lengths, in);
  std::array<uint8_t, 286 + 30> lengths{};
  const size_t wanted = literal_count + distance_count;
  for (size_t i = 0; i < wanted;) {
    const uint32_t symbol = code.read(in);
    if (symbol < 16) {
      lengths[i++] = static_cast<uint8_t>(symbol);
      continue;
    }
    if (symbol == 16 && i == 0) {
      in.refuse("nothing to repeat");
    }
    const uint8_t value = symbol == 16 ? lengths[i - 1] : uint8_t{0};
    const size_t times = symbol == 16 ? 3 + in.bits(2) : symbol == 17 ? 3 + in.bits(3) : 11 + in.bits(7);
    if (times > wanted - i) {
      in.refuse("too many code lengths");
    }
    std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(i), times, value);
    i += times;
  }
  const std::span<const uint8_t> all(lengths);
  copy_coded(in, PrefixCode(all.first(literal_count), in), PrefixCode(all.subspan(literal_count, distance_count), in),
             out);
}

// One stream, from where `in` stands to its last block; `in` then stands at the next whole byte.
void inflate_stream(BitReader& in, Output& out) {
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
        in.refuse("unknown kind of block");
    }
  }
  in.seek(in.byte_position());
}

uint32_t adler32(std::span<const uint8_t> bytes) {
  constexpr size_t kSafe = 5552;  // as many as 32 bits can add up before the remainder is due
  uint32_t a = 1;
  uint32_t b = 0;
  while (!bytes.empty()) {
    for (const uint8_t byte : bytes.first(std::min(kSafe, bytes.size()))) {
      a += byte;
      b += a;
    }
    a %= 65521;
    b %= 65521;
    bytes = bytes.subspan(std::min(kSafe, bytes.size()));
  }
  return b << 16 | a;
}

uint32_t little_endian(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
         static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

void skip_gzip_header(BitReader& in) {
  constexpr uint8_t kChecksum = 2;
  constexpr uint8_t kExtra = 4;
  constexpr uint8_t kName = 8;
  constexpr uint8_t kComment = 16;
  const auto head = in.take(10);
  if (head[0] != 0x1F || head[1] != 0x8B || head[2] != 8 || head[3] >= 32) {
    in.refuse("no gzip header");
  }
  const uint8_t flags = head[3];
  if ((flags & kExtra) != 0) {
    const auto size = in.take(2);
    in.take(static_cast<size_t>(size[0] | size[1] << 8));
  }
  for (const uint8_t text : {kName, kComment}) {
    while ((flags & text) != 0 && in.take(1)[0] != 0) {
    }
  }
  in.take((flags & kChecksum) != 0 ? 2 : 0);
}

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1U) != 0 ? 0xEDB88320U : 0U);
    }
    table[i] = value;
  }
  return table;
}

}  // namespace

std::vector<uint8_t> inflate(const PackedBytes& packed) {
  BitReader in(packed);
  Output out{.bytes = {}, .most = packed.most};
  inflate_stream(in, out);
  if (in.left() != 0) {
    in.refuse(in.left(), " bytes behind its end");
  }
  return std::move(out.bytes);
}

std::vector<uint8_t> inflate_zlib(const PackedBytes& packed) {
  BitReader in(packed);
  const auto head = in.take(2);
  if ((head[0] & 15) != 8 || (head[0] << 8 | head[1]) % 31 != 0 || (head[1] & 32) != 0) {
    in.refuse("no zlib header");
  }
  Output out{.bytes = {}, .most = packed.most};
  inflate_stream(in, out);
  const auto sum = in.take(4);
  if (__builtin_bswap32(little_endian(sum)) != adler32(out.bytes)) {
    in.refuse("its check sum does not fit");
  }
  return std::move(out.bytes);
}

std::vector<uint8_t> inflate_gzip(const PackedBytes& packed) {
  BitReader in(packed);
  Output out{.bytes = {}, .most = packed.most};
  do {
    skip_gzip_header(in);
    const size_t begin = out.bytes.size();
    inflate_stream(in, out);
    const auto tail = in.take(8);
    const auto member = std::span<const uint8_t>(out.bytes).subspan(begin);
    if (little_endian(tail) != crc32(member) ||
        little_endian(tail.subspan(4)) != static_cast<uint32_t>(member.size())) {
      in.refuse("its check sum does not fit");
    }
  } while (in.left() != 0);
  return std::move(out.bytes);
}

uint32_t crc32(std::span<const uint8_t> bytes, uint32_t before) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~before;
  for (const uint8_t byte : bytes) {
    crc = kTable[(crc ^ byte) & 0xFFU] ^ (crc >> 8);
  }
  return ~crc;
}

}  // namespace gle
