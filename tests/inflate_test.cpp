#include "engine/bytes/inflate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/expect_error.h"

namespace gle::test {
namespace {

using Octets = std::vector<uint8_t>;

// The text of tests/oracle/packed_fixtures.py.
Octets text() {
  std::string lines;
  for (int i = 0; i < 400; ++i) {
    const std::string n = std::to_string(i);
    lines += "line " + n + ": " + n + " squared is " + std::to_string(i * i) + "\n";
  }
  Octets all(lines.begin(), lines.end());
  for (int i = 0; i < 3000; ++i) {
    all.push_back(static_cast<uint8_t>((i * i * 7 + i / 13) % 251));
  }
  all.insert(all.end(), 5000, 'a');
  return all;
}

Octets packed(const char* name) {
  std::ifstream file(std::string(GLE_PACKED) + "/" + name, std::ios::binary);
  Octets bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(bytes.empty()) << name;
  return bytes;
}

struct Case {
  const char* file;
  Octets (*unpack)(const PackedBytes&);
  bool checked;  // by a CRC of the whole; the Adler-32 of zlib misses a few
};
constexpr Case kCases[] = {{"stored.deflate", inflate, false},  {"fixed.deflate", inflate, false},
                           {"dynamic.deflate", inflate, false}, {"literals.deflate", inflate, false},
                           {"text.zlib", inflate_zlib, false},  {"text.gz", inflate_gzip, true}};

TEST(Inflate, EveryKindOfStreamGivesTheText) {
  for (const Case& c : kCases) {
    EXPECT_EQ(c.unpack({packed(c.file), text().size(), c.file, ErrorCode::data}), text()) << c.file;
  }
}

TEST(Inflate, MoreThanExpectedIsRefused) {
  for (const Case& c : kCases) {
    EXPECT_ERROR(c.unpack({packed(c.file), text().size() - 1, c.file, ErrorCode::weights}), ErrorCode::weights,
                 {c.file, "more than"});
  }
}

TEST(Inflate, EveryTruncationIsRefused) {
  for (const Case& c : kCases) {
    const Octets whole = packed(c.file);
    const size_t first_member = c.unpack == inflate_gzip ? whole.size() : 0;
    for (size_t size = 0; size < whole.size(); ++size) {
      try {
        const Octets found = c.unpack({std::span(whole).first(size), text().size(), c.file, ErrorCode::data});
        EXPECT_TRUE(first_member != 0 && found.size() == 7000) << c.file << " cut to " << size;  // a whole member
      } catch (const Error& e) {
        ASSERT_EQ(e.code(), ErrorCode::data);
      }
    }
  }
}

TEST(Inflate, FlippedBitsAreRefusedOrHarmless) {
  for (const Case& c : kCases) {
    Octets bytes = packed(c.file);
    for (size_t bit = 0; bit < bytes.size() * 8; bit += 5) {
      bytes[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
      try {
        const Octets found = c.unpack({bytes, text().size(), c.file, ErrorCode::data});
        EXPECT_TRUE(!c.checked || found == text()) << c.file << ", bit " << bit;
      } catch (const Error& e) {
        ASSERT_EQ(e.code(), ErrorCode::data);
      }
      bytes[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
    }
  }
}

TEST(Inflate, Crc32KnownAnswer) {
  const std::string digits = "123456789";
  const Octets bytes(digits.begin(), digits.end());
  EXPECT_EQ(crc32(bytes), 0xCBF43926U);
  EXPECT_EQ(crc32(std::span(bytes).subspan(4), crc32(std::span(bytes).first(4))), 0xCBF43926U);
}

}  // namespace
}  // namespace gle::test
