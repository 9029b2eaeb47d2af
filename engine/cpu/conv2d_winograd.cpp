// For a square of inputs d[4x4], a kernel g[3x3] and a square of outputs y[2x2], each channel by itself:
//   y = A^T [sum over c of (G g G^T) * (B^T d B)] A
//   B^T = 1  0 -1  0    G = 1    0   0    A^T = 1  1  1  0
//         0  1  1  0        1/2  1/2 1/2        0  1 -1 -1
//         0 -1  1  0        1/2 -1/2 1/2
//         0  1  0 -1        0    0   1
// The sum is 16 products of matrices, [squares, c] by [c, k], run by the tile kernel. A thread takes a group of
// squares: their transformed inputs stay in its second-level cache while all kernels pass, a block of channels of the
// output at a time. Where squares lie is fixed by the image, so the bits do not depend on groups or threads.

#include "engine/cpu/conv2d_winograd.h"

#include <cstring>

#include "engine/cpu/tile_kernels.h"
#include "engine/cpu/winograd_squares.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr int64_t kGroup = 240;               // squares, at most
constexpr int64_t kGroupFloats = 256 * 1024;  // of transformed input
constexpr int64_t kBlock = kMaxVectors * kLanes;

// One side of A^T m A and of G g G^T.
GLE_INLINE void to_outputs(const vf (&m)[4], vf (&out)[2]) {
  out[0] = (m[0] + m[1]) + m[2];
  out[1] = (m[1] - m[2]) - m[3];
}
GLE_INLINE void to_kernels(const vf (&g)[3], vf (&out)[4]) {
  const vf half = set1(0.5F), ends = g[0] + g[2];
  out[0] = g[0];
  out[1] = (ends + g[1]) * half;
  out[2] = (ends - g[1]) * half;
  out[3] = g[2];
}

// G g G^T of kLanes kernels to packed + e * step.
GLE_INLINE void transform_kernel(const vf (&g)[3][3], float* packed, int64_t step) {
  vf rows[3][4], column[3], out[4];
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) {
    to_kernels(g[r], rows[r]);
  }
#pragma GCC unroll 4
  for (int s = 0; s < 4; ++s) {
#pragma GCC unroll 3
    for (int r = 0; r < 3; ++r) {
      column[r] = rows[r][s];
    }
    to_kernels(column, out);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      store(packed + (r * 4 + s) * step, out[r]);
    }
  }
}

struct Groups {
  int64_t size, count;

  GLE_INLINE Groups(const ConvShape& s, int64_t squares, int threads) {
    const int64_t for_cache = smaller(kGroup, kGroupFloats / (kEntries * s.c));
    const int64_t for_threads = divide_up(squares, 4 * threads);
    // Multiples of the tile kernel's pixels, and enough of them that the kernels are not read for a handful.
    size = larger(24, smaller(for_cache, for_threads)) / 12 * 12;
    count = divide_up(squares, size);
  }
};

struct Result {
  const float* bias;
  float slope;
  Accumulate mode;
};

// A^T m A of `channels` of one square, m + e * step, to y at the block's first channel.
GLE_INLINE void transform_output(const ConvShape& s, const Square& at, const float* m, int64_t step, int64_t channels,
                                 const Result& result, float* y) {
  const bool lower = at.row + 1 < s.p, right = at.column + 1 < s.q;
  float* to = y + ((at.image * s.p + at.row) * s.q + at.column) * s.y_pitch;
  const Put put = result.mode == Accumulate::add ? Put::add : Put::overwrite;
  const vf slope = set1(result.slope);
  for_vectors(channels, [&](int64_t k, auto lanes) {
    vf rows[4][2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const vf in[4] = {lanes.load(m + (i * 4) * step + k), lanes.load(m + (i * 4 + 1) * step + k),
                        lanes.load(m + (i * 4 + 2) * step + k), lanes.load(m + (i * 4 + 3) * step + k)};
      to_outputs(in, rows[i]);
    }
    const vf bias = result.bias ? lanes.load(result.bias + k) : zero();
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const vf in[4] = {rows[0][j], rows[1][j], rows[2][j], rows[3][j]};
      vf out[2];
      to_outputs(in, out);
      if (j == 0 || right) {
        lanes.put(to + j * s.y_pitch + k, activate(out[0] + bias, slope), put);
        if (lower) {
          lanes.put(to + (s.q + j) * s.y_pitch + k, activate(out[1] + bias, slope), put);
        }
      }
    }
  });
}

// Floats of one thread: transformed inputs, a block of products, zeros.
GLE_INLINE int64_t of_thread(const ConvShape& s, const Groups& groups) {
  return divide_up(kEntries * groups.size * (s.c + kBlock) + s.c, 16) * 16;
}

}  // namespace

// [16][block][c][channels of the block]
int64_t winograd_packed_floats(int64_t c, int64_t k) { return kEntries * c * ChannelBlocks{k}.padded(); }

void winograd_pack(ThreadPool& pool, int64_t c, int64_t k, const float* w, float* packed) {
  const ChannelBlocks blocks{k};
  pool.parallel_for(blocks.vectors, [&](int64_t vector, int) {
    int64_t block = 0;
    while (block + 1 < blocks.count && blocks.first(block + 1) <= vector * kLanes) {
      ++block;
    }
    const int64_t first = vector * kLanes, width = blocks.vectors_in(block) * kLanes;
    float* to = packed + blocks.first(block) * c + first - blocks.first(block);
    float taps[9][kLanes * kLanes];
    for (int64_t begin = 0; begin < c; begin += kLanes) {
      const int64_t count = smaller(kLanes, c - begin);
      for (int64_t tap = 0; tap < 9; ++tap) {
        pack_columns(w + (first * 9 + tap) * c + begin, 9 * c, count, smaller(kLanes, k - first), kLanes, taps[tap]);
      }
      for (int64_t i = 0; i < count; ++i) {
        vf g[3][3];
        for (int tap = 0; tap < 9; ++tap) {
          g[tap / 3][tap % 3] = load(taps[tap] + i * kLanes);
        }
        transform_kernel(g, to + (begin + i) * width, c * blocks.padded());
      }
    }
  });
}

void winograd_pack_turned(ThreadPool& pool, int64_t c, int64_t k, const float* w, float* packed) {
  const ChannelBlocks blocks{k};
  pool.parallel_for(divide_up(c, kLanes), [&](int64_t piece, int) {
    for (int64_t i = piece * kLanes; i < smaller(c, (piece + 1) * kLanes); ++i) {
      for (int64_t block = 0; block < blocks.count; ++block) {
        const int64_t first = blocks.first(block), width = blocks.vectors_in(block) * kLanes;
        float* to = packed + first * c + i * width;
        for_vectors(blocks.channels_in(block), [&](int64_t lane, auto lanes) {
          vf g[3][3];
          for (int tap = 0; tap < 9; ++tap) {
            g[2 - tap / 3][2 - tap % 3] = lanes.load(w + (i * 9 + tap) * k + first + lane);
          }
          transform_kernel(g, to + lane, c * blocks.padded());
        });
      }
    }
  });
}

int64_t winograd_scratch_floats(const ConvShape& s, int threads) {
  return threads * of_thread(s, {s, Squares(s).total, threads});
}

void winograd(ThreadPool& pool, const ConvShape& s, const float* x, const float* packed, const float* bias, float slope,
              Accumulate mode, float* y, float* scratch) {
  const Squares squares(s);
  const Groups groups(s, squares.total, pool.size());
  const ChannelBlocks blocks{s.k};
  pool.parallel_for(groups.count, [&](int64_t group, int thread) {
    const int64_t begin = group * groups.size, count = smaller(groups.size, squares.total - begin);
    float* inputs = scratch + thread * of_thread(s, groups);
    float* products = inputs + kEntries * groups.size * s.c;
    float* nothing = products + kEntries * groups.size * kBlock;
    std::memset(nothing, 0, static_cast<size_t>(s.c) * sizeof(float));
    for (int64_t i = 0; i < count; ++i) {
      transform_input(s, squares[begin + i], x, nothing, inputs + i * s.c, count * s.c, [](int64_t c) { return c; });
    }
    for (int64_t block = 0; block < blocks.count; ++block) {
      const int64_t first = blocks.first(block);
      const ChannelBlocks one{blocks.channels_in(block)};
      const int64_t width = one.padded();
      for (int64_t e = 0; e < kEntries; ++e) {
        multiply(inputs + e * count * s.c, s.c, count, s.c, packed + (e * blocks.padded() + first) * s.c, one,
                 products + e * count * width, width, false);
      }
      const Result result{bias ? bias + first : nullptr, slope, mode};
      for (int64_t i = 0; i < count; ++i) {
        transform_output(s, squares[begin + i], products + i * width, count * width, one.channels, result, y + first);
      }
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
