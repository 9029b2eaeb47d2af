#include "tests/reference/reference.h"

namespace gle::reference {

namespace {

// How many windows fit into the padded input.
int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t pad) {
  int64_t count = 0;
  while (count * stride + kernel <= size + 2 * pad) {
    ++count;
  }
  return count;
}

// Calls visit(n, h, w, p, q, r, s) for every pair of an input pixel and an output pixel that sees it by the tap (r, s).
template <class Visit>
void for_each_tap(const Shape& x, const Shape& w, const Shape& y, const Conv2dOptions& options, Visit visit) {
  for (int64_t n = 0; n < y[0]; ++n) {
    for (int64_t p = 0; p < y[1]; ++p) {
      for (int64_t q = 0; q < y[2]; ++q) {
        for (int64_t r = 0; r < w[1]; ++r) {
          for (int64_t s = 0; s < w[2]; ++s) {
            const int64_t h = p * options.stride_h + r - options.pad_h;
            const int64_t v = q * options.stride_w + s - options.pad_w;
            if (h >= 0 && h < x[1] && v >= 0 && v < x[2]) {
              visit(n, h, v, p, q, r, s);
            }
          }
        }
      }
    }
  }
}

}  // namespace

Array conv2d(const Array& x, const Array& w, const Array& bias, const Conv2dOptions& options, Activation f) {
  const int64_t channels = w.shape[3];
  const int64_t filters = w.shape[0];
  Array y({x.shape[0], windows(x.shape[1], w.shape[1], options.stride_h, options.pad_h),
           windows(x.shape[2], w.shape[2], options.stride_w, options.pad_w), filters});
  if (bias) {
    for (int64_t i = 0; i < y.size(); ++i) {
      y[i] = bias[i % filters];
    }
  }
  for_each_tap(x.shape, w.shape, y.shape, options,
               [&](int64_t n, int64_t h, int64_t v, int64_t p, int64_t q, int64_t r, int64_t s) {
                 for (int64_t k = 0; k < filters; ++k) {
                   for (int64_t c = 0; c < channels; ++c) {
                     y(n, p, q, k) += x(n, h, v, c) * w(k, r, s, c);
                   }
                 }
               });
  return activation(y, f);
}

Array conv2d_backward_data(const Array& w, const Array& dy, const Conv2dOptions& options, const Shape& x) {
  Array dx(x);
  for_each_tap(x, w.shape, dy.shape, options,
               [&](int64_t n, int64_t h, int64_t v, int64_t p, int64_t q, int64_t r, int64_t s) {
                 for (int64_t k = 0; k < w.shape[0]; ++k) {
                   for (int64_t c = 0; c < x[3]; ++c) {
                     dx(n, h, v, c) += dy(n, p, q, k) * w(k, r, s, c);
                   }
                 }
               });
  return dx;
}

Array conv2d_backward_weights(const Array& x, const Array& dy, const Conv2dOptions& options, const Shape& w) {
  Array dw(w);
  for_each_tap(x.shape, w, dy.shape, options,
               [&](int64_t n, int64_t h, int64_t v, int64_t p, int64_t q, int64_t r, int64_t s) {
                 for (int64_t k = 0; k < w[0]; ++k) {
                   for (int64_t c = 0; c < w[3]; ++c) {
                     dw(k, r, s, c) += dy(n, p, q, k) * x(n, h, v, c);
                   }
                 }
               });
  return dw;
}

}  // namespace gle::reference
