#pragma once

#include <cstdint>

#include "engine/math/hd.h"
#include "engine/options.h"

namespace gle {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): ten rounds turn a counter of four
// words under a key of two into four random words. No state, so any element's number is found at once, in any order.
struct PhiloxBlock {
  uint32_t word[4];
};

GLE_HD static inline PhiloxBlock philox(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter.word[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter.word[2];
    counter = {{static_cast<uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0, static_cast<uint32_t>(product1),
                static_cast<uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1, static_cast<uint32_t>(product0)}};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// The words of indices 4 * block ... 4 * block + 3 of a stream: the seed is the key, the stream the counter's high
// half.
GLE_HD static inline PhiloxBlock random_words(RandomKey key, uint64_t block) {
  return philox({{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), static_cast<uint32_t>(key.stream),
                  static_cast<uint32_t>(key.stream >> 32)}},
                static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32));
}

// In [0, 1): the word's upper 24 bits, all that a float can tell apart.
GLE_HD static inline float uniform_of_word(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24F;
}

GLE_HD static inline float uniform(RandomKey key, uint64_t index) {
  return uniform_of_word(random_words(key, index / 4).word[index % 4]);
}

}  // namespace gle
