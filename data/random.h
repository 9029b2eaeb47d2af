#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/math/philox.h"

namespace gle::data {

// Which choices a stream of random numbers is for; streams of different purposes never meet.
enum class Purpose : uint32_t { transform = 1, order = 2, held_out = 3, sample = 4, search = 5 };

// The random numbers of one thing: a function of what it is made from, and of how many were drawn before. Nothing else
// has a say, so threads and timing do not.
class Random {
 public:
  // a, b: for transforms the item and its position in the epoch.
  Random(uint64_t seed, uint64_t epoch, Purpose purpose, uint64_t a = 0, uint64_t b = 0)
      : key0_(static_cast<uint32_t>(seed)),
        key1_(static_cast<uint32_t>(seed >> 32) ^ static_cast<uint32_t>(purpose) << 24),
        counter_{{0, static_cast<uint32_t>(epoch), static_cast<uint32_t>(a), static_cast<uint32_t>(b)}} {}

  uint32_t word() {
    if (used_ == 4) {
      block_ = philox(counter_, key0_, key1_);
      ++counter_.word[0];
      used_ = 0;
    }
    return block_.word[used_++];
  }
  // In [0, 1).
  double uniform() { return word() * 0x1p-32; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // In [0, n), n > 0.
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((uint64_t{word()} * n) >> 32); }

  template <class T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[below(static_cast<uint32_t>(i))]);
    }
  }

 private:
  uint32_t key0_;
  uint32_t key1_;
  PhiloxBlock counter_;
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace gle::data
