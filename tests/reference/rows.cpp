#include <algorithm>
#include <cmath>

#include "tests/reference/reference.h"

namespace gle::reference {

namespace {
constexpr double kSmallestNorm = 1e-12;
}

Array column_sums(const Array& x) {
  Array sums({x.channels()});
  for (int64_t row = 0; row < x.rows(); ++row) {
    for (int64_t c = 0; c < x.channels(); ++c) {
      sums[c] += x(row, c);
    }
  }
  return sums;
}

Array centre_rows(const Array& x) {
  Array y(x.shape);
  for (int64_t row = 0; row < x.rows(); ++row) {
    double sum = 0;
    for (int64_t c = 0; c < x.channels(); ++c) {
      sum += x(row, c);
    }
    for (int64_t c = 0; c < x.channels(); ++c) {
      y(row, c) = x(row, c) - sum / static_cast<double>(x.channels());
    }
  }
  return y;
}

Array row_norms(const Array& x) {
  Array norms({x.rows()});
  for (int64_t row = 0; row < x.rows(); ++row) {
    double sum = 0;
    for (int64_t c = 0; c < x.channels(); ++c) {
      sum += x(row, c) * x(row, c);
    }
    norms[row] = std::sqrt(sum);
  }
  return norms;
}

Array normalise_rows(const Array& x, double beta) {
  const Array norms = row_norms(x);
  Array y(x.shape);
  for (int64_t row = 0; row < x.rows(); ++row) {
    for (int64_t c = 0; c < x.channels(); ++c) {
      y(row, c) = x(row, c) / std::max(norms[row], kSmallestNorm) + beta * x(row, c);
    }
  }
  return y;
}

// Below the smallest norm the divisor is a constant, so that nothing flows through the norm.
Array normalise_rows_backward(const Array& x, double beta, const Array& dy) {
  const Array norms = row_norms(x);
  Array dx(x.shape);
  for (int64_t row = 0; row < x.rows(); ++row) {
    const bool tiny = norms[row] <= kSmallestNorm;
    const double norm = tiny ? kSmallestNorm : norms[row];
    double along = 0;
    for (int64_t c = 0; c < x.channels(); ++c) {
      along += x(row, c) * dy(row, c);
    }
    for (int64_t c = 0; c < x.channels(); ++c) {
      const double through_norm = tiny ? 0 : x(row, c) * along / (norm * norm * norm);
      dx(row, c) = dy(row, c) / norm - through_norm + beta * dy(row, c);
    }
  }
  return dx;
}

}  // namespace gle::reference
