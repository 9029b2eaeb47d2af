#include "engine/cpu/weight_tiles.h"

namespace gle::cpu::GLE_ISA {
namespace {

template <int Rows, int Vectors>
void weight_tile_kernel(const WeightTile& t) {
  vf acc[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      acc[i][v] = zero();
      __builtin_prefetch(t.dw + i * t.dw_step + v * kLanes, 1);
    }
  }

  const float* dy = t.dy;
  const int64_t step = t.pixel_step;
  for (int64_t n = 0; n < t.images; ++n) {
    for (int64_t p = 0; p < t.rows; ++p) {
      const float* x = t.x + n * t.image_step + p * t.row_step;
      for (int64_t q = 0; q < t.columns; ++q, x += step, dy += Rows) {
        vf b[Vectors];
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) b[v] = load(x + v * kLanes);
#pragma GCC unroll 16
        for (int i = 0; i < Rows; ++i) {
          const vf a = set1(dy[i]);
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v) acc[i][v] = fma(a, b[v], acc[i][v]);
        }
      }
    }
  }

  const int64_t tail = t.channels - (Vectors - 1) * kLanes;
  float* dw = t.dw;
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i, dw += t.dw_step) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      float* to = dw + v * kLanes;
      if (v + 1 < Vectors || tail == kLanes) {
        store(to, t.add ? load(to) + acc[i][v] : acc[i][v]);
      } else {
        store_partial(to, t.add ? load_partial(to, tail) + acc[i][v] : acc[i][v], tail);
      }
    }
  }
}

using Kernel = void (*)(const WeightTile&);

template <int Rows, int Vectors>
constexpr Kernel kernel() {
  if constexpr (Rows <= (kLanes == 16 && Vectors < 4 ? kMostRows : max_pixels(Vectors))) {
    return weight_tile_kernel<Rows, Vectors>;
  } else {
    return nullptr;
  }
}

#define GLE_ROW(v)                                                                                                  \
  {                                                                                                                 \
    kernel<1, v>(), kernel<2, v>(), kernel<3, v>(), kernel<4, v>(), kernel<5, v>(), kernel<6, v>(), kernel<7, v>(), \
        kernel<8, v>()                                                                                              \
  }
constexpr Kernel kKernels[kMaxVectors][kMostRows] = {GLE_ROW(1), GLE_ROW(2), GLE_ROW(3), GLE_ROW(4)};

}  // namespace

void run_weight_tile(const WeightTile& tile, int64_t rows, int64_t vectors) { kKernels[vectors - 1][rows - 1](tile); }

}  // namespace gle::cpu::GLE_ISA
