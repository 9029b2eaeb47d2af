#include <algorithm>
#include <cmath>

#include "tests/reference/reference.h"

namespace gle::reference {

Array log_sums(const Array& logits) {
  Array sums({logits.rows(), 2});
  for (int64_t row = 0; row < logits.rows(); ++row) {
    double largest = logits(row, 0);
    for (int64_t c = 1; c < logits.channels(); ++c) {
      largest = std::max(largest, logits(row, c));
    }
    double sum = 0;
    for (int64_t c = 0; c < logits.channels(); ++c) {
      sum += std::exp(logits(row, c) - largest);
    }
    sums(row, 0) = largest;
    sums(row, 1) = std::log(sum);
  }
  return sums;
}

Array log_softmax(const Array& x) {
  const Array sums = log_sums(x);
  Array y(x.shape);
  for (int64_t row = 0; row < x.rows(); ++row) {
    for (int64_t c = 0; c < x.channels(); ++c) {
      y(row, c) = x(row, c) - sums(row, 0) - sums(row, 1);
    }
  }
  return y;
}

Array softmax(const Array& x) {
  Array y = log_softmax(x);
  for (double& v : y.values) {
    v = std::exp(v);
  }
  return y;
}

Array softmax_backward(const Array& y, const Array& dy) {
  Array dx(y.shape);
  for (int64_t row = 0; row < y.rows(); ++row) {
    double along = 0;
    for (int64_t c = 0; c < y.channels(); ++c) {
      along += y(row, c) * dy(row, c);
    }
    for (int64_t c = 0; c < y.channels(); ++c) {
      dx(row, c) = y(row, c) * (dy(row, c) - along);
    }
  }
  return dx;
}

Array log_softmax_backward(const Array& y, const Array& dy) {
  Array dx(y.shape);
  for (int64_t row = 0; row < y.rows(); ++row) {
    double sum = 0;
    for (int64_t c = 0; c < y.channels(); ++c) {
      sum += dy(row, c);
    }
    for (int64_t c = 0; c < y.channels(); ++c) {
      dx(row, c) = dy(row, c) - std::exp(y(row, c)) * sum;
    }
  }
  return dx;
}

namespace {

double target(int label, int64_t c, int64_t classes, double smoothing) {
  return (label == c ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
}

}  // namespace

Array cross_entropy(const Array& logits, const std::vector<int>& labels, double smoothing) {
  const Array log_p = log_softmax(logits);
  Array loss(Shape{1});
  for (int64_t row = 0; row < logits.rows(); ++row) {
    for (int64_t c = 0; c < logits.channels(); ++c) {
      const double t = target(labels[static_cast<size_t>(row)], c, logits.channels(), smoothing);
      loss[0] -= t * log_p(row, c) / static_cast<double>(logits.rows());
    }
  }
  return loss;
}

Array cross_entropy_backward(const Array& logits, const std::vector<int>& labels, double smoothing, double dloss) {
  const Array p = softmax(logits);
  Array dlogits(logits.shape);
  for (int64_t row = 0; row < logits.rows(); ++row) {
    for (int64_t c = 0; c < logits.channels(); ++c) {
      const double t = target(labels[static_cast<size_t>(row)], c, logits.channels(), smoothing);
      dlogits(row, c) = dloss * (p(row, c) - t) / static_cast<double>(logits.rows());
    }
  }
  return dlogits;
}

}  // namespace gle::reference
