// Pooling x[N,H,W,C] to y[N,P,Q,C], vectors along the channels, rows of pixels in parallel. The backward kernels
// gather: every input pixel asks the windows that see it (math/pool_window.h), so rows are independent, nothing is
// zeroed first and each sum has one order.
//   max      saves one byte per output, the winning tap;  dx = sum of dy over windows whose tap lands on the pixel
//   average  saves nothing;                               dx = sum of dy / divisor over the windows that see the pixel
//   global   saves the winning pixel per channel;         dx = (1 - share) dy / (H W), plus share dy at the winner

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/lanes.h"
#include "engine/cpu/partition.h"
#include "engine/math/pool_window.h"

namespace gle::cpu::GLE_ISA {

namespace {

// What a tap costs next to a pass over memory: it comes from the nearest cache.
GLE_INLINE int64_t tap_cost(int64_t taps) { return 1 + taps / 4; }

// A NaN beats every number and no number beats a NaN; among equals the first stays.
GLE_INLINE vmask beats(vf challenger, vf holder) { return either(gt(challenger, holder), is_nan(challenger)); }

// Walking over pixels at a few channels, the processor does not see which lines come next.
constexpr int64_t kAhead = 16;

struct Sizes {
  int64_t images, height, width, channels;
};

GLE_INLINE Sizes sizes_of(const Tensor& x) {
  const Shape& shape = x.shape();
  return {shape[0], shape[1], shape[2], x.channels()};
}

}  // namespace

void CpuBackend::max_pool_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& taps) {
  const Sizes in = sizes_of(x);
  const Sizes out = sizes_of(y);
  const int64_t channels = in.channels;
  const PoolAxis row_axis = pool_rows(options, in.height);
  const PoolAxis column_axis = pool_columns(options, in.width);
  const int64_t cost = out.width * channels * tap_cost(row_axis.kernel * column_axis.kernel);
  uint8_t* tap_data = taps ? taps.bytes() : nullptr;
  for_row_ranges(runtime_.pool, cut_rows(out.images * out.height, cost), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const PoolWindow rows = pool_window(row_axis, row % out.height);
      const float* image = x.data() + row / out.height * in.height * in.width * x.pitch();
      for (int64_t q = 0; q < out.width; ++q) {
        const PoolWindow columns = pool_window(column_axis, q);
        const int64_t pixel = row * out.width + q;
        for_channel_blocks(channels, [&](int64_t c, auto vectors, auto lanes) {
          constexpr int kVectors = decltype(vectors)::count;
          const float* corner = image + (rows.begin * in.width + columns.begin) * x.pitch() + c;
          const int64_t corner_tap = (rows.begin - rows.start) * column_axis.kernel + columns.begin - columns.start;
          vf best[kVectors];
          vi winner[kVectors];
          for (int v = 0; v < kVectors; ++v) {
            best[v] = lanes.load(corner + v * kLanes);
            winner[v] = set1i(static_cast<int32_t>(corner_tap));
          }
          for (int64_t h = rows.begin; h < rows.end; ++h) {
            const float* px = corner + (h - rows.begin) * in.width * x.pitch();
            auto tap = static_cast<int32_t>(corner_tap + (h - rows.begin) * column_axis.kernel);
            for (int64_t w = columns.begin; w < columns.end; ++w, px += x.pitch(), ++tap) {
              for (int v = 0; v < kVectors; ++v) {
                const vf value = lanes.load(px + v * kLanes);
                const vmask better = beats(value, best[v]);
                best[v] = select(better, value, best[v]);
                winner[v] = selecti(better, set1i(tap), winner[v]);
              }
            }
          }
          for (int v = 0; v < kVectors; ++v) {
            lanes.store(y.data() + pixel * y.pitch() + c + v * kLanes, best[v]);
            if (tap_data) {
              lanes.store_bytes(tap_data + pixel * channels + c + v * kLanes, winner[v]);
            }
          }
        });
      }
    }
  });
}

void CpuBackend::max_pool_backward(const Tensor& taps, const Pool2dOptions& options, const Tensor& dy,
                                   const GradTarget& dx) {
  if (!dx) {
    return;
  }
  const Put mode = put_mode(dx);
  const Sizes in = sizes_of(dx.grad);
  const Sizes out = sizes_of(dy);
  const int64_t channels = in.channels;
  const PoolAxis row_axis = pool_rows(options, in.height);
  const PoolAxis column_axis = pool_columns(options, in.width);
  const int64_t windows = row_axis.kernel * column_axis.kernel / (row_axis.stride * column_axis.stride);
  const int64_t cost = in.width * channels * tap_cost(windows);
  for_row_ranges(runtime_.pool, cut_rows(in.images * in.height, cost), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t h = row % in.height;
      const PoolCover rows = pool_cover(row_axis, out.height, h);
      const int64_t image = row / in.height * out.height * out.width;
      for (int64_t w = 0; w < in.width; ++w) {
        const PoolCover columns = pool_cover(column_axis, out.width, w);
        for_channel_blocks(channels, [&](int64_t c, auto vectors, auto lanes) {
          constexpr int kVectors = decltype(vectors)::count;
          vf sum[kVectors] = {};
          for (int64_t p = rows.begin; p < rows.end; ++p) {
            const int64_t tap_row = (h + row_axis.pad - p * row_axis.stride) * column_axis.kernel;
            for (int64_t q = columns.begin; q < columns.end; ++q) {
              const int64_t pixel = image + p * out.width + q;
              const vi tap = set1i(static_cast<int32_t>(tap_row + w + column_axis.pad - q * column_axis.stride));
              for (int v = 0; v < kVectors; ++v) {
                const int64_t k = c + v * kLanes;
                const vmask won = eqi(lanes.load_bytes(taps.bytes() + pixel * channels + k), tap);
                sum[v] += select(won, lanes.load(dy.data() + pixel * dy.pitch() + k), zero());
              }
            }
          }
          for (int v = 0; v < kVectors; ++v) {
            lanes.put(dx.grad.data() + (row * in.width + w) * dx.grad.pitch() + c + v * kLanes, sum[v], mode);
          }
        });
      }
    }
  });
}

void CpuBackend::average_pool_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y) {
  const Sizes in = sizes_of(x);
  const Sizes out = sizes_of(y);
  const PoolAxis row_axis = pool_rows(options, in.height);
  const PoolAxis column_axis = pool_columns(options, in.width);
  const int64_t cost = out.width * in.channels * tap_cost(row_axis.kernel * column_axis.kernel);
  for_row_ranges(runtime_.pool, cut_rows(out.images * out.height, cost), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const PoolWindow rows = pool_window(row_axis, row % out.height);
      const float* image = x.data() + row / out.height * in.height * in.width * x.pitch();
      for (int64_t q = 0; q < out.width; ++q) {
        const PoolWindow columns = pool_window(column_axis, q);
        const int64_t divisor = pool_length(rows, options.padding) * pool_length(columns, options.padding);
        const float factor = 1.0F / static_cast<float>(divisor);
        for_channel_blocks(in.channels, [&](int64_t c, auto vectors, auto lanes) {
          constexpr int kVectors = decltype(vectors)::count;
          vf sum[kVectors] = {};
          for (int64_t h = rows.begin; h < rows.end; ++h) {
            const float* px = image + (h * in.width + columns.begin) * x.pitch() + c;
            for (int64_t w = columns.begin; w < columns.end; ++w, px += x.pitch()) {
              for (int v = 0; v < kVectors; ++v) {
                sum[v] += lanes.load(px + v * kLanes);
              }
            }
          }
          for (int v = 0; v < kVectors; ++v) {
            lanes.store(y.data() + (row * out.width + q) * y.pitch() + c + v * kLanes, sum[v] * factor);
          }
        });
      }
    }
  });
}

void CpuBackend::average_pool_backward(const Pool2dOptions& options, const Tensor& dy, const GradTarget& dx) {
  if (!dx) {
    return;
  }
  const Put mode = put_mode(dx);
  const Sizes in = sizes_of(dx.grad);
  const Sizes out = sizes_of(dy);
  const PoolAxis row_axis = pool_rows(options, in.height);
  const PoolAxis column_axis = pool_columns(options, in.width);
  const int64_t windows = row_axis.kernel * column_axis.kernel / (row_axis.stride * column_axis.stride);
  const int64_t cost = in.width * in.channels * tap_cost(windows);
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(out.height + out.width) * sizeof(float), "average_pool_backward");
  float* row_factors = lease.floats();
  float* column_factors = row_factors + out.height;
  for (int64_t p = 0; p < out.height; ++p) {
    row_factors[p] = 1.0F / static_cast<float>(pool_length(pool_window(row_axis, p), options.padding));
  }
  for (int64_t q = 0; q < out.width; ++q) {
    column_factors[q] = 1.0F / static_cast<float>(pool_length(pool_window(column_axis, q), options.padding));
  }
  for_row_ranges(runtime_.pool, cut_rows(in.images * in.height, cost), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const PoolCover rows = pool_cover(row_axis, out.height, row % in.height);
      const int64_t image = row / in.height * out.height * out.width;
      for (int64_t w = 0; w < in.width; ++w) {
        const PoolCover columns = pool_cover(column_axis, out.width, w);
        for_channel_blocks(in.channels, [&](int64_t c, auto vectors, auto lanes) {
          constexpr int kVectors = decltype(vectors)::count;
          vf sum[kVectors] = {};
          for (int64_t p = rows.begin; p < rows.end; ++p) {
            for (int64_t q = columns.begin; q < columns.end; ++q) {
              const vf factor = set1(row_factors[p] * column_factors[q]);
              const float* pdy = dy.data() + (image + p * out.width + q) * dy.pitch() + c;
              for (int v = 0; v < kVectors; ++v) {
                sum[v] = fma(lanes.load(pdy + v * kLanes), factor, sum[v]);
              }
            }
          }
          for (int v = 0; v < kVectors; ++v) {
            lanes.put(dx.grad.data() + (row * in.width + w) * dx.grad.pitch() + c + v * kLanes, sum[v], mode);
          }
        });
      }
    }
  });
}

void CpuBackend::global_pool_forward(const Tensor& x, float max_share, const Tensor& y, const Tensor& where) {
  const Sizes in = sizes_of(x);
  const int64_t pixels = in.height * in.width;
  const bool want_max = max_share != 0.0F || where;
  for_row_ranges(runtime_.pool, cut_rows(in.images, pixels * in.channels), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const float* image = x.data() + n * pixels * x.pitch();
      for_channel_blocks(in.channels, [&](int64_t c, auto vectors, auto lanes) {
        constexpr int kVectors = decltype(vectors)::count;
        vf sum[kVectors] = {};
        vf best[kVectors];
        vi winner[kVectors] = {};
        for (int v = 0; v < kVectors; ++v) {
          best[v] = lanes.load(image + c + v * kLanes);
        }
        for (int64_t h = 0; h < in.height; ++h) {
          vf row_sum[kVectors] = {};  // short sums lose less
          for (int64_t w = 0; w < in.width; ++w) {
            const int64_t pixel = h * in.width + w;
            for (int v = 0; v < kVectors; ++v) {
              const float* px = image + pixel * x.pitch() + c + v * kLanes;
              __builtin_prefetch(px + kAhead * x.pitch());
              const vf value = lanes.load(px);
              row_sum[v] += value;
              if (want_max) {
                const vmask better = beats(value, best[v]);
                best[v] = select(better, value, best[v]);
                winner[v] = selecti(better, set1i(static_cast<int32_t>(pixel)), winner[v]);
              }
            }
          }
          for (int v = 0; v < kVectors; ++v) {
            sum[v] += row_sum[v];
          }
        }
        for (int v = 0; v < kVectors; ++v) {
          const vf mean = sum[v] * (1.0F / static_cast<float>(pixels));
          // A share of none leaves the other alone, even one that is infinite.
          vf result = max_share == 0.0F ? mean : best[v];
          if (max_share != 0.0F && max_share != 1.0F) {
            result = best[v] * max_share + mean * (1.0F - max_share);
          }
          lanes.store(y.data() + n * y.pitch() + c + v * kLanes, result);
          if (where) {
            lanes.storei(where.ints() + n * in.channels + c + v * kLanes, winner[v]);
          }
        }
      });
    }
  });
}

void CpuBackend::global_pool_backward(const Tensor& where, float max_share, const Tensor& dy, const GradTarget& dx) {
  if (!dx) {
    return;
  }
  const Put mode = put_mode(dx);
  const Sizes in = sizes_of(dx.grad);
  const int64_t pixels = in.height * in.width;
  const float mean_factor = (1.0F - max_share) / static_cast<float>(pixels);
  const int32_t* winners = max_share != 0.0F ? where.ints() : nullptr;
  for_row_ranges(runtime_.pool, cut_rows(in.images * pixels, in.channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t n = row / pixels;
      const vi pixel = set1i(static_cast<int32_t>(row % pixels));
      const float* pdy = dy.data() + n * dy.pitch();
      float* pdx = dx.grad.data() + row * dx.grad.pitch();
      for_vectors(in.channels, [&](int64_t c, auto lanes) {
        const vf gradient = lanes.load(pdy + c);
        vf result = gradient * mean_factor;
        if (winners) {
          const vmask won = eqi(lanes.loadi(winners + n * in.channels + c), pixel);
          result += select(won, gradient * max_share, zero());
        }
        lanes.put(pdx + c, result, mode);
      });
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
