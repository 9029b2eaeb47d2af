#pragma once

// Fetching ahead of a walk over the rows of a tensor. Lines taken in another order than that of memory come at a third
// of the bandwidth that a core of the Zen 4 has, since the prefetcher of its L2 follows little else. So a walk asks for
// lines in that order, in whatever order it takes them; and where there is no such order to follow (a few channels of
// wide rows), or no room in L1, for L2 and farther ahead.

#include <cstdint>

#include "engine/cpu/lanes.h"

namespace gle::cpu::GLE_ISA {

inline constexpr int64_t kLine = 16;  // floats

class Ahead {
 public:
  Ahead() = default;
  // For a walk that takes `rows` rows at a time (0: in the order of memory); `floats` are in use at any time.
  GLE_INLINE Ahead(const Tensor& x, int64_t rows, int64_t floats) : pitch_(x.pitch()), channels_(x.channels()) {
    constexpr int64_t kRoom = 2560;  // floats, 10 KB of L1
    constexpr int64_t kNear = 512;
    constexpr int64_t kFarRows = 16;
    far_ = floats > kRoom || pitch_ >= 2 * channels_;
    distance_ = far_ ? kFarRows * pitch_ : rows * pitch_ < kNear ? kNear : rows * pitch_;
  }

  GLE_INLINE bool far() const { return far_; }

  // For a walk in the order of memory that is at p.
  GLE_INLINE void fetch(const float* p) const {
    if (far_) {
      __builtin_prefetch(p + distance_, 0, 2);
    } else {
      __builtin_prefetch(p + distance_, 0, 3);
    }
  }

  // For a walk in another order through rows that begin at p: some lines more, in the order of memory.
  GLE_INLINE void start(const float* p) {
    row_ = p;
    c_ = 0;
  }
  template <int lines>
  GLE_INLINE void fetch_lines() {
    if (pitch_ == channels_) {
      for (int i = 0; i < lines; ++i) {
        fetch(row_ + i * kLine);
      }
      row_ += lines * kLine;
      return;
    }
    for (int i = 0; i < lines; ++i) {
      fetch(row_ + c_);
      c_ += kLine;
      if (c_ >= channels_) {
        c_ = 0;
        row_ += pitch_;
      }
    }
  }

 private:
  int64_t pitch_ = 0;
  int64_t channels_ = 0;
  int64_t distance_ = 0;
  bool far_ = false;
  const float* row_ = nullptr;
  int64_t c_ = 0;
};

}  // namespace gle::cpu::GLE_ISA
