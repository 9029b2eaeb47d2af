// Batch norm per channel over the rows of x[rows, C], with g = gamma inv_std, z = (x - mean) g + beta, y = f(z).
//   statistics  one pass over x. A group of rows gives mean and M2 = sum (x - mean)^2 from the sums of d = x - centre
//               and of d^2, M2 = sum d^2 - (sum d)^2 / n. The centre being the mean of the rows before it, what that
//               subtraction loses is small next to what the group adds. Chan's formula joins groups to a piece in
//               float, all means being differences from the piece's first row, so that a large mean costs no digits,
//               and pieces to the whole in double.
//   backward    two passes over x and dy, one when the statistics are frozen. With e = dy f'(z), a = sum e, b = sum e
//   (x - mean), over n rows:
//                 dbeta = a,  dgamma = inv_std b,  dx = g (e - a / n - (x - mean) inv_std^2 b / n)
//               and dx = g e when the statistics are frozen.
//   in parts    the same with a batch of which others have the rest: mean and M2 of the parts are joined, a and b
//   added.
// Saved: x, mean, inv_std. z is found again by the same operations as forward's, so f' sees the same sign.

#include <cmath>

#include "engine/cpu/column_reduce.h"
#include "engine/cpu/cpu_backend.h"

namespace gle::cpu::GLE_ISA {

namespace {

// Joins `rows` rows with these moments to the `before` rows whose moments are in memory.
template <class Lanes>
GLE_INLINE void join_moments(vf group_mean, vf group_m2, int64_t rows, int64_t before, float* mean, float* m2,
                             Lanes lanes) {
  const float share = static_cast<float>(rows) / static_cast<float>(before + rows);
  const vf mean_before = lanes.load(mean);
  const vf delta = group_mean - mean_before;
  lanes.store(mean, fma(delta, set1(share), mean_before));
  lanes.store(m2, group_m2 + fma(delta * delta, set1(static_cast<float>(before) * share), lanes.load(m2)));
}

// The gradients of one call, in steps: sums over rows, what they come to, dx.
struct Gradient {
  const Tensor &x, &dy;
  const float *centre, *inv_std, *shift;
  float* scale;
  float slope;

  // memory[C]: for the scale.
  Gradient(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma, const Tensor& beta,
           Activation f, const Tensor& dy, float* memory)
      : x(x), dy(dy), centre(mean.data()), inv_std(inv_std.data()), shift(beta.data()), scale(memory), slope(f.slope) {
    for_vectors(x.channels(), [&](int64_t c, auto lanes) {
      lanes.store(scale + c, lanes.load(gamma.data() + c) * lanes.load(inv_std.data() + c));
    });
  }

  // each(c, a, b). On the way `frozen_dx`, if it is wanted, takes g e.
  template <class Each>
  void sum(ThreadPool& pool, const Pieces& pieces, float* partials, const GradTarget& frozen_dx,
           const Each& each) const {
    const int64_t channels = x.channels();
    const Put mode = frozen_dx ? put_mode(frozen_dx) : Put::overwrite;
    float* const to = frozen_dx ? frozen_dx.grad.data() : nullptr;
    reduce_columns(pool, pieces, {&x, &dy}, 2, partials,
                   [x = x.data(), x_pitch = x.pitch(), dy = dy.data(), dy_pitch = dy.pitch(), to,
                    to_pitch = frozen_dx.grad.pitch(), mode, channels, centre = centre, scale = scale, shift = shift,
                    slope = set1(slope)](int64_t row, auto rows, int64_t, int64_t first, auto vectors, auto lanes,
                                         float* partial) {
                     for (int v = 0; v < vectors.count; ++v, partial += kLanes) {
                       const int64_t c = first + v * kLanes;
                       const vf m = lanes.load(centre + c);
                       const vf g = lanes.load(scale + c);
                       const vf s = lanes.load(shift + c);
                       vf a = {};
                       vf b = {};
                       for (int i = 0; i < rows.count; ++i) {
                         const vf d = lanes.load(x + (row + i) * x_pitch + c) - m;
                         const vf e =
                             activation_gradient(fma(d, g, s), slope, lanes.load(dy + (row + i) * dy_pitch + c));
                         a += e;
                         b = fma(e, d, b);
                         if (to) {
                           lanes.put(to + (row + i) * to_pitch + c, e * g, mode);
                         }
                       }
                       lanes.store(partial, a + lanes.load(partial));
                       lanes.store(partial + channels, b + lanes.load(partial + channels));
                     }
                   });
    for (int64_t first = 0; first < channels; first += kCombine) {
      const int64_t count = channels - first < kCombine ? channels - first : kCombine;
      double a[kCombine];
      double b[kCombine];
      add_partials(pieces, channels, 2, partials, 0, first, count, a);
      add_partials(pieces, channels, 2, partials, 1, first, count, b);
      for (int64_t i = 0; i < count; ++i) {
        each(first + i, a[i], b[i]);
      }
    }
  }

  void put_parameters(int64_t c, double a, double b, const GradTarget& dgamma, const GradTarget& dbeta) const {
    const auto put = [c](const GradTarget& to, double value) {
      if (to) {
        float& out = to.grad.data()[c];
        out = static_cast<float>(to.mode == Accumulate::add ? static_cast<double>(out) + value : value);
      }
    };
    put(dgamma, static_cast<double>(inv_std[c]) * b);
    put(dbeta, a);
  }

  // per_row = g a / n, per_deviation = g inv_std^2 b / n
  void put_shares(int64_t c, double mean_a, double mean_b, float* per_row, float* per_deviation) const {
    const auto inverse = static_cast<double>(inv_std[c]);
    const auto g = static_cast<double>(scale[c]);
    per_row[c] = static_cast<float>(g * mean_a);
    per_deviation[c] = static_cast<float>(g * inverse * inverse * mean_b);
  }

  // Without per_row the statistics are frozen.
  void put_data(ThreadPool& pool, const float* per_row, const float* per_deviation, const GradTarget& dx) const {
    for_row_ranges(pool, cut_rows(x.rows(), 2 * x.channels()), [&](int64_t begin, int64_t end) {
      const Gradient here = *this;  // in registers, as all below: nothing that is stored can change it
      const float* const shares[2] = {per_row, per_deviation};
      const int64_t channels = x.channels();
      const Put mode = put_mode(dx);
      const vf slopes = set1(slope);
      const Ahead ahead_x(x, 0, 4 * channels);
      const Ahead ahead_dy(dy, 0, 4 * channels);
      for (int64_t row = begin; row < end; ++row) {
        const float* px = x.data() + row * x.pitch();
        const float* pdy = dy.data() + row * dy.pitch();
        float* pdx = dx.grad.data() + row * dx.grad.pitch();
        for_vectors(channels, [&](int64_t c, auto lanes) {
          if (ahead_x.far()) {
            ahead_x.fetch(px + c);
          }
          if (ahead_dy.far()) {
            ahead_dy.fetch(pdy + c);
          }
          const vf d = lanes.load(px + c) - lanes.load(here.centre + c);
          const vf g = lanes.load(here.scale + c);
          const vf e = activation_gradient(fma(d, g, lanes.load(here.shift + c)), slopes, lanes.load(pdy + c));
          vf result = e * g;
          if (shares[0]) {
            result = (result - lanes.load(shares[0] + c)) - d * lanes.load(shares[1] + c);
          }
          lanes.put(pdx + c, result, mode);
        });
      }
    });
  }
};

// What a channel's statistics come to, from the mean and the sum of squared deviations of n rows.
struct Statistic {
  double mean, m2, n;

  void put(int64_t c, float eps, float momentum, const Tensor& running_mean, const Tensor& running_var,
           const Tensor& means, const Tensor& inv_std) const {
    const double variance = m2 / n;
    const double unbiased = n > 1 ? n / (n - 1.0) : 1.0;
    const auto share = static_cast<double>(momentum);
    float* running[2] = {running_mean.data() + c, running_var.data() + c};
    *running[0] = static_cast<float>((1.0 - share) * static_cast<double>(*running[0]) + share * mean);
    *running[1] = static_cast<float>((1.0 - share) * static_cast<double>(*running[1]) + share * variance * unbiased);
    means.data()[c] = static_cast<float>(mean);
    // NaN of a variance beyond all numbers, which would hide behind a factor of 0.
    inv_std.data()[c] = static_cast<float>(1.0 / __builtin_sqrt(variance + static_cast<double>(eps)) + 0.0 * variance);
  }
};

}  // namespace

void CpuBackend::batch_norm_statistics(const Tensor& x, float eps, float momentum, const Tensor& running_mean,
                                       const Tensor& running_var, const Tensor& mean, const Tensor& inv_std) {
  const int64_t channels = x.channels();
  const int64_t pitch = x.pitch();
  const Pieces pieces = cut_for_columns(x.rows(), channels);
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(pieces.count() * 2 * channels) * sizeof(float), "batch_norm_statistics");
  float* partials = lease.floats();
  reduce_columns(runtime_.pool, pieces, {&x}, 2, partials,
                 [x = x.data(), pitch, channels](int64_t row, auto rows, int64_t before, int64_t c, auto vectors,
                                                 auto lanes, float* partial) {
                   const vf share = set1(1.0F / static_cast<float>(rows.count));
                   const float* px = x + row * pitch + c;
                   for (int v = 0; v < vectors.count; ++v, px += kLanes, partial += kLanes) {
                     const vf origin = lanes.load(px - before * pitch);
                     const vf centre = origin + lanes.load(partial);
                     vf sum = {};
                     vf squares = {};
                     for (int i = 0; i < rows.count; ++i) {
                       const vf d = lanes.load(px + i * pitch) - centre;
                       sum += d;
                       squares = fma(d, d, squares);
                     }
                     const vf mean = sum * share;
                     join_moments((centre - origin) + mean, squares - sum * mean, rows.count, before, partial,
                                  partial + channels, lanes);
                   }
                 });

  const auto n = static_cast<double>(x.rows());
  for (int64_t first = 0; first < channels; first += kCombine) {
    const int64_t count = channels - first < kCombine ? channels - first : kCombine;
    double means[kCombine] = {};
    double m2[kCombine];
    for (int64_t piece = 0; piece < pieces.count(); ++piece) {
      const float* piece_means = partials + piece * 2 * channels + first;
      const float* origin = x.data() + pieces.begin(piece) * pitch + first;
      const double weight = static_cast<double>(pieces.end(piece) - pieces.begin(piece)) / n;
      for (int64_t i = 0; i < count; ++i) {
        means[i] += weight * (static_cast<double>(origin[i]) + static_cast<double>(piece_means[i]));
      }
    }
    add_partials(pieces, channels, 2, partials, 1, first, count, m2);
    for (int64_t piece = 0; piece < pieces.count(); ++piece) {
      const float* piece_means = partials + piece * 2 * channels + first;
      const float* origin = x.data() + pieces.begin(piece) * pitch + first;
      const auto rows = static_cast<double>(pieces.end(piece) - pieces.begin(piece));
      for (int64_t i = 0; i < count; ++i) {
        const double d = static_cast<double>(origin[i]) + static_cast<double>(piece_means[i]) - means[i];
        m2[i] += rows * d * d;
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      Statistic{means[i], m2[i], n}.put(first + i, eps, momentum, running_mean, running_var, mean, inv_std);
    }
  }
}

void CpuBackend::batch_norm_join_statistics(const Tensor& moments, int64_t rows, float eps, float momentum,
                                            const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                                            const Tensor& inv_std) {
  const int64_t channels = mean.elements();
  const int64_t parts = moments.rows() / 2;
  const auto n = static_cast<double>(rows);
  for (int64_t c = 0; c < channels; ++c) {
    const auto at = [&](int64_t part, int64_t which) {
      return static_cast<double>(moments.data()[(2 * part + which) * moments.pitch() + c]);
    };
    double sum = 0;
    for (int64_t part = 0; part < parts; ++part) {
      sum += at(part, 0);
    }
    Statistic all{sum / static_cast<double>(parts), 0, n * static_cast<double>(parts)};
    for (int64_t part = 0; part < parts; ++part) {
      const double d = at(part, 0) - all.mean;
      all.m2 += at(part, 1) * (n - 1) + n * d * d;
    }
    all.put(c, eps, momentum, running_mean, running_var, mean, inv_std);
  }
}

void CpuBackend::batch_norm_inv_std(const Tensor& variance, float eps, const Tensor& inv_std) {
  for_vectors(variance.channels(), [&](int64_t c, auto lanes) {
    lanes.store(inv_std.data() + c, rsqrt(lanes.load(variance.data() + c) + eps));
  });
}

void CpuBackend::batch_norm_forward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                    const Tensor& beta, Activation f, const Tensor& y) {
  const int64_t channels = x.channels();
  const Put mode = put_mode(y);
  const Workspace::Lease lease = workspace().lease(static_cast<size_t>(channels) * sizeof(float), "batch_norm_forward");
  float* scale = lease.floats();
  for_vectors(channels, [&](int64_t c, auto lanes) {
    lanes.store(scale + c, lanes.load(gamma.data() + c) * lanes.load(inv_std.data() + c));
  });
  for_row_ranges(runtime_.pool, cut_rows(x.rows(), channels), [&](int64_t begin, int64_t end) {
    // In registers: nothing that is stored can change them.
    const float *const centre = mean.data(), *const factor = scale, *const shift = beta.data();
    const Put put = mode;
    const int64_t width = channels;
    const vf slope = set1(f.slope);
    const Ahead ahead(x, 0, 2 * channels);
    const bool fetch = ahead.far() || put == Put::stream;
    for (int64_t row = begin; row < end; ++row) {
      const float* px = x.data() + row * x.pitch();
      float* py = y.data() + row * y.pitch();
      for_vectors(width, [&](int64_t c, auto lanes) {
        if (fetch) {
          ahead.fetch(px + c);
        }
        const vf z = fma(lanes.load(px + c) - lanes.load(centre + c), lanes.load(factor + c), lanes.load(shift + c));
        lanes.put(py + c, activate(z, slope), put);
      });
    }
  });
}

void CpuBackend::batch_norm_backward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                     const Tensor& beta, Activation f, Statistics statistics, const Tensor& dy,
                                     const GradTarget& dx, const GradTarget& dgamma, const GradTarget& dbeta) {
  const int64_t channels = x.channels();
  const bool of_batch = statistics == Statistics::of_batch;
  const Pieces pieces = cut_for_columns(x.rows(), 2 * channels);
  const Workspace::Lease lease = workspace().lease(
      static_cast<size_t>((pieces.count() * 2 + 3) * channels) * sizeof(float), "batch_norm_backward");
  float* per_row = lease.floats() + channels;
  float* per_deviation = per_row + channels;
  const Gradient gradient(x, mean, inv_std, gamma, beta, f, dy, lease.floats());
  if (dgamma || dbeta || (dx && of_batch)) {
    const auto n = static_cast<double>(x.rows());
    gradient.sum(runtime_.pool, pieces, per_deviation + channels, of_batch ? GradTarget{} : dx,
                 [&](int64_t c, double a, double b) {
                   gradient.put_parameters(c, a, b, dgamma, dbeta);
                   gradient.put_shares(c, a / n, b / n, per_row, per_deviation);
                 });
    if (dx && of_batch) {
      gradient.put_data(runtime_.pool, per_row, per_deviation, dx);
    }
  } else if (dx) {
    gradient.put_data(runtime_.pool, nullptr, nullptr, dx);
  }
}

void CpuBackend::batch_norm_backward_sums(const Tensor& x, const Tensor& mean, const Tensor& inv_std,
                                          const Tensor& gamma, const Tensor& beta, Activation f, const Tensor& dy,
                                          const Tensor& sums, const GradTarget& dgamma, const GradTarget& dbeta) {
  const int64_t channels = x.channels();
  const Pieces pieces = cut_for_columns(x.rows(), 2 * channels);
  const Workspace::Lease lease = workspace().lease(
      static_cast<size_t>((pieces.count() * 2 + 1) * channels) * sizeof(float), "batch_norm_backward_sums");
  const Gradient gradient(x, mean, inv_std, gamma, beta, f, dy, lease.floats());
  gradient.sum(runtime_.pool, pieces, lease.floats() + channels, {}, [&](int64_t c, double a, double b) {
    gradient.put_parameters(c, a, b, dgamma, dbeta);
    sums.data()[c] = static_cast<float>(a);
    sums.data()[channels + c] = static_cast<float>(b);
  });
}

void CpuBackend::batch_norm_backward_data(const Tensor& x, const Tensor& mean, const Tensor& inv_std,
                                          const Tensor& gamma, const Tensor& beta, Activation f, const Tensor& dy,
                                          const Tensor& sums, int64_t rows, const GradTarget& dx) {
  if (!dx) {
    return;
  }
  const int64_t channels = x.channels();
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(3 * channels) * sizeof(float), "batch_norm_backward_data");
  float* per_row = lease.floats() + channels;
  float* per_deviation = per_row + channels;
  const Gradient gradient(x, mean, inv_std, gamma, beta, f, dy, lease.floats());
  const auto n = static_cast<double>(rows);
  for (int64_t c = 0; c < channels; ++c) {
    gradient.put_shares(c, static_cast<double>(sums.data()[c]) / n, static_cast<double>(sums.data()[channels + c]) / n,
                        per_row, per_deviation);
  }
  gradient.put_data(runtime_.pool, per_row, per_deviation, dx);
}

// inv_std = (variance (n - 1) / n + eps)^-1/2 and z = (x - mean) inv_std gamma + beta: with a and b as above the mean
// gets -g a, and the variance -gamma inv_std^3 b (n - 1) / 2n.
void CpuBackend::batch_norm_backward_moments(const Tensor& inv_std, const Tensor& gamma, const Tensor& dgamma,
                                             const Tensor& dbeta, int64_t rows, const GradTarget& dmoments) {
  const auto n = static_cast<float>(rows);
  const vf half = set1(-0.5F * (n - 1.0F) / n);
  const Put mode = dmoments.mode == Accumulate::add ? Put::add : Put::overwrite;
  float* dmean = dmoments.grad.data();
  float* dvariance = dmean + dmoments.grad.pitch();
  for_vectors(gamma.elements(), [&](int64_t c, auto lanes) {
    const vf inverse = lanes.load(inv_std.data() + c), g = lanes.load(gamma.data() + c) * inverse;
    lanes.put(dmean + c, zero() - g * lanes.load(dbeta.data() + c), mode);
    lanes.put(dvariance + c, half * (g * inverse) * lanes.load(dgamma.data() + c), mode);
  });
}

// dx = dmean / n + dvariance 2 (x - mean) / (n - 1)
void CpuBackend::moments_backward(const Tensor& x, const Tensor& moments, const Tensor& dmoments, int64_t rows,
                                  const GradTarget& dx) {
  const float per_row = 1.0F / static_cast<float>(rows);
  const float per_deviation = 2.0F / static_cast<float>(rows - 1);
  const float* centre = moments.data();
  const float* dmean = dmoments.data();
  const float* dvariance = dmean + dmoments.pitch();
  const Put mode = put_mode(dx);
  constexpr int64_t kRowsAhead = 16;
  for_row_ranges(runtime_.pool, cut_rows(x.rows(), x.channels()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* px = x.data() + row * x.pitch();
      float* pdx = dx.grad.data() + row * dx.grad.pitch();
      for_vectors(x.channels(), [&](int64_t c, auto lanes) {
        // A few channels of wide rows: the processor does not see which lines come next.
        __builtin_prefetch(px + kRowsAhead * x.pitch() + c);
        __builtin_prefetch(pdx + kRowsAhead * dx.grad.pitch() + c, 1);
        const vf deviation = lanes.load(px + c) - lanes.load(centre + c);
        lanes.put(pdx + c, fma(deviation, lanes.load(dvariance + c) * per_deviation, lanes.load(dmean + c) * per_row),
                  mode);
      });
    }
  });
}

void CpuBackend::batch_norm_fold(const Tensor& w, const Tensor& bias, const Tensor& mean, const Tensor& inv_std,
                                 const Tensor& gamma, const Tensor& beta, const Tensor& folded_w,
                                 const Tensor& folded_bias) {
  const int64_t filters = mean.channels();
  const int64_t taps = w.rows() * w.channels() / filters;
  for_row_ranges(runtime_.pool, cut_rows(filters, taps), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const float factor = gamma.data()[k] * inv_std.data()[k];
      const float old_bias = bias ? bias.data()[k] : 0.0F;
      folded_bias.data()[k] = (old_bias - mean.data()[k]) * factor + beta.data()[k];
      const float* from = w.data() + k * taps;
      float* to = folded_w.data() + k * taps;
      for_vectors(taps, [&](int64_t i, auto lanes) { lanes.store(to + i, lanes.load(from + i) * factor); });
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
