// Pooling x[N,H,W,C] to y[N,P,Q,C], a thread for a pixel and a few channels (map.h). The backward kernels gather: every
// input pixel asks the windows that see it (math/pool_window.h), so nothing is zeroed first and each sum has one order.
//   max      saves one byte per output, the winning tap;  dx = sum of dy over windows whose tap lands on the pixel
//   average  saves nothing;                               dx = sum of dy / divisor over the windows that see the pixel
//   global   saves the winning pixel per channel;         dx = (1 - share) dy / (H W), plus share dy at the winner
//
// Bytes that must move, for i elements of x and o of y: max forward 4i + 5o, backward 5o + 4i; average forward and
// backward 4i + 4o; global forward 4i + 8o (column_reduce.h, an image a piece), backward 8o + 4i. One launch each;
// adding to a target reads it too. What neighbouring windows share is read again from the caches.

#include "engine/cuda/column_reduce.h"
#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/map.h"
#include "engine/math/pool_window.h"

namespace gle::cuda {

namespace {

// A NaN beats every number and no number beats a NaN; among equals the first stays.
__device__ inline bool beats(float challenger, float holder) { return challenger > holder || challenger != challenger; }

struct Pixels {
  unsigned height, width;

  explicit Pixels(const Tensor& x)
      : height(static_cast<unsigned>(x.shape()[1])), width(static_cast<unsigned>(x.shape()[2])) {}
  __device__ int64_t size() const { return int64_t{height} * width; }
};

// Which image, row and column a pixel of all images is. Fewer than 2^32 of them: no division of long numbers.
struct Place {
  int64_t image, row, column;

  __device__ Place(const Pixels& pixels, int64_t pixel) {
    const auto number = static_cast<unsigned>(pixel);
    const unsigned line = number / pixels.width;
    column = number - line * pixels.width;
    image = line / pixels.height;
    row = line - static_cast<unsigned>(image) * pixels.height;
  }
};

struct MaxPool {
  In x;
  Pixels in, out;
  PoolAxis rows, columns;
  uint8_t* taps;  // may be null
  int64_t channels;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t pixel) {
      const Place place(out, pixel);
      const PoolWindow down = pool_window(rows, place.row), across = pool_window(columns, place.column);
      const int64_t image = place.image * in.size();
      Floats<kWidth> best = x.load<kWidth>(image + down.begin * in.width + across.begin, column);
      const auto corner = static_cast<int>((down.begin - down.start) * columns.kernel + across.begin - across.start);
      int winner[kWidth];
      for (int i = 0; i < kWidth; ++i) {
        winner[i] = corner;
      }
      for (int64_t h = down.begin; h < down.end; ++h) {
        for (int64_t w = across.begin; w < across.end; ++w) {
          const auto v = x.load<kWidth>(image + h * in.width + w, column);
          const auto tap = static_cast<int>((h - down.start) * columns.kernel + w - across.start);
          for (int i = 0; i < kWidth; ++i) {
            const bool better = beats(v.at[i], best.at[i]);
            best.at[i] = better ? v.at[i] : best.at[i];
            winner[i] = better ? tap : winner[i];
          }
        }
      }
      if (taps) {
        uint8_t* to = taps + pixel * channels + column;
        if constexpr (kWidth == 4) {
          *reinterpret_cast<uchar4*>(to) =
              make_uchar4(static_cast<uint8_t>(winner[0]), static_cast<uint8_t>(winner[1]),
                          static_cast<uint8_t>(winner[2]), static_cast<uint8_t>(winner[3]));
        } else {
          *to = static_cast<uint8_t>(winner[0]);
        }
      }
      return best;
    };
  }
};

template <int kWidth>
struct Taps {
  int at[kWidth];

  __device__ explicit Taps(const uint8_t* from) {
    if constexpr (kWidth == 4) {
      const uchar4 v = *reinterpret_cast<const uchar4*>(from);
      at[0] = v.x, at[1] = v.y, at[2] = v.z, at[3] = v.w;
    } else {
      at[0] = *from;
    }
  }
};

// The sum over the windows (p, q) that see a pixel; f.add() adds the share of one, the `window`th of all.
template <class F>
struct Gather {
  F f;
  Pixels in, out;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t pixel) {
      const Place place(in, pixel);
      const PoolCover down = pool_cover(f.rows, out.height, place.row);
      const PoolCover across = pool_cover(f.columns, out.width, place.column);
      Floats<kWidth> sum{};
      for (int64_t p = down.begin; p < down.end; ++p) {
        for (int64_t q = across.begin; q < across.end; ++q) {
          f.template add<kWidth>(place, p, q, place.image * out.size() + p * out.width + q, column, sum);
        }
      }
      return sum;
    };
  }
};

struct MaxPoolBack {
  In dy;
  PoolAxis rows, columns;
  const uint8_t* taps;
  int64_t channels;

  template <int kWidth>
  __device__ void add(const Place& place, int64_t p, int64_t q, int64_t window, int64_t column,
                      Floats<kWidth>& sum) const {
    const int64_t down = place.row + rows.pad - p * rows.stride;
    const auto tap = static_cast<int>(down * columns.kernel + place.column + columns.pad - q * columns.stride);
    const Taps<kWidth> won(taps + window * channels + column);
    const auto d = dy.load<kWidth>(window, column);
    for (int i = 0; i < kWidth; ++i) {
      sum.at[i] += won.at[i] == tap ? d.at[i] : 0.0F;
    }
  }
};

struct AveragePool {
  In x;
  Pixels in, out;
  PoolAxis rows, columns;
  Padding padding;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t pixel) {
      const Place place(out, pixel);
      const PoolWindow down = pool_window(rows, place.row), across = pool_window(columns, place.column);
      Floats<kWidth> sum{};
      for (int64_t h = down.begin; h < down.end; ++h) {
        for (int64_t w = across.begin; w < across.end; ++w) {
          const auto v = x.load<kWidth>(place.image * in.size() + h * in.width + w, column);
          for (int i = 0; i < kWidth; ++i) {
            sum.at[i] += v.at[i];
          }
        }
      }
      const int64_t divisor = pool_length(down, padding) * pool_length(across, padding);
      const float factor = 1.0F / static_cast<float>(divisor);
      return each<kWidth>([&](int i) { return sum.at[i] * factor; });
    };
  }
};

struct AveragePoolBack {
  In dy;
  PoolAxis rows, columns;
  Padding padding;

  template <int kWidth>
  __device__ void add(const Place&, int64_t p, int64_t q, int64_t window, int64_t column, Floats<kWidth>& sum) const {
    const int64_t area = pool_length(pool_window(rows, p), padding) * pool_length(pool_window(columns, q), padding);
    const float factor = 1.0F / static_cast<float>(area);
    const auto d = dy.load<kWidth>(window, column);
    for (int i = 0; i < kWidth; ++i) {
      sum.at[i] = fmaf(d.at[i], factor, sum.at[i]);
    }
  }
};

// Of some pixels of an image. `pixel` counts those of all images from 1; 0: no pixel yet.
template <int kWidth>
struct PixelSums {
  Floats<kWidth> sum, best;
  int pixel[kWidth];

  __device__ void take(int i, float v, int number) {
    // Pixels of other threads may lie between: the order of numbers decides, as if one thread had walked over all.
    const bool both_nan = v != v && best.at[i] != best.at[i];
    const bool first_of_equals = v == best.at[i] && number < pixel[i];
    const bool better =
        both_nan ? number > pixel[i] : first_of_equals || (best.at[i] == best.at[i] && beats(v, best.at[i]));
    if (pixel[i] == 0 || better) {
      best.at[i] = v;
      pixel[i] = number;
    }
  }
  __device__ void join(const PixelSums& other) {
    for (int i = 0; i < kWidth; ++i) {
      sum.at[i] += other.sum.at[i];
      if (other.pixel[i] != 0) {
        take(i, other.best.at[i], other.pixel[i]);
      }
    }
  }
};

struct GlobalPool {
  In x;
  int64_t pixels, channels;
  float max_share;
  int32_t* where;  // may be null
  Out y;

  template <int kWidth>
  using Sums = PixelSums<kWidth>;

  template <int kWidth>
  __device__ Width<kWidth> at(int64_t) const {
    return {};
  }
  template <int kRows, int kWidth>
  __device__ void take(Width<kWidth>, int64_t column, int64_t row, int64_t step, PixelSums<kWidth>& sums) const {
    Floats<kWidth> v[kRows];
    for (int r = 0; r < kRows; ++r) {
      v[r] = x.load<kWidth>(row + r * step, column);
    }
    for (int i = 0; i < kWidth; ++i) {
      float sum = 0.0F;
      for (int r = 0; r < kRows; ++r) {
        sum += v[r].at[i];
        sums.take(i, v[r].at[i], static_cast<int>(row + r * step) + 1);
      }
      sums.sum.at[i] += sum;
    }
  }
  template <int kWidth>
  __device__ void finish(Width<kWidth>, int64_t image, int64_t column, const PixelSums<kWidth>& sums) const {
    const float share = 1.0F / static_cast<float>(pixels);
    y.put<kWidth>(image, column, each<kWidth>([&](int i) {
                    // A share of none leaves the other alone, even one that is infinite.
                    const float mean = sums.sum.at[i] * share, best = sums.best.at[i];
                    if (max_share == 0.0F || max_share == 1.0F) {
                      return max_share == 0.0F ? mean : best;
                    }
                    return best * max_share + mean * (1.0F - max_share);
                  }));
    if (where) {
      for (int i = 0; i < kWidth; ++i) {
        where[image * channels + column + i] = sums.pixel[i] - 1 - static_cast<int32_t>(image * pixels);
      }
    }
  }
};

struct GlobalPoolBack {
  In dy;
  const int32_t* winners;  // null: no share of the maximum
  Pixels in;
  int64_t channels;
  float max_share;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column, mean_factor = (1.0F - max_share) / static_cast<float>(in.size())](int64_t row) {
      const auto pixels = static_cast<unsigned>(in.size());
      const unsigned image = static_cast<unsigned>(row) / pixels;
      const auto pixel = static_cast<int32_t>(static_cast<unsigned>(row) - image * pixels);
      const auto d = dy.load<kWidth>(image, column);
      return each<kWidth>([&](int i) {
        const bool won = winners && winners[image * channels + column + i] == pixel;
        return d.at[i] * mean_factor + (won ? d.at[i] * max_share : 0.0F);
      });
    };
  }
};

}  // namespace

void CudaBackend::max_pool_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& taps) {
  const Pixels in(x), out(y);
  map(at("max_pool_forward"), x.channels() % 4 == 0 && in_fours({&x, &y}) && begin_in_fours({&taps}),
      MaxPool{x, in, out, pool_rows(options, in.height), pool_columns(options, in.width), taps ? taps.bytes() : nullptr,
              x.channels()},
      y.rows(), y.channels(), y);
}

void CudaBackend::max_pool_backward(const Tensor& taps, const Pool2dOptions& options, const Tensor& dy,
                                    const GradTarget& dx) {
  if (!dx) {
    return;
  }
  const Pixels in(dx.grad), out(dy);
  map(at("max_pool_backward"), dy.channels() % 4 == 0 && in_fours({&dy, &dx.grad}) && begin_in_fours({&taps}),
      Gather<MaxPoolBack>{
          {dy, pool_rows(options, in.height), pool_columns(options, in.width), taps.bytes(), dy.channels()}, in, out},
      dx.grad.rows(), dy.channels(), dx);
}

void CudaBackend::average_pool_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y) {
  const Pixels in(x), out(y);
  map(at("average_pool_forward"), in_fours({&x, &y}),
      AveragePool{x, in, out, pool_rows(options, in.height), pool_columns(options, in.width), options.padding},
      y.rows(), y.channels(), y);
}

void CudaBackend::average_pool_backward(const Pool2dOptions& options, const Tensor& dy, const GradTarget& dx) {
  if (!dx) {
    return;
  }
  const Pixels in(dx.grad), out(dy);
  map(at("average_pool_backward"), in_fours({&dy, &dx.grad}),
      Gather<AveragePoolBack>{
          {dy, pool_rows(options, in.height), pool_columns(options, in.width), options.padding}, in, out},
      dx.grad.rows(), dy.channels(), dx);
}

void CudaBackend::global_pool_forward(const Tensor& x, float max_share, const Tensor& y, const Tensor& where) {
  const int64_t pixels = x.shape()[1] * x.shape()[2];
  const bool fours = x.channels() % 4 == 0 && in_fours({&x, &y});
  for_columns(at("global_pool_forward"), fours,
              GlobalPool{x, pixels, x.channels(), max_share, where ? where.ints() : nullptr, y}, {x.rows(), pixels},
              x.channels());
}

void CudaBackend::global_pool_backward(const Tensor& where, float max_share, const Tensor& dy, const GradTarget& dx) {
  if (dx) {
    map(at("global_pool_backward"), in_fours({&dy, &dx.grad}),
        GlobalPoolBack{dy, max_share != 0.0F ? where.ints() : nullptr, Pixels(dx.grad), dy.channels(), max_share},
        dx.grad.rows(), dy.channels(), dx);
  }
}

}  // namespace gle::cuda
