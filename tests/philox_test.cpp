#include "engine/math/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace gle {
namespace {

using Words = std::array<uint32_t, 4>;

Words words_of(const PhiloxBlock& block) { return {block.word[0], block.word[1], block.word[2], block.word[3]}; }

Words philox_of(const Words& counter, uint32_t key0, uint32_t key1) {
  return words_of(philox({{counter[0], counter[1], counter[2], counter[3]}}, key0, key1));
}

// The known answers that Random123 1.09 comes with (kat_vectors, philox4x32 10).
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox_of({0, 0, 0, 0}, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox_of({~0U, ~0U, ~0U, ~0U}, ~0U, ~0U), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox_of({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, SeedIsTheKeyAndStreamTheHighCounter) {
  EXPECT_EQ(words_of(random_words({0x299f31d0a4093822, 0x0370734413198a2e}, 0x85a308d3243f6a88)),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, FourIndicesShareABlock) {
  constexpr RandomKey key{0x0123456789abcdef, 0xfedcba9876543210};
  for (const uint64_t block : {uint64_t{0}, uint64_t{0xffffffff}, uint64_t{0x100000000}}) {
    const Words words = words_of(random_words(key, block));
    for (size_t j = 0; j < 4; ++j) {
      EXPECT_EQ(uniform(key, 4 * block + j), uniform_of_word(words[j]));
    }
  }
}

TEST(Philox, UniformIsInTheHalfOpenUnitInterval) {
  EXPECT_EQ(uniform_of_word(0), 0.0F);
  EXPECT_LT(uniform_of_word(~0U), 1.0F);
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double u = uniform({42, 7}, i);
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  EXPECT_NEAR(squares / kCount - 0.25, 1.0 / 12, 0.005);
}

TEST(Philox, StreamsSeedsAndIndicesDiffer) {
  std::set<float> values;
  for (const uint64_t seed : {1U, 2U}) {
    for (const uint64_t stream : {1U, 2U}) {
      for (uint64_t index = 0; index < 50; ++index) {
        values.insert(uniform({seed, stream}, index));
      }
    }
  }
  EXPECT_EQ(values.size(), 200U);
}

}  // namespace
}  // namespace gle
