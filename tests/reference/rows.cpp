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

// A row of zeros points nowhere; what the formula's limit would give it, dy / 1e-12, would drown every other gradient,
// so that by definition only beta * dy is left.
Array normalise_rows_backward(const Array& x, double beta, const Array& dy) {
  const Array norms = row_norms(x);
  Array dx(x.shape);
  for (int64_t row = 0; row < x.rows(); ++row) {
    const double inverse = norms[row] <= kSmallestNorm ? 0 : 1 / norms[row];
    double along = 0;
    for (int64_t c = 0; c < x.channels(); ++c) {
      along += x(row, c) * dy(row, c);
    }
    for (int64_t c = 0; c < x.channels(); ++c) {
      dx(row, c) = dy(row, c) * inverse - x(row, c) * along * inverse * inverse * inverse + beta * dy(row, c);
    }
  }
  return dx;
}

Array take_columns(const Array& x, const Array& columns) {
  Array y(Shape{x.rows(), columns.size()});
  for (int64_t row = 0; row < y.rows(); ++row) {
    for (int64_t j = 0; j < y.channels(); ++j) {
      y(row, j) = x(row, static_cast<int64_t>(columns[j]));
    }
  }
  return y;
}

Array put_columns(const Array& dy, const Array& columns, const Shape& shape) {
  Array dx(shape);
  for (int64_t row = 0; row < dy.rows(); ++row) {
    for (int64_t j = 0; j < dy.channels(); ++j) {
      dx(row, static_cast<int64_t>(columns[j])) = dy(row, j);
    }
  }
  return dx;
}

}  // namespace gle::reference
