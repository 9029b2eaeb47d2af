#pragma once

// What the Winograd convolutions share: outputs cut in squares of 2x2, and the transformed inputs of a square,
// B^T d B (conv2d_winograd.cpp has the matrices).

#include "engine/cpu/conv2d_bands.h"
#include "engine/cpu/conv2d_winograd.h"
#include "engine/cpu/lanes.h"

namespace gle::cpu::GLE_ISA {

inline constexpr int64_t kEntries = 16;  // of a transformed square

struct Square {
  int64_t image, row, column;  // of its first output
};

struct Squares {
  int64_t rows, columns, total;

  GLE_INLINE explicit Squares(const ConvShape& s)
      : rows(divide_up(s.p, 2)), columns(divide_up(s.q, 2)), total(s.n * rows * columns) {}
  GLE_INLINE Square operator[](int64_t i) const {
    const int64_t in_image = i % (rows * columns);
    return {i / (rows * columns), in_image / columns * 2, in_image % columns * 2};
  }
};

GLE_INLINE void to_inputs(const vf (&d)[4], vf (&out)[4]) {
  out[0] = d[0] - d[2];
  out[1] = d[1] + d[2];
  out[2] = d[2] - d[1];
  out[3] = d[1] - d[3];
}

// Entry e of channels c, c + 1, ... goes to v + e * step + place(c); `nothing` holds zeros for what lies outside of the
// image.
template <class Place>
GLE_INLINE void transform_input(const ConvShape& s, const Square& at, const float* x, const float* nothing, float* v,
                                int64_t step, const Place& place) {
  const float* d[kEntries];
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t row = at.row - s.pad_h + i;
    for (int64_t j = 0; j < 4; ++j) {
      const int64_t column = at.column - s.pad_w + j;
      const bool inside = row >= 0 && row < s.h && column >= 0 && column < s.w;
      d[i * 4 + j] = inside ? x + ((at.image * s.h + row) * s.w + column) * s.x_pitch : nothing;
    }
  }
  for_vectors(s.c, [&](int64_t c, auto lanes) {
    vf rows[4][4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const vf in[4] = {lanes.load(d[i * 4] + c), lanes.load(d[i * 4 + 1] + c), lanes.load(d[i * 4 + 2] + c),
                        lanes.load(d[i * 4 + 3] + c)};
      to_inputs(in, rows[i]);
    }
    float* to = v + place(c);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const vf in[4] = {rows[0][j], rows[1][j], rows[2][j], rows[3][j]};
      vf out[4];
      to_inputs(in, out);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        lanes.store(to + (i * 4 + j) * step, out[i]);
      }
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
