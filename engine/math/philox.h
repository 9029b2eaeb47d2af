#pragma once

#include <cstdint>

#include "engine/math/hd.h"
#include "engine/options.h"

namespace gle {

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): ten rounds turn a counter of four
// words under a key of two into four random words. No state, so any element's number is found at once, in any order.
// n counters side by side, word[j][i] being word j of counter i: a host compiler makes vectors of them.
template <int n>
struct PhiloxBlocks {
  uint32_t word[4][n];
};

template <int n>
GLE_HD static inline PhiloxBlocks<n> philox(PhiloxBlocks<n> counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < n; ++i) {
      const uint64_t product0 = uint64_t{0xD2511F53} * counter.word[0][i];
      const uint64_t product1 = uint64_t{0xCD9E8D57} * counter.word[2][i];
      counter.word[0][i] = static_cast<uint32_t>(product1 >> 32) ^ counter.word[1][i] ^ key0;
      counter.word[1][i] = static_cast<uint32_t>(product1);
      counter.word[2][i] = static_cast<uint32_t>(product0 >> 32) ^ counter.word[3][i] ^ key1;
      counter.word[3][i] = static_cast<uint32_t>(product0);
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// Index 4 * (block + i) + j of a stream is word[j][i]: the seed is the key, the stream the counter's high half.
template <int n>
GLE_HD static inline PhiloxBlocks<n> random_words(RandomKey key, uint64_t block) {
  PhiloxBlocks<n> counter;
  for (int i = 0; i < n; ++i) {
    const uint64_t number = block + static_cast<uint64_t>(i);
    counter.word[0][i] = static_cast<uint32_t>(number);
    counter.word[1][i] = static_cast<uint32_t>(number >> 32);
    counter.word[2][i] = static_cast<uint32_t>(key.stream);
    counter.word[3][i] = static_cast<uint32_t>(key.stream >> 32);
  }
  return philox(counter, static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32));
}

// In [0, 1): the word's upper 24 bits, all that a float can tell apart.
GLE_HD static inline float uniform_of_word(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> 8)) * 0x1p-24F;
}

GLE_HD static inline float uniform(RandomKey key, uint64_t index) {
  return uniform_of_word(random_words<1>(key, index / 4).word[index % 4][0]);
}

}  // namespace gle
