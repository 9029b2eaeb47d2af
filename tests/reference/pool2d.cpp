#include "tests/reference/reference.h"

namespace gle::reference {

namespace {

// Another window follows as long as the last one left something of the padded input (ceil) or the next fits (floor);
// one that would start behind the input and its left padding never does.
int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t pad, Rounding rounding) {
  int64_t count = 1;
  while (count * stride < size + pad && (rounding == Rounding::ceil ? (count - 1) * stride + kernel < size + 2 * pad
                                                                    : count * stride + kernel <= size + 2 * pad)) {
    ++count;
  }
  return count;
}

Shape output_shape(const Shape& x, const Pool2dOptions& o) {
  return {x[0], windows(x[1], o.kernel_h, o.stride_h, o.pad_h, o.rounding),
          windows(x[2], o.kernel_w, o.stride_w, o.pad_w, o.rounding), x[3]};
}

// Calls visit(h, w, tap) for every input pixel that output pixel (p, q) sees.
template <class Visit>
void for_each_pixel(const Shape& x, const Pool2dOptions& o, int64_t p, int64_t q, Visit visit) {
  for (int64_t r = 0; r < o.kernel_h; ++r) {
    for (int64_t s = 0; s < o.kernel_w; ++s) {
      const int64_t h = p * o.stride_h + r - o.pad_h;
      const int64_t w = q * o.stride_w + s - o.pad_w;
      if (h >= 0 && h < x[1] && w >= 0 && w < x[2]) {
        visit(h, w, r * o.kernel_w + s);
      }
    }
  }
}

// The taps within the input, or within the input and its padding.
double divisor(const Shape& x, const Pool2dOptions& o, int64_t p, int64_t q) {
  const int64_t ph = o.padding == Padding::counted ? o.pad_h : 0;
  const int64_t pw = o.padding == Padding::counted ? o.pad_w : 0;
  int64_t count = 0;
  for (int64_t r = 0; r < o.kernel_h; ++r) {
    for (int64_t s = 0; s < o.kernel_w; ++s) {
      const int64_t h = p * o.stride_h + r - o.pad_h;
      const int64_t w = q * o.stride_w + s - o.pad_w;
      count += h >= -ph && h < x[1] + ph && w >= -pw && w < x[2] + pw ? 1 : 0;
    }
  }
  return static_cast<double>(count);
}

// Calls visit(n, p, q, c) for every element of y.
template <class Visit>
void for_each_output(const Shape& y, Visit visit) {
  for (int64_t n = 0; n < y[0]; ++n) {
    for (int64_t p = 0; p < y[1]; ++p) {
      for (int64_t q = 0; q < y[2]; ++q) {
        for (int64_t c = 0; c < y[3]; ++c) {
          visit(n, p, q, c);
        }
      }
    }
  }
}

}  // namespace

MaxPooled max_pool(const Array& x, const Pool2dOptions& options) {
  const Shape shape = output_shape(x.shape, options);
  MaxPooled result{Array(shape), Array(shape, -1)};
  for_each_output(shape, [&](int64_t n, int64_t p, int64_t q, int64_t c) {
    double& y = result.y(n, p, q, c);
    double& tap_of_y = result.taps(n, p, q, c);
    for_each_pixel(x.shape, options, p, q, [&](int64_t h, int64_t w, int64_t tap) {
      if (tap_of_y < 0 || x(n, h, w, c) > y) {
        y = x(n, h, w, c);
        tap_of_y = static_cast<double>(tap);
      }
    });
  });
  return result;
}

Array max_pool_backward(const Array& taps, const Pool2dOptions& options, const Array& dy, const Shape& x) {
  Array dx(x);
  for_each_output(dy.shape, [&](int64_t n, int64_t p, int64_t q, int64_t c) {
    for_each_pixel(x, options, p, q, [&](int64_t h, int64_t w, int64_t tap) {
      if (static_cast<double>(tap) == taps(n, p, q, c)) {
        dx(n, h, w, c) += dy(n, p, q, c);
      }
    });
  });
  return dx;
}

Array average_pool(const Array& x, const Pool2dOptions& options) {
  Array y(output_shape(x.shape, options));
  for_each_output(y.shape, [&](int64_t n, int64_t p, int64_t q, int64_t c) {
    double sum = 0;
    for_each_pixel(x.shape, options, p, q, [&](int64_t h, int64_t w, int64_t) { sum += x(n, h, w, c); });
    y(n, p, q, c) = sum / divisor(x.shape, options, p, q);
  });
  return y;
}

Array average_pool_backward(const Pool2dOptions& options, const Array& dy, const Shape& x) {
  Array dx(x);
  for_each_output(dy.shape, [&](int64_t n, int64_t p, int64_t q, int64_t c) {
    const double share = dy(n, p, q, c) / divisor(x, options, p, q);
    for_each_pixel(x, options, p, q, [&](int64_t h, int64_t w, int64_t) { dx(n, h, w, c) += share; });
  });
  return dx;
}

GlobalPooled global_pool(const Array& x, double max_share) {
  const Shape shape{x.shape[0], x.shape[3]};
  const int64_t pixels = x.shape[1] * x.shape[2];
  GlobalPooled result{Array(shape), Array(shape)};
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      double largest = x(n * pixels, c);
      double sum = 0;
      for (int64_t i = 0; i < pixels; ++i) {
        const double value = x(n * pixels + i, c);
        sum += value;
        if (value > largest) {
          largest = value;
          result.where(n, c) = static_cast<double>(i);
        }
      }
      result.y(n, c) = max_share * largest + (1 - max_share) * sum / static_cast<double>(pixels);
    }
  }
  return result;
}

Array global_pool_backward(const Array& where, double max_share, const Array& dy, const Shape& x) {
  Array dx(x);
  const int64_t pixels = x[1] * x[2];
  for (int64_t n = 0; n < x[0]; ++n) {
    for (int64_t c = 0; c < x[3]; ++c) {
      for (int64_t i = 0; i < pixels; ++i) {
        dx(n * pixels + i, c) = (1 - max_share) * dy(n, c) / static_cast<double>(pixels);
      }
      if (max_share > 0) {
        dx(n * pixels + static_cast<int64_t>(where(n, c)), c) += max_share * dy(n, c);
      }
    }
  }
  return dx;
}

}  // namespace gle::reference
