#include <cmath>

#include "tests/reference/reference.h"

namespace gle::reference {

BatchStatistics batch_statistics(const Array& x) {
  const auto rows = static_cast<double>(x.rows());
  const Shape channels{x.channels()};
  BatchStatistics result{scale(column_sums(x), 1 / rows), Array(channels), Array(channels)};
  for (int64_t row = 0; row < x.rows(); ++row) {
    for (int64_t c = 0; c < x.channels(); ++c) {
      const double centred = x(row, c) - result.mean[c];
      result.variance[c] += centred * centred / rows;
    }
  }
  result.unbiased_variance = scale(result.variance, rows / (rows - 1));
  return result;
}

Array inv_std(const Array& variance, double eps) {
  Array result(variance.shape);
  for (int64_t c = 0; c < result.size(); ++c) {
    result[c] = 1 / std::sqrt(variance[c] + eps);
  }
  return result;
}

namespace {

Array normalised(const Array& x, const Array& mean, const Array& inv_std) {
  Array result(x.shape);
  for (int64_t row = 0; row < x.rows(); ++row) {
    for (int64_t c = 0; c < x.channels(); ++c) {
      result(row, c) = (x(row, c) - mean[c]) * inv_std[c];
    }
  }
  return result;
}

Array before_activation(const Array& xhat, const Array& gamma, const Array& beta) {
  Array result(xhat.shape);
  for (int64_t row = 0; row < xhat.rows(); ++row) {
    for (int64_t c = 0; c < xhat.channels(); ++c) {
      result(row, c) = xhat(row, c) * gamma[c] + beta[c];
    }
  }
  return result;
}

}  // namespace

Array batch_norm(const Array& x, const Array& mean, const Array& inv_std, const Array& gamma, const Array& beta,
                 Activation f) {
  return activation(before_activation(normalised(x, mean, inv_std), gamma, beta), f);
}

BatchNormGradients batch_norm_backward(const Array& x, const Array& mean, const Array& inv_std, const Array& gamma,
                                       const Array& beta, Activation f, Statistics statistics, const Array& dy) {
  const Array xhat = normalised(x, mean, inv_std);
  const Array dz = activation_backward(before_activation(xhat, gamma, beta), f, dy);
  Array products(x.shape);
  for (int64_t i = 0; i < products.size(); ++i) {
    products[i] = dz[i] * xhat[i];
  }
  BatchNormGradients result{Array(x.shape), column_sums(products), column_sums(dz)};
  const auto rows = static_cast<double>(x.rows());
  for (int64_t row = 0; row < x.rows(); ++row) {
    for (int64_t c = 0; c < x.channels(); ++c) {
      const double through_statistics =
          statistics == Statistics::of_batch ? (result.dbeta[c] + xhat(row, c) * result.dgamma[c]) / rows : 0;
      result.dx(row, c) = gamma[c] * inv_std[c] * (dz(row, c) - through_statistics);
    }
  }
  return result;
}

Array moments(const Array& x) {
  const BatchStatistics s = batch_statistics(x);
  Array result(Shape{2, x.channels()});
  for (int64_t c = 0; c < x.channels(); ++c) {
    result(0, c) = s.mean[c];
    result(1, c) = s.unbiased_variance[c];
  }
  return result;
}

Array moments_backward(const Array& x, const Array& dmoments) {
  const auto rows = static_cast<double>(x.rows());
  const Array mean = batch_statistics(x).mean;
  Array result(x.shape);
  for (int64_t row = 0; row < x.rows(); ++row) {
    for (int64_t c = 0; c < x.channels(); ++c) {
      result(row, c) = dmoments(0, c) / rows + dmoments(1, c) * 2 * (x(row, c) - mean[c]) / (rows - 1);
    }
  }
  return result;
}

Array gradient_of_moments(const Array& inv_std, const Array& gamma, const BatchNormGradients& g, int64_t rows) {
  const auto n = static_cast<double>(rows);
  Array result(Shape{2, gamma.size()});
  for (int64_t c = 0; c < gamma.size(); ++c) {
    const double dinv_std = gamma[c] * g.dgamma[c] / inv_std[c];
    result(0, c) = -gamma[c] * inv_std[c] * g.dbeta[c];
    result(1, c) = dinv_std * -0.5 * std::pow(inv_std[c], 3) * (n - 1) / n;
  }
  return result;
}

Folded batch_norm_fold(const Array& w, const Array& bias, const Array& mean, const Array& inv_std, const Array& gamma,
                       const Array& beta) {
  Folded result{w, Array(Shape{w.shape[0]})};
  const int64_t taps = w.size() / w.shape[0];
  for (int64_t k = 0; k < w.shape[0]; ++k) {
    for (int64_t i = 0; i < taps; ++i) {
      result.w[k * taps + i] *= gamma[k] * inv_std[k];
    }
    result.bias[k] = ((bias ? bias[k] : 0) - mean[k]) * gamma[k] * inv_std[k] + beta[k];
  }
  return result;
}

}  // namespace gle::reference
