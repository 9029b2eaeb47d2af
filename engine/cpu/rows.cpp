// Kernels on rows x[rows, C], a row being the channels of one pixel; rows in parallel, each read twice from the nearest
// cache.
//   centre:     y = x - mean(x);              linear and symmetric, so its own backward
//   normalise:  y = x / n + beta x, n = |x|;  dx = (dy - u (u . dy)) / n + beta dy, u = x / n.  Saved: x, n
// column_sums: see column_reduce.h. Columns are taken and put one by one: the class of a batch is a number or two a
// row.

#include <cmath>

#include "engine/cpu/column_reduce.h"
#include "engine/cpu/cpu_backend.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr float kTiny = 1e-12F;

// NaN of a norm beyond all numbers, which would hide behind a factor of 0.
inline float inverse_of(float norm) { return 1.0F / norm + 0.0F * norm; }

// sum over c of term(c, lanes); terms are zero in the lanes that do not exist.
template <class Term>
GLE_INLINE float row_sum(int64_t channels, const Term& term) {
  vf sum[4] = {zero(), zero(), zero(), zero()};
  int64_t c = 0;
  for (; c + 4 * kLanes <= channels; c += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) {
      sum[v] += term(c + v * kLanes, FullLanes{});
    }
  }
  for_vectors(channels - c, [&](int64_t i, auto lanes) { sum[0] += term(c + i, lanes); });
  return horizontal_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

}  // namespace

void CpuBackend::column_sums(const Tensor& x, const GradTarget& sums) {
  if (!sums) {
    return;
  }
  const int64_t channels = x.channels();
  const Pieces pieces = cut_for_columns(x.rows(), channels);
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(pieces.count() * channels) * sizeof(float), "column_sums");
  float* partials = lease.floats();
  reduce_columns(runtime_.pool, pieces, {&x}, 1, partials,
                 [x = x.data(), pitch = x.pitch()](int64_t row, auto rows, int64_t, int64_t c, auto vectors, auto lanes,
                                                   float* partial) {
                   const float* px = x + row * pitch + c;
                   for (int v = 0; v < vectors.count; ++v, px += kLanes, partial += kLanes) {
                     vf sum = lanes.load(px);
                     for (int i = 1; i < rows.count; ++i) {
                       sum += lanes.load(px + i * pitch);
                     }
                     lanes.store(partial, sum + lanes.load(partial));
                   }
                 });
  float* out = sums.grad.data();
  const bool add = sums.mode == Accumulate::add;
  for (int64_t c = 0; c < channels; c += kCombine) {
    const int64_t n = channels - c < kCombine ? channels - c : kCombine;
    double total[kCombine];
    add_partials(pieces, channels, 1, partials, 0, c, n, total);
    for (int64_t i = 0; i < n; ++i) {
      out[c + i] = static_cast<float>(add ? static_cast<double>(out[c + i]) + total[i] : total[i]);
    }
  }
}

void CpuBackend::centre_rows(const Tensor& x, const GradTarget& y) {
  if (!y) {
    return;
  }
  const Put mode = put_mode(y);
  const int64_t channels = x.channels();
  for_row_ranges(runtime_.pool, cut_rows(x.rows(), channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* px = x.data() + row * x.pitch();
      float* py = y.grad.data() + row * y.grad.pitch();
      const float sum = row_sum(channels, [&](int64_t c, auto lanes) { return lanes.load(px + c); });
      const vf mean = set1(sum / static_cast<float>(channels));
      for_vectors(channels, [&](int64_t c, auto lanes) { lanes.put(py + c, lanes.load(px + c) - mean, mode); });
    }
  });
}

void CpuBackend::normalise_rows_forward(const Tensor& x, float beta, const Tensor& norms, const Tensor& y) {
  const Put mode = put_mode(y);
  const int64_t channels = x.channels();
  for_row_ranges(runtime_.pool, cut_rows(x.rows(), channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* px = x.data() + row * x.pitch();
      float* py = y.data() + row * y.pitch();
      const float squares = row_sum(channels, [&](int64_t c, auto lanes) {
        const vf v = lanes.load(px + c);
        return v * v;
      });
      const float norm = sqrtf(squares);
      norms.data()[row] = norm;
      const vf factor = set1(inverse_of(norm > kTiny ? norm : kTiny) + beta);
      for_vectors(channels, [&](int64_t c, auto lanes) { lanes.put(py + c, lanes.load(px + c) * factor, mode); });
    }
  });
}

void CpuBackend::normalise_rows_backward(const Tensor& x, const Tensor& norms, float beta, const Tensor& dy,
                                         const GradTarget& dx) {
  if (!dx) {
    return;
  }
  const Put mode = put_mode(dx);
  const int64_t channels = x.channels();
  for_row_ranges(runtime_.pool, cut_rows(x.rows(), 2 * channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* px = x.data() + row * x.pitch();
      const float* pdy = dy.data() + row * dy.pitch();
      float* pdx = dx.grad.data() + row * dx.grad.pitch();
      // A row of zeros points nowhere: its derivative would be dy / 1e-12, which would drown every other gradient, so
      // there dx = beta dy by definition.
      const float norm = norms.data()[row];
      const float inverse = norm <= kTiny ? 0.0F : inverse_of(norm);
      const float dot =
          row_sum(channels, [&](int64_t c, auto lanes) { return lanes.load(px + c) * lanes.load(pdy + c); });
      const vf factor_dy = set1(inverse + beta);
      const vf factor_x = set1(-(dot * inverse) * inverse * inverse);
      for_vectors(channels, [&](int64_t c, auto lanes) {
        lanes.put(pdx + c, fma(lanes.load(px + c), factor_x, lanes.load(pdy + c) * factor_dy), mode);
      });
    }
  });
}

void CpuBackend::take_columns(const Tensor& x, const Tensor& columns, const Tensor& y) {
  const int32_t* from = columns.ints();
  for_row_ranges(runtime_.pool, cut_rows(y.rows(), y.channels()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* px = x.data() + row * x.pitch();
      float* py = y.data() + row * y.pitch();
      for (int64_t j = 0; j < y.channels(); ++j) {
        py[j] = px[from[j]];
      }
    }
  });
}

void CpuBackend::put_columns(const Tensor& dy, const Tensor& columns, const GradTarget& dx) {
  if (!dx) {
    return;
  }
  if (dx.mode == Accumulate::overwrite) {
    fill(0.0F, dx.grad);
  }
  const int32_t* to = columns.ints();
  for_row_ranges(runtime_.pool, cut_rows(dy.rows(), dy.channels()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* pdy = dy.data() + row * dy.pitch();
      float* pdx = dx.grad.data() + row * dx.grad.pitch();
      for (int64_t j = 0; j < dy.channels(); ++j) {
        pdx[to[j]] += pdy[j];
      }
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
