#pragma once

// What the Winograd convolutions share: outputs cut in squares of m x m, and the transformed inputs of a square,
// B^T d B.

#include "engine/cpu/conv2d_bands.h"
#include "engine/cpu/conv2d_winograd.h"
#include "engine/cpu/lanes.h"
#include "engine/cpu/winograd_transforms.h"

namespace gle::cpu::GLE_ISA {

// Of a transformed square.
GLE_INLINE constexpr int64_t entries(int m) { return (m + 2) * (m + 2); }

struct Square {
  int64_t image, row, column;  // of its first output
};

struct Squares {
  int64_t m, rows, columns, total;

  GLE_INLINE Squares(const ConvShape& s, int64_t m)
      : m(m), rows(divide_up(s.p, m)), columns(divide_up(s.q, m)), total(s.n * rows * columns) {}
  GLE_INLINE Square operator[](int64_t i) const {
    const int64_t in_image = i % (rows * columns);
    return {i / (rows * columns), in_image / columns * m, in_image % columns * m};
  }
};

// Entry e of channels c, c + 1, ... goes to v + e * step + place(c); `nothing` holds zeros for what lies outside of the
// image.
template <int m, class Place>
GLE_INLINE void transform_input(const ConvShape& s, const Square& at, const float* x, const float* nothing, float* v,
                                int64_t step, const Place& place) {
  constexpr int side = m + 2;
  const float* d[side][side];
  for (int64_t i = 0; i < side; ++i) {
    const int64_t row = at.row - s.pad_h + i;
    for (int64_t j = 0; j < side; ++j) {
      const int64_t column = at.column - s.pad_w + j;
      const bool inside = row >= 0 && row < s.h && column >= 0 && column < s.w;
      d[i][j] = inside ? x + ((at.image * s.h + row) * s.w + column) * s.x_pitch : nothing;
    }
  }
  for_vectors(s.c, [&](int64_t c, auto lanes) {
    vf rows[side][side], in[side], out[side];
#pragma GCC unroll 6
    for (int i = 0; i < side; ++i) {
#pragma GCC unroll 6
      for (int j = 0; j < side; ++j) {
        in[j] = lanes.load(d[i][j] + c);
      }
      Winograd<m>::to_inputs(in, rows[i]);
    }
    float* to = v + place(c);
#pragma GCC unroll 6
    for (int j = 0; j < side; ++j) {
#pragma GCC unroll 6
      for (int i = 0; i < side; ++i) {
        in[i] = rows[i][j];
      }
      Winograd<m>::to_inputs(in, out);
#pragma GCC unroll 6
      for (int i = 0; i < side; ++i) {
        lanes.store(to + (i * side + j) * step, out[i]);
      }
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
