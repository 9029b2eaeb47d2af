#include "engine/cpu/tile_kernels.h"

namespace gle::cpu::GLE_ISA {
namespace {

template <int Pixels, int Vectors>
void tile_kernel(const Tile& t) {
  constexpr int kWidth = Vectors * kLanes;
  const int64_t tail = t.channels - (Vectors - 1) * kLanes;  // channels in the last vector
  vf acc[Pixels][Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    vf start = zero();
    if (t.bias) {
      const float* bias = t.bias + t.first + v * kLanes;
      start = v + 1 < Vectors ? load(bias) : load_partial(bias, tail < kLanes ? tail : kLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Pixels; ++i) acc[i][v] = start;
  }

  const float* x[Pixels];
#pragma GCC unroll 16
  for (int i = 0; i < Pixels; ++i) {
    x[i] = t.x[i];
  }
  const float* w = t.w;
  int64_t begin = 0, fetched = 0;
  for (int64_t r = 0; r < t.rows; ++r, begin += t.row_step) {
    int64_t j = begin;
    const int64_t end = begin + t.run;
    while (j + 4 <= end) {
      if (t.ahead) {
#pragma GCC unroll 16
        for (int i = 0; i < Pixels; ++i) __builtin_prefetch(x[i] + j + t.ahead, 0, 2);
      }
      if (fetched < Pixels - 1) {  // the next tile may have one pixel less
        const float* y = t.y_next[fetched++] + t.first;
        for (int v = 0; v < Vectors * kLanes; v += 16) __builtin_prefetch(y + v, 1, 2);
      }
      const int64_t stop = j + 16 <= end ? j + 16 : end;
      for (; j + 4 <= stop; j += 4, w += 4 * kWidth) {
        multiply_add<Pixels, Vectors>(x, j, w, acc);
        multiply_add<Pixels, Vectors>(x, j + 1, w + kWidth, acc);
        multiply_add<Pixels, Vectors>(x, j + 2, w + 2 * kWidth, acc);
        multiply_add<Pixels, Vectors>(x, j + 3, w + 3 * kWidth, acc);
      }
    }
    for (; j < end; ++j, w += kWidth) multiply_add<Pixels, Vectors>(x, j, w, acc);
  }

  const vf slope = set1(t.slope);
#pragma GCC unroll 16
  for (int i = 0; i < Pixels; ++i) {
    float* y = t.y[i] + t.first;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v, y += kLanes) {
      vf a = acc[i][v];
      if (t.slope != 1.0F) a = leaky_relu(a, slope);
      if (v + 1 < Vectors || tail == kLanes) {
        store(y, t.add ? load(y) + a : a);
      } else {
        store_partial(y, t.add ? load_partial(y, tail) + a : a, tail);
      }
    }
  }
}

constexpr int64_t kShortReduction = 32;

using Kernel = void (*)(const Tile&);

template <int Pixels, int Vectors>
constexpr Kernel kernel() {
  if constexpr (Pixels <= max_pixels(Vectors)) {
    return tile_kernel<Pixels, Vectors>;
  } else {
    return nullptr;
  }
}

#define GLE_ROW(v)                                                                                                  \
  {                                                                                                                 \
    kernel<1, v>(), kernel<2, v>(), kernel<3, v>(), kernel<4, v>(), kernel<5, v>(), kernel<6, v>(), kernel<7, v>(), \
        kernel<8, v>(), kernel<9, v>(), kernel<10, v>(), kernel<11, v>(), kernel<12, v>()                           \
  }
constexpr Kernel kKernels[kMaxVectors][12] = {GLE_ROW(1), GLE_ROW(2), GLE_ROW(3), GLE_ROW(4)};

}  // namespace

void run_tiles(Tile tile, int64_t pixels, ChannelBlocks blocks, int64_t first_block, int64_t last_block) {
  // A short reduction is bound by its outputs: all blocks pass over a few pixels, whose outputs are written side by
  // side. Otherwise each block passes over all pixels.
  const bool by_pixels = tile.rows * tile.run <= kShortReduction && last_block - first_block > 1;
  const int64_t group = by_pixels ? 24 : pixels;
  const float* panels = tile.w;
  const float* const* x = tile.x;
  float* const* y = tile.y;
  const int64_t ahead = tile.ahead;
  for (int64_t start = 0; start < pixels; start += group) {
    const int64_t in_group = pixels - start < group ? pixels - start : group;
    for (int64_t block = first_block; block < last_block; ++block) {
      const int vectors = blocks.vectors_in(block);
      tile.first = blocks.first(block);
      tile.channels = blocks.channels_in(block);
      tile.w = panels + tile.rows * tile.run * tile.first;
      const int64_t tiles = (in_group + max_pixels(vectors) - 1) / max_pixels(vectors);
      for (int64_t i = 0; i < tiles; ++i) {
        const int64_t begin = start + in_group * i / tiles, end = start + in_group * (i + 1) / tiles;
        tile.x = x + begin;
        tile.y = y + begin;
        tile.ahead = block == first_block ? ahead * (end - begin) : 0;
        tile.y_next = end < start + in_group ? y + end : tile.y;
        kKernels[vectors - 1][end - begin - 1](tile);
      }
    }
  }
}

void pack_rows(const float* src, int64_t stride, int64_t rows, int64_t channels, int64_t width, float* dst) {
  constexpr int64_t kWidth = ChannelBlocks::kWide * kLanes;  // the usual width, with a loop that unrolls
  if (channels == kWidth && width == kWidth) {
    for (int64_t j = 0; j < rows; ++j, src += stride, dst += kWidth) {
      for (int64_t i = 0; i < kWidth; i += 16) __builtin_prefetch(src + 8 * stride + i);
      for (int64_t i = 0; i < kWidth; i += kLanes) store(dst + i, load(src + i));
    }
    return;
  }
  for (int64_t j = 0; j < rows; ++j, src += stride, dst += width) {
    int64_t i = 0;
    for (; i + kLanes <= channels; i += kLanes) {
      __builtin_prefetch(src + 8 * stride + i);
      store(dst + i, load(src + i));
    }
    if (i < channels) store(dst + i, load_partial(src + i, channels - i)), i += kLanes;
    for (; i < width; i += kLanes) store(dst + i, zero());
  }
}

void pack_columns(const float* src, int64_t stride, int64_t rows, int64_t channels, int64_t width, float* dst) {
  for (int64_t i = 0; i < width; i += kLanes) {
    const int64_t columns = channels - i < kLanes ? channels - i : kLanes;
    for (int64_t j = 0; j < rows; j += kLanes) {
      const int64_t lines = rows - j < kLanes ? rows - j : kLanes;
      vf m[kLanes];
#pragma GCC unroll 16
      for (int l = 0; l < kLanes; ++l) {
        if (lines == kLanes) {
          m[l] = l < columns ? load(src + (i + l) * stride + j) : zero();
        } else {
          m[l] = l < columns ? load_partial(src + (i + l) * stride + j, lines) : zero();
        }
      }
      transpose(m);
#pragma GCC unroll 16
      for (int l = 0; l < kLanes; ++l) {
        if (l < lines) store(dst + (j + l) * width + i, m[l]);
      }
    }
  }
}

}  // namespace gle::cpu::GLE_ISA
