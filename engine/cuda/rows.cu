// Kernels on rows x[rows, C], a row being the channels of one pixel, by groups of threads (row_groups.h); a row is read
// from memory once and from the caches again.
//   centre:     y = x - mean(x);              linear and symmetric, so its own backward
//   normalise:  y = x / n + beta x, n = |x|;  dx = (dy - u (u . dy)) / n + beta dy, u = x / n.  Saved: x, n
// column_sums: see column_reduce.h; pieces, then their sum.
//
// Bytes that must move, for e elements: centre_rows, normalise_rows_forward 8e, normalise_rows_backward 12e, one launch
// each; column_sums 4e, two launches. Taking or putting columns: 4 bytes for each number of the wider and of the
// narrower matrix that is touched, one launch; a thread finds its column among those put by halving. Adding to a target
// reads it too.

#include "engine/cuda/column_reduce.h"
#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/map.h"
#include "engine/cuda/row_groups.h"

namespace gle::cuda {

namespace {

constexpr float kTiny = 1e-12F;

// NaN of a norm beyond all numbers, which would hide behind a factor of 0.
__device__ inline float inverse_of(float norm) { return 1.0F / norm + 0.0F * norm; }

template <int kWidth>
struct ColumnSum {
  Floats<kWidth> sum;

  __device__ void join(const ColumnSum& other) {
    for (int i = 0; i < kWidth; ++i) {
      sum.at[i] += other.sum.at[i];
    }
  }
};

// Rows of x to partial sums, or, at last, partial sums to their place.
struct ColumnSums {
  In x;
  Out to;  // row `piece`

  template <int kWidth>
  using Sums = ColumnSum<kWidth>;

  template <int kWidth>
  __device__ Width<kWidth> at(int64_t) const {
    return {};
  }
  template <int kRows, int kWidth>
  __device__ void take(Width<kWidth>, int64_t column, int64_t row, int64_t step, Sums<kWidth>& sums) const {
    Floats<kWidth> v[kRows];
    for (int r = 0; r < kRows; ++r) {
      v[r] = x.load<kWidth>(row + r * step, column);
    }
    for (int i = 0; i < kWidth; ++i) {
      float sum = v[0].at[i];
      for (int r = 1; r < kRows; ++r) {
        sum += v[r].at[i];
      }
      sums.sum.at[i] += sum;
    }
  }
  template <int kWidth>
  __device__ void finish(Width<kWidth>, int64_t piece, int64_t column, const Sums<kWidth>& sums) const {
    to.put<kWidth>(piece, column, sums.sum);
  }
};

struct Centre {
  In x;
  int64_t channels;
  Out y;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t row) const {
    const float sum = group.template sum_columns<kWidth>(
        channels, [&](int64_t c, auto width) { return x.load<decltype(width)::count>(row, c); });
    const float mean = sum / static_cast<float>(channels);
    group.template columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto v = x.load<kHere>(row, c);
      y.put<kHere>(row, c, each<kHere>([&](int i) { return v.at[i] - mean; }));
    });
  }
};

struct Normalise {
  In x;
  int64_t channels;
  float beta;
  float* norms;
  Out y;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t row) const {
    const float squares = group.template sum_columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto v = x.load<kHere>(row, c);
      return each<kHere>([&](int i) { return v.at[i] * v.at[i]; });
    });
    const float norm = sqrtf(squares);
    if (group.lane == 0) {
      norms[row] = norm;
    }
    const float factor = inverse_of(norm > kTiny ? norm : kTiny) + beta;
    group.template columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto v = x.load<kHere>(row, c);
      y.put<kHere>(row, c, each<kHere>([&](int i) { return v.at[i] * factor; }));
    });
  }
};

struct NormaliseBack {
  In x, dy;
  int64_t channels;
  float beta;
  const float* norms;
  Out dx;

  template <int kWidth, class Group>
  __device__ void row(const Group& group, int64_t row) const {
    const float dot = group.template sum_columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto v = x.load<kHere>(row, c), d = dy.load<kHere>(row, c);
      return each<kHere>([&](int i) { return v.at[i] * d.at[i]; });
    });
    // A row of zeros points nowhere: its derivative would be dy / 1e-12, which would drown every other gradient, so
    // there dx = beta dy by definition.
    const float norm = norms[row];
    const float inverse = norm <= kTiny ? 0.0F : inverse_of(norm);
    const float factor_dy = inverse + beta;
    const float factor_x = -(dot * inverse) * inverse * inverse;
    group.template columns<kWidth>(channels, [&](int64_t c, auto width) {
      constexpr int kHere = decltype(width)::count;
      const auto v = x.load<kHere>(row, c), d = dy.load<kHere>(row, c);
      dx.put<kHere>(row, c, each<kHere>([&](int i) { return fmaf(v.at[i], factor_x, d.at[i] * factor_dy); }));
    });
  }
};

struct TakeColumns {
  In x;
  const int32_t* columns;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t row) { return each<kWidth>([&](int i) { return x.at(row, columns[column + i]); }); };
  }
};

struct PutColumns {
  In dy;
  const int32_t* columns;
  int64_t count;

  // Where the column is in the ascending list, or -1.
  __device__ int64_t place_of(int64_t column) const {
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (columns[middle] < column) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < count && columns[low] == column ? low : -1;
  }
  template <int kWidth>
  __device__ auto at(int64_t column) const {
    struct Places {
      int64_t at[kWidth];
    } places;
    for (int i = 0; i < kWidth; ++i) {
      places.at[i] = place_of(column + i);
    }
    return [this, places](int64_t row) {
      return each<kWidth>([&](int i) { return places.at[i] < 0 ? 0.0F : dy.at(row, places.at[i]); });
    };
  }
};

}  // namespace

void CudaBackend::column_sums(const Tensor& x, const GradTarget& sums) {
  if (!sums) {
    return;
  }
  const int64_t channels = x.channels();
  const bool fours = channels % 4 == 0 && in_fours({&x, &sums.grad});
  const RowPieces pieces = cut_rows(x.rows(), fours ? channels / 4 : channels);
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(pieces.count() * channels) * sizeof(float), "column_sums");
  const Launch where = at("column_sums");
  for_columns(where, fours, ColumnSums{x, Out(lease.floats(), channels)}, pieces, channels);
  join_pieces(where, fours, ColumnSums{In(lease.floats(), channels), sums}, pieces, channels);
}

void CudaBackend::centre_rows(const Tensor& x, const GradTarget& y) {
  if (y) {
    for_rows(at("centre_rows"), in_fours({&x, &y.grad}), Centre{x, x.channels(), y}, x.rows(), x.channels());
  }
}

void CudaBackend::normalise_rows_forward(const Tensor& x, float beta, const Tensor& norms, const Tensor& y) {
  for_rows(at("normalise_rows_forward"), in_fours({&x, &y}), Normalise{x, x.channels(), beta, norms.data(), y},
           x.rows(), x.channels());
}

void CudaBackend::normalise_rows_backward(const Tensor& x, const Tensor& norms, float beta, const Tensor& dy,
                                          const GradTarget& dx) {
  if (dx) {
    for_rows(at("normalise_rows_backward"), in_fours({&x, &dy, &dx.grad}),
             NormaliseBack{x, dy, x.channels(), beta, norms.data(), dx}, x.rows(), x.channels());
  }
}

void CudaBackend::take_columns(const Tensor& x, const Tensor& columns, const Tensor& y) {
  map(at("take_columns"), in_fours({&y}), TakeColumns{x, columns.ints()}, y.rows(), y.channels(), y);
}

void CudaBackend::put_columns(const Tensor& dy, const Tensor& columns, const GradTarget& dx) {
  if (dx) {
    map(at("put_columns"), in_fours({&dx.grad}), PutColumns{dy, columns.ints(), columns.elements()}, dx.grad.rows(),
        dx.grad.channels(), dx);
  }
}

}  // namespace gle::cuda
