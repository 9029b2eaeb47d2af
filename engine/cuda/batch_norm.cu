// Batch norm per channel over the rows of x[rows, C], with g = gamma inv_std, z = (x - mean) g + beta, y = f(z).
//   statistics  one pass over x. A thread takes four rows at a time to mean and M2 = sum (x - mean)^2; Chan's formula
//               joins these, threads, and pieces of rows (column_reduce.h). All means are differences from the first
//               row, so that a large mean costs no digits.
//   backward    two passes over x and dy. With e = dy f'(z), a = sum e, b = sum e (x - mean), over n rows:
//                 dbeta = a,  dgamma = inv_std b,  dx = g (e - a / n - (x - mean) inv_std^2 b / n)
//               and dx = g e when the statistics are frozen.
// Saved: x, mean, inv_std. z is found again by the same operations as forward's, so f' sees the same sign.
//
// Bytes that must move, for e elements: statistics 4e, two launches; forward 8e, one; backward 20e, three (8e and two
// for dgamma and dbeta alone, 12e and one for dx alone with frozen statistics; a batch in parts: sums 8e, two, and data
// 12e, one); moments' backward 8e, one; fold 8 bytes a weight, two. Adding to a target reads it too.

#include "engine/cuda/column_reduce.h"
#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/map.h"

namespace gle::cuda {

namespace {

template <int kWidth>
struct Moments {
  Floats<kWidth> mean, m2;
  float count;

  __device__ void join(const Moments& other) {
    if (other.count == 0.0F) {
      return;
    }
    const float total = count + other.count, share = other.count / total;
    for (int i = 0; i < kWidth; ++i) {
      const float delta = other.mean.at[i] - mean.at[i];
      mean.at[i] = fmaf(delta, share, mean.at[i]);
      m2.at[i] += fmaf(delta * delta, count * share, other.m2.at[i]);
    }
    count = total;
  }
};

// NaN of a variance beyond all numbers, which would hide behind a factor of 0.
__device__ inline float inverse_root(float variance, float eps) {
  return fmaf(0.0F, variance, 1.0F / sqrtf(variance + eps));
}

struct TakeMoments {
  In x;
  float* partials;  // [pieces, 2, C]
  int64_t channels;

  template <int kWidth>
  using Sums = Moments<kWidth>;

  template <int kWidth>
  __device__ Floats<kWidth> at(int64_t column) const {
    return x.load<kWidth>(0, column);
  }
  template <int kRows, int kWidth>
  __device__ void take(const Floats<kWidth>& origin, int64_t column, int64_t row, int64_t step,
                       Moments<kWidth>& sums) const {
    Floats<kWidth> v[kRows];
    for (int r = 0; r < kRows; ++r) {
      v[r] = x.load<kWidth>(row + r * step, column);
    }
    Moments<kWidth> some;
    for (int i = 0; i < kWidth; ++i) {
      float sum = 0.0F;
      for (int r = 0; r < kRows; ++r) {
        v[r].at[i] -= origin.at[i];
        sum += v[r].at[i];
      }
      some.mean.at[i] = sum * (1.0F / kRows);
      some.m2.at[i] = 0.0F;
      for (int r = 0; r < kRows; ++r) {
        const float d = v[r].at[i] - some.mean.at[i];
        some.m2.at[i] = fmaf(d, d, some.m2.at[i]);
      }
    }
    some.count = kRows;
    sums.join(some);
  }
  template <int kWidth>
  __device__ void finish(const Floats<kWidth>&, int64_t piece, int64_t column, const Moments<kWidth>& sums) const {
    store<kWidth>(partials + 2 * piece * channels + column, sums.mean);
    store<kWidth>(partials + (2 * piece + 1) * channels + column, sums.m2);
  }
};

// A row here is a piece there.
struct JoinMoments {
  const float* x;  // its first row
  const float* partials;
  int64_t channels;
  RowPieces pieces;
  float eps, momentum;
  float *running_mean, *running_var, *mean, *inv_std;

  template <int kWidth>
  using Sums = Moments<kWidth>;

  template <int kWidth>
  __device__ Width<kWidth> at(int64_t) const {
    return {};
  }
  template <int kRows, int kWidth>
  __device__ void take(Width<kWidth>, int64_t column, int64_t row, int64_t step, Moments<kWidth>& sums) const {
    for (int64_t r = 0; r < kRows; ++r) {
      const int64_t piece = row + r * step;
      sums.join({load<kWidth>(partials + 2 * piece * channels + column),
                 load<kWidth>(partials + (2 * piece + 1) * channels + column),
                 static_cast<float>(pieces.end(piece) - pieces.begin(piece))});
    }
  }
  template <int kWidth>
  __device__ void finish(Width<kWidth>, int64_t, int64_t column, const Moments<kWidth>& sums) const {
    const auto n = static_cast<float>(pieces.rows);
    for (int i = 0; i < kWidth; ++i) {
      const int64_t c = column + i;
      const float centre = x[c] + sums.mean.at[i], variance = sums.m2.at[i] / n;
      const float unbiased = pieces.rows > 1 ? sums.m2.at[i] / (n - 1.0F) : variance;
      running_mean[c] = (1.0F - momentum) * running_mean[c] + momentum * centre;
      running_var[c] = (1.0F - momentum) * running_var[c] + momentum * unbiased;
      mean[c] = centre;
      inv_std[c] = inverse_root(variance, eps);
    }
  }
};

// What forward and backward know of a column.
struct Channels {
  const float *mean, *inv_std, *gamma, *beta;

  Channels(const Tensor& m, const Tensor& s, const Tensor& g, const Tensor& b)
      : mean(m.data()), inv_std(s.data()), gamma(g.data()), beta(b.data()) {}

  template <int kWidth>
  struct At {
    Floats<kWidth> mean, scale, beta;

    __device__ float z(int i, float deviation) const { return fmaf(deviation, scale.at[i], beta.at[i]); }
  };

  template <int kWidth>
  __device__ At<kWidth> at(int64_t column) const {
    const auto g = load<kWidth>(gamma + column), s = load<kWidth>(inv_std + column);
    return {load<kWidth>(mean + column), each<kWidth>([&](int i) { return g.at[i] * s.at[i]; }),
            load<kWidth>(beta + column)};
  }
};

struct Forward {
  In x;
  Channels channels;
  float slope;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column, here = channels.at<kWidth>(column)](int64_t row) {
      const auto v = x.load<kWidth>(row, column);
      return each<kWidth>([&](int i) { return activate(here.z(i, v.at[i] - here.mean.at[i]), slope); });
    };
  }
};

template <int kWidth>
struct GradientSums {
  Floats<kWidth> a, b;

  __device__ void join(const GradientSums& other) {
    for (int i = 0; i < kWidth; ++i) {
      a.at[i] += other.a.at[i];
      b.at[i] += other.b.at[i];
    }
  }
};

struct TakeGradients {
  In x, dy;
  Channels channels;
  float slope;
  float* partials;  // [pieces, 2, C]
  int64_t count;

  template <int kWidth>
  using Sums = GradientSums<kWidth>;

  template <int kWidth>
  __device__ Channels::At<kWidth> at(int64_t column) const {
    return channels.at<kWidth>(column);
  }
  template <int kRows, int kWidth>
  __device__ void take(const Channels::At<kWidth>& here, int64_t column, int64_t row, int64_t step,
                       GradientSums<kWidth>& sums) const {
    Floats<kWidth> v[kRows], d[kRows];
    for (int r = 0; r < kRows; ++r) {
      v[r] = x.load<kWidth>(row + r * step, column);
      d[r] = dy.load<kWidth>(row + r * step, column);
    }
    for (int i = 0; i < kWidth; ++i) {
      float a = 0.0F, b = 0.0F;
      for (int r = 0; r < kRows; ++r) {
        const float deviation = v[r].at[i] - here.mean.at[i];
        const float e = activation_gradient(here.z(i, deviation), slope, d[r].at[i]);
        a += e;
        b = fmaf(e, deviation, b);
      }
      sums.a.at[i] += a;
      sums.b.at[i] += b;
    }
  }
  template <int kWidth>
  __device__ void finish(const Channels::At<kWidth>&, int64_t piece, int64_t column,
                         const GradientSums<kWidth>& sums) const {
    store<kWidth>(partials + 2 * piece * count + column, sums.a);
    store<kWidth>(partials + (2 * piece + 1) * count + column, sums.b);
  }
};

struct JoinGradients {
  const float* partials;
  int64_t count, rows;
  const float *inv_std, *gamma;
  float* per_row;        // g a / n, and
  float* per_deviation;  // g inv_std^2 b / n; or, where the rest of the batch is to come, a and b themselves
  bool whole;
  Out dgamma, dbeta;  // without data: not wanted

  template <int kWidth>
  using Sums = GradientSums<kWidth>;

  template <int kWidth>
  __device__ Width<kWidth> at(int64_t) const {
    return {};
  }
  template <int kRows, int kWidth>
  __device__ void take(Width<kWidth>, int64_t column, int64_t row, int64_t step, GradientSums<kWidth>& sums) const {
    for (int64_t r = 0; r < kRows; ++r) {
      const int64_t piece = row + r * step;
      sums.join({load<kWidth>(partials + 2 * piece * count + column),
                 load<kWidth>(partials + (2 * piece + 1) * count + column)});
    }
  }
  template <int kWidth>
  __device__ void finish(Width<kWidth>, int64_t, int64_t column, const GradientSums<kWidth>& sums) const {
    const float share = 1.0F / static_cast<float>(rows);
    const auto inverse = load<kWidth>(inv_std + column), g = load<kWidth>(gamma + column);
    const auto dg = each<kWidth>([&](int i) { return inverse.at[i] * sums.b.at[i]; });
    const auto scale = each<kWidth>([&](int i) { return g.at[i] * inverse.at[i]; });
    store<kWidth>(per_row + column,
                  each<kWidth>([&](int i) { return whole ? scale.at[i] * sums.a.at[i] * share : sums.a.at[i]; }));
    store<kWidth>(per_deviation + column, each<kWidth>([&](int i) {
                    return whole ? scale.at[i] * inverse.at[i] * dg.at[i] * share : sums.b.at[i];
                  }));
    if (dgamma.data) {
      dgamma.put<kWidth>(0, column, dg);
    }
    if (dbeta.data) {
      dbeta.put<kWidth>(0, column, sums.a);
    }
  }
};

struct Backward {
  In x, dy;
  Channels channels;
  float slope;
  const float *per_row, *per_deviation;  // null: frozen statistics

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    const Floats<kWidth> none{};
    return [this, column, here = channels.at<kWidth>(column), a = per_row ? load<kWidth>(per_row + column) : none,
            b = per_row ? load<kWidth>(per_deviation + column) : none](int64_t row) {
      const auto v = x.load<kWidth>(row, column), d = dy.load<kWidth>(row, column);
      return each<kWidth>([&](int i) {
        const float deviation = v.at[i] - here.mean.at[i];
        const float e = activation_gradient(here.z(i, deviation), slope, d.at[i]) * here.scale.at[i];
        return per_row ? (e - a.at[i]) - deviation * b.at[i] : e;
      });
    };
  }
};

// Backward with sums that are not yet shares.
struct BackwardOfPart {
  In x, dy;
  Channels channels;
  float slope;
  const float *sums, *inv_std;
  int64_t count;
  float share;  // 1 / n

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    const auto here = channels.at<kWidth>(column);
    const auto a = load<kWidth>(sums + column), s = load<kWidth>(inv_std + column);
    const auto b = each<kWidth>([&](int i) { return sums[count + column + i]; });
    const auto per_row = each<kWidth>([&](int i) { return here.scale.at[i] * a.at[i] * share; });
    const auto per_deviation =
        each<kWidth>([&](int i) { return here.scale.at[i] * s.at[i] * s.at[i] * b.at[i] * share; });
    return [this, column, here, per_row, per_deviation](int64_t row) {
      const auto v = x.load<kWidth>(row, column), d = dy.load<kWidth>(row, column);
      return each<kWidth>([&](int i) {
        const float deviation = v.at[i] - here.mean.at[i];
        const float e = activation_gradient(here.z(i, deviation), slope, d.at[i]) * here.scale.at[i];
        return (e - per_row.at[i]) - deviation * per_deviation.at[i];
      });
    };
  }
};

// Row 0: of the mean, row 1: of the variance.
struct MomentsGradient {
  const float *inv_std, *gamma, *dgamma, *dbeta;
  float half;  // -(n - 1) / 2n

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    const auto inverse = load<kWidth>(inv_std + column), g = load<kWidth>(gamma + column);
    const auto dg = load<kWidth>(dgamma + column), db = load<kWidth>(dbeta + column);
    return [this, inverse, g, dg, db](int64_t row) {
      return each<kWidth>([&](int i) {
        const float scale = g.at[i] * inverse.at[i];
        return row == 0 ? -scale * db.at[i] : half * (scale * inverse.at[i]) * dg.at[i];
      });
    };
  }
};

struct FromMoments {
  In x;
  const float *centre, *dmean, *dvariance;
  float per_row, per_deviation;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    const auto mean = load<kWidth>(centre + column), a = load<kWidth>(dmean + column);
    const auto b = load<kWidth>(dvariance + column);
    return [this, column, mean, a, b](int64_t row) {
      const auto v = x.load<kWidth>(row, column);
      return each<kWidth>(
          [&](int i) { return fmaf(v.at[i] - mean.at[i], b.at[i] * per_deviation, a.at[i] * per_row); });
    };
  }
};

// Gives the means, and writes the rest as it goes.
struct JoinParts {
  const float* moments;  // [2 parts, C]
  int64_t parts, pitch;
  float rows, eps, momentum;
  float *running_mean, *running_var, *inv_std;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t) { return each<kWidth>([&](int i) { return channel(column + i); }); };
  }
  __device__ float channel(int64_t c) const {
    const float origin = moments[c], count = static_cast<float>(parts);
    float sum = 0.0F, m2 = 0.0F;
    for (int64_t part = 0; part < parts; ++part) {
      sum += moments[2 * part * pitch + c] - origin;
    }
    const float offset = sum / count;
    for (int64_t part = 0; part < parts; ++part) {
      const float d = (moments[2 * part * pitch + c] - origin) - offset;
      m2 += fmaf(d * d, rows, moments[(2 * part + 1) * pitch + c] * (rows - 1.0F));
    }
    const float n = rows * count, mean = origin + offset, variance = m2 / n;
    running_mean[c] = (1.0F - momentum) * running_mean[c] + momentum * mean;
    running_var[c] = (1.0F - momentum) * running_var[c] + momentum * (n > 1.0F ? m2 / (n - 1.0F) : variance);
    inv_std[c] = inverse_root(variance, eps);
    return mean;
  }
};

struct InvStd {
  const float* variance;
  float eps;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t) {
      const auto v = load<kWidth>(variance + column);
      return each<kWidth>([&](int i) { return 1.0F / sqrtf(v.at[i] + eps); });
    };
  }
};

struct FoldWeights {
  In w;  // [K, taps]
  const float *inv_std, *gamma;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t filter) {
      const auto v = w.load<kWidth>(filter, column);
      const float factor = gamma[filter] * inv_std[filter];
      return each<kWidth>([&](int i) { return v.at[i] * factor; });
    };
  }
};

struct FoldBias {
  const float* bias;  // may be null
  const float *mean, *inv_std, *gamma, *beta;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t) {
      return each<kWidth>([&](int i) {
        const int64_t k = column + i;
        return ((bias ? bias[k] : 0.0F) - mean[k]) * (gamma[k] * inv_std[k]) + beta[k];
      });
    };
  }
};

}  // namespace

void CudaBackend::batch_norm_statistics(const Tensor& x, float eps, float momentum, const Tensor& running_mean,
                                        const Tensor& running_var, const Tensor& mean, const Tensor& inv_std) {
  const int64_t channels = x.channels();
  const bool fours = channels % 4 == 0 && in_fours({&x});
  const RowPieces pieces = cut_rows(x.rows(), fours ? channels / 4 : channels);
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(pieces.count() * 2 * channels) * sizeof(float), "batch_norm_statistics");
  const Launch where = at("batch_norm_statistics");
  for_columns(where, fours, TakeMoments{x, lease.floats(), channels}, pieces, channels);
  join_pieces(where, fours,
              JoinMoments{x.data(), lease.floats(), channels, pieces, eps, momentum, running_mean.data(),
                          running_var.data(), mean.data(), inv_std.data()},
              pieces, channels);
}

void CudaBackend::batch_norm_join_statistics(const Tensor& moments, int64_t rows, float eps, float momentum,
                                             const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                                             const Tensor& inv_std) {
  const int64_t channels = mean.elements();
  map(at("batch_norm_join_statistics"), false,
      JoinParts{moments.data(), moments.rows() / 2, moments.pitch(), static_cast<float>(rows), eps, momentum,
                running_mean.data(), running_var.data(), inv_std.data()},
      1, channels, mean);
}

void CudaBackend::batch_norm_inv_std(const Tensor& variance, float eps, const Tensor& inv_std) {
  map(at("batch_norm_inv_std"), begin_in_fours({&variance, &inv_std}), InvStd{variance.data(), eps}, 1,
      variance.elements(), inv_std);
}

void CudaBackend::batch_norm_forward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                     const Tensor& beta, Activation f, const Tensor& y) {
  map(at("batch_norm_forward"), in_fours({&x, &mean, &inv_std, &gamma, &beta, &y}),
      Forward{x, Channels(mean, inv_std, gamma, beta), f.slope}, x.rows(), x.channels(), y);
}

void CudaBackend::batch_norm_backward(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                      const Tensor& beta, Activation f, Statistics statistics, const Tensor& dy,
                                      const GradTarget& dx, const GradTarget& dgamma, const GradTarget& dbeta) {
  const int64_t channels = x.channels();
  const bool of_batch = statistics == Statistics::of_batch;
  const bool inputs_in_fours = in_fours({&x, &mean, &inv_std, &gamma, &beta, &dy});
  const bool fours = channels % 4 == 0 && inputs_in_fours && in_fours({&dgamma.grad, &dbeta.grad});
  const RowPieces pieces = cut_rows(x.rows(), fours ? channels / 4 : channels);
  const int64_t padded = pieces_of(channels, 4) * 4;
  const Workspace::Lease lease = workspace().lease(
      static_cast<size_t>((pieces.count() * 2) * channels + 2 * padded) * sizeof(float), "batch_norm_backward");
  float* per_row = lease.floats();
  float* per_deviation = per_row + padded;
  float* partials = per_deviation + padded;
  const Channels per_channel(mean, inv_std, gamma, beta);
  const Launch where = at("batch_norm_backward");
  if (dgamma || dbeta || (dx && of_batch)) {
    for_columns(where, fours, TakeGradients{x, dy, per_channel, f.slope, partials, channels}, pieces, channels);
    join_pieces(where, fours,
                JoinGradients{partials, channels, x.rows(), inv_std.data(), gamma.data(), per_row, per_deviation, true,
                              dgamma, dbeta},
                pieces, channels);
  }
  if (dx) {
    map(where, inputs_in_fours && in_fours({&dx.grad}),
        Backward{x, dy, per_channel, f.slope, of_batch ? per_row : nullptr, per_deviation}, x.rows(), channels, dx);
  }
}

void CudaBackend::batch_norm_backward_sums(const Tensor& x, const Tensor& mean, const Tensor& inv_std,
                                           const Tensor& gamma, const Tensor& beta, Activation f, const Tensor& dy,
                                           const Tensor& sums, const GradTarget& dgamma, const GradTarget& dbeta) {
  const int64_t channels = x.channels();
  const bool fours = channels % 4 == 0 && in_fours({&x, &mean, &inv_std, &gamma, &beta, &dy}) &&
                     begin_in_fours({&sums, &dgamma.grad, &dbeta.grad});
  const RowPieces pieces = cut_rows(x.rows(), fours ? channels / 4 : channels);
  const Workspace::Lease lease =
      workspace().lease(static_cast<size_t>(pieces.count() * 2 * channels) * sizeof(float), "batch_norm_backward_sums");
  const Launch where = at("batch_norm_backward_sums");
  const Channels per_channel(mean, inv_std, gamma, beta);
  for_columns(where, fours, TakeGradients{x, dy, per_channel, f.slope, lease.floats(), channels}, pieces, channels);
  join_pieces(where, fours,
              JoinGradients{lease.floats(), channels, x.rows(), inv_std.data(), gamma.data(), sums.data(),
                            sums.data() + channels, false, dgamma, dbeta},
              pieces, channels);
}

void CudaBackend::batch_norm_backward_data(const Tensor& x, const Tensor& mean, const Tensor& inv_std,
                                           const Tensor& gamma, const Tensor& beta, Activation f, const Tensor& dy,
                                           const Tensor& sums, int64_t rows, const GradTarget& dx) {
  if (dx) {
    map(at("batch_norm_backward_data"), in_fours({&x, &mean, &inv_std, &gamma, &beta, &dy, &sums, &dx.grad}),
        BackwardOfPart{x, dy, Channels(mean, inv_std, gamma, beta), f.slope, sums.data(), inv_std.data(), x.channels(),
                       1.0F / static_cast<float>(rows)},
        x.rows(), x.channels(), dx);
  }
}

void CudaBackend::batch_norm_backward_moments(const Tensor& inv_std, const Tensor& gamma, const Tensor& dgamma,
                                              const Tensor& dbeta, int64_t rows, const GradTarget& dmoments) {
  const auto n = static_cast<float>(rows);
  map(at("batch_norm_backward_moments"), in_fours({&inv_std, &gamma, &dgamma, &dbeta, &dmoments.grad}),
      MomentsGradient{inv_std.data(), gamma.data(), dgamma.data(), dbeta.data(), -0.5F * (n - 1.0F) / n}, 2,
      gamma.elements(), dmoments);
}

void CudaBackend::moments_backward(const Tensor& x, const Tensor& moments, const Tensor& dmoments, int64_t rows,
                                   const GradTarget& dx) {
  map(at("moments_backward"), in_fours({&x, &moments, &dmoments, &dx.grad}),
      FromMoments{x, moments.data(), dmoments.data(), dmoments.data() + dmoments.pitch(),
                  1.0F / static_cast<float>(rows), 2.0F / static_cast<float>(rows - 1)},
      x.rows(), x.channels(), dx);
}

void CudaBackend::batch_norm_fold(const Tensor& w, const Tensor& bias, const Tensor& mean, const Tensor& inv_std,
                                  const Tensor& gamma, const Tensor& beta, const Tensor& folded_w,
                                  const Tensor& folded_bias) {
  const int64_t filters = mean.elements(), taps = w.elements() / filters;
  const Launch where = at("batch_norm_fold");
  const bool fours = taps % 4 == 0 && begin_in_fours({&w, &folded_w});
  map(where, fours, FoldWeights{In(w.data(), taps), inv_std.data(), gamma.data()}, filters, taps,
      Out(folded_w.data(), taps));
  map(where, false, FoldBias{bias ? bias.data() : nullptr, mean.data(), inv_std.data(), gamma.data(), beta.data()}, 1,
      filters, folded_bias);
}

}  // namespace gle::cuda
