// y = A^T [sum over c of (G g G^T) * (B^T d B)] A for squares of m x m outputs (winograd_transforms.h has the
// matrices). The sum is (m + 2)^2 products of matrices, [squares, c] by [c, k], run by the tile kernel. A thread takes
// a group of squares: their transformed inputs stay in its second-level cache while all kernels pass, a block of
// channels of the output at a time. Where there are too few squares for groups, threads share out first the squares,
// then the products, then the squares again. Where squares lie is fixed by the image, so the bits do not depend on
// groups or threads.

#include "engine/cpu/conv2d_winograd.h"

#include <cstring>

#include "engine/cpu/tile_kernels.h"
#include "engine/cpu/winograd_squares.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr int64_t kGroup = 240;               // squares, at most
constexpr int64_t kGroupFloats = 256 * 1024;  // of transformed input
constexpr int64_t kSmallestGroup = 24;        // squares: the kernels are not read for a handful
constexpr int64_t kBlock = kMaxVectors * kLanes;

// G g G^T of kLanes kernels to packed + e * step.
template <int m>
GLE_INLINE void transform_kernel(const vf (&g)[3][3], float* packed, int64_t step) {
  constexpr int side = m + 2;
  vf rows[3][side], column[3], out[side];
#pragma GCC unroll 3
  for (int r = 0; r < 3; ++r) {
    Winograd<m>::to_kernels(g[r], rows[r]);
  }
#pragma GCC unroll 6
  for (int s = 0; s < side; ++s) {
#pragma GCC unroll 3
    for (int r = 0; r < 3; ++r) {
      column[r] = rows[r][s];
    }
    Winograd<m>::to_kernels(column, out);
#pragma GCC unroll 6
    for (int r = 0; r < side; ++r) {
      store(packed + (r * side + s) * step, out[r]);
    }
  }
}

struct Groups {
  bool alone;  // one group, for all threads together
  int64_t size, count;

  GLE_INLINE Groups(const ConvShape& s, int64_t squares, int m, int threads) {
    const int64_t for_cache = smaller(kGroup, kGroupFloats / (entries(m) * s.c));
    const int64_t for_threads = divide_up(squares, 4 * threads);
    alone = squares <= kGroup && squares < 2 * threads * kSmallestGroup;
    // Multiples of the tile kernel's pixels.
    size = alone ? squares : larger(kSmallestGroup, smaller(for_cache, for_threads)) / 12 * 12;
    count = alone ? 1 : divide_up(squares, size);
  }
};

struct Result {
  const float* bias;
  float slope;
  Accumulate mode;
};

// A^T p A of `channels` of one square, p + e * step, to y at the block's first channel.
template <int m>
GLE_INLINE void transform_output(const ConvShape& s, const Square& at, const float* p, int64_t step, int64_t channels,
                                 const Result& result, float* y) {
  constexpr int side = m + 2;
  const int64_t rows_inside = s.p - at.row, columns_inside = s.q - at.column;
  float* to = y + ((at.image * s.p + at.row) * s.q + at.column) * s.y_pitch;
  const Put put = result.mode == Accumulate::add ? Put::add : Put::overwrite;
  const vf slope = set1(result.slope);
  for_vectors(channels, [&](int64_t k, auto lanes) {
    vf rows[side][m], in[side], out[m];
#pragma GCC unroll 6
    for (int i = 0; i < side; ++i) {
#pragma GCC unroll 6
      for (int j = 0; j < side; ++j) {
        in[j] = lanes.load(p + (i * side + j) * step + k);
      }
      Winograd<m>::to_outputs(in, rows[i]);
    }
    const vf bias = result.bias ? lanes.load(result.bias + k) : zero();
#pragma GCC unroll 4
    for (int j = 0; j < m; ++j) {
      if (j >= columns_inside) {
        break;
      }
#pragma GCC unroll 6
      for (int i = 0; i < side; ++i) {
        in[i] = rows[i][j];
      }
      Winograd<m>::to_outputs(in, out);
#pragma GCC unroll 4
      for (int i = 0; i < m; ++i) {
        if (i < rows_inside) {
          lanes.put(to + (i * s.q + j) * s.y_pitch + k, activate(out[i] + bias, slope), put);
        }
      }
    }
  });
}

// Floats of one group: transformed inputs, products with a block of kernels, or with all if it is alone, zeros.
GLE_INLINE int64_t of_group(const ConvShape& s, const Groups& groups, int m) {
  const int64_t width = groups.alone ? ChannelBlocks{s.k}.padded() : kBlock;
  return divide_up(entries(m) * groups.size * (s.c + width) + s.c, 16) * 16;
}

template <int m>
void pack(ThreadPool& pool, int64_t c, int64_t k, const float* w, float* packed) {
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
        transform_kernel<m>(g, to + (begin + i) * width, c * blocks.padded());
      }
    }
  });
}

template <int m>
void run(ThreadPool& pool, const ConvShape& s, const float* x, const float* packed, const Result& result, float* y,
         float* scratch) {
  const Squares squares(s, m);
  const Groups groups(s, squares.total, m, pool.size());
  const ChannelBlocks blocks{s.k};

  // Squares [begin, begin + count); inputs[e][square][c], products[e][square][channels of a block, or all], zeros.
  struct Group {
    int64_t begin, count;
    float *inputs, *products, *nothing;
  };
  const auto group_at = [&](int64_t number, float* floats) {
    const int64_t begin = number * groups.size, count = smaller(groups.size, squares.total - begin);
    float* nothing = floats + of_group(s, groups, m) - s.c;
    std::memset(nothing, 0, static_cast<size_t>(s.c) * sizeof(float));
    return Group{begin, count, floats, floats + entries(m) * count * s.c, nothing};
  };
  const auto take_input = [&](const Group& g, int64_t i) {
    transform_input<m>(s, squares[g.begin + i], x, g.nothing, g.inputs + i * s.c, g.count * s.c,
                       [](int64_t c) { return c; });
  };
  const auto take_product = [&](const Group& g, int64_t e, int64_t block, float* to, int64_t width) {
    multiply(g.inputs + e * g.count * s.c, s.c, g.count, s.c,
             packed + (e * blocks.padded() + blocks.first(block)) * s.c, ChannelBlocks{blocks.channels_in(block)},
             to + e * g.count * width, width, false);
  };
  const auto give_output = [&](const Group& g, int64_t i, int64_t first, int64_t channels, int64_t width) {
    transform_output<m>(s, squares[g.begin + i], g.products + i * width, g.count * width, channels,
                        {result.bias ? result.bias + first : nullptr, result.slope, result.mode}, y + first);
  };

  if (groups.alone) {
    const Group all = group_at(0, scratch);
    pool.parallel_for(all.count, [&](int64_t i, int) { take_input(all, i); });
    pool.parallel_for(entries(m) * blocks.count, [&](int64_t piece, int) {
      const int64_t block = piece % blocks.count;
      take_product(all, piece / blocks.count, block, all.products + blocks.first(block), blocks.padded());
    });
    pool.parallel_for(all.count, [&](int64_t i, int) { give_output(all, i, 0, s.k, blocks.padded()); });
    return;
  }
  pool.parallel_for(groups.count, [&](int64_t number, int thread) {
    const Group group = group_at(number, scratch + thread * of_group(s, groups, m));
    for (int64_t i = 0; i < group.count; ++i) {
      take_input(group, i);
    }
    for (int64_t block = 0; block < blocks.count; ++block) {
      const int64_t width = blocks.vectors_in(block) * kLanes;
      for (int64_t e = 0; e < entries(m); ++e) {
        take_product(group, e, block, group.products, width);
      }
      for (int64_t i = 0; i < group.count; ++i) {
        give_output(group, i, blocks.first(block), blocks.channels_in(block), width);
      }
    }
  });
}

}  // namespace

// [(m + 2)^2][block][c][channels of the block]
int64_t winograd_packed_floats(int m, int64_t c, int64_t k) { return entries(m) * c * ChannelBlocks{k}.padded(); }

void winograd_pack(ThreadPool& pool, int m, int64_t c, int64_t k, const float* w, float* packed) {
  (m == 4 ? pack<4> : pack<2>)(pool, c, k, w, packed);
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
          transform_kernel<2>(g, to + lane, c * blocks.padded());
        });
      }
    }
  });
}

int64_t winograd_scratch_floats(const ConvShape& s, int threads) {
  const int m = winograd_side(s);
  const Groups groups(s, Squares(s, m).total, m, threads);
  return (groups.alone ? 1 : threads) * of_group(s, groups, m);
}

void winograd(ThreadPool& pool, const ConvShape& s, const float* x, const float* packed, const float* bias, float slope,
              Accumulate mode, float* y, float* scratch) {
  (winograd_side(s) == 4 ? run<4> : run<2>)(pool, s, x, packed, {bias, slope, mode}, y, scratch);
}

}  // namespace gle::cpu::GLE_ISA
