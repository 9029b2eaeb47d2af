#pragma once

// Winograd's F(m x m, 3x3), m = 2 or 4: for a square of inputs d, (m + 2) x (m + 2), a kernel g[3x3] and a square of
// outputs y[m x m], each channel by itself,
//   y = A^T [sum over c of (G g G^T) * (B^T d B)] A.
// A kernel and an input are polynomials, multiplied by their values at m + 1 points and at infinity. m = 2 takes the
// points 0, 1, -1:
//   B^T = 1  0 -1  0    G = 1    0   0    A^T = 1  1  1  0
//         0  1  1  0        1/2  1/2 1/2        0  1 -1 -1
//         0 -1  1  0        1/2 -1/2 1/2
//         0  1  0 -1        0    0   1
// and m = 4 the points 0, a, -a, b, -b:
//   B^T = a²b²  0     -a²-b²  0      1  0    G = 1/(a²b²)  0    0         A^T = 1  1   1   1   1   0
//         0    -ab²   -b²     a      1  0        u         ua   ua²             0  a  -a   b  -b   0
//         0     ab²   -b²    -a      1  0        u        -ua   ua²             0  a²  a²  b²  b²  0
//         0    -a²b   -a²     b      1  0        v         vb   vb²             0  a³ -a³  b³ -b³  1
//         0     a²b   -a²    -b      1  0        v        -vb   vb²
//         0     a²b²   0     -a²-b²  0  1        0         0    1
//   u = 1/(2a²(a²-b²)), v = 1/(2b²(b²-a²)).
// Each function below is one side of a product.

#include "engine/cpu/simd.h"

namespace gle::cpu::GLE_ISA {

template <int m>
struct Winograd;

template <>
struct Winograd<2> {
  GLE_INLINE static void to_inputs(const vf (&d)[4], vf (&out)[4]) {
    out[0] = d[0] - d[2];
    out[1] = d[1] + d[2];
    out[2] = d[2] - d[1];
    out[3] = d[1] - d[3];
  }
  GLE_INLINE static void to_kernels(const vf (&g)[3], vf (&out)[4]) {
    const vf half = set1(0.5F), ends = g[0] + g[2];
    out[0] = g[0];
    out[1] = (ends + g[1]) * half;
    out[2] = (ends - g[1]) * half;
    out[3] = g[2];
  }
  GLE_INLINE static void to_outputs(const vf (&p)[4], vf (&out)[2]) {
    out[0] = (p[0] + p[1]) + p[2];
    out[1] = (p[1] - p[2]) - p[3];
  }
};

template <>
struct Winograd<4> {
  static constexpr float a = 0.75F, b = 1.5F;

  GLE_INLINE static void to_inputs(const vf (&d)[6], vf (&out)[6]) {
    const vf aa = set1(-a * a), bb = set1(-b * b), sum = set1(-a * a - b * b), product = set1(a * a * b * b);
    out[0] = fma(product, d[0], fma(sum, d[2], d[4]));
    at_both(fma(bb, d[2], d[4]), fma(bb, d[1], d[3]), a, out[1], out[2]);
    at_both(fma(aa, d[2], d[4]), fma(aa, d[1], d[3]), b, out[3], out[4]);
    out[5] = fma(product, d[1], fma(sum, d[3], d[5]));
  }
  GLE_INLINE static void to_kernels(const vf (&g)[3], vf (&out)[6]) {
    constexpr float u = 1 / (2 * a * a * (a * a - b * b)), v = 1 / (2 * b * b * (b * b - a * a));
    out[0] = g[0] * set1(1 / (a * a * b * b));
    at_both(fma(set1(a * a), g[2], g[0]) * set1(u), g[1] * set1(u), a, out[1], out[2]);
    at_both(fma(set1(b * b), g[2], g[0]) * set1(v), g[1] * set1(v), b, out[3], out[4]);
    out[5] = g[2];
  }
  GLE_INLINE static void to_outputs(const vf (&p)[6], vf (&out)[4]) {
    const vf even_a = p[1] + p[2], odd_a = (p[1] - p[2]) * set1(a), even_b = p[3] + p[4],
             odd_b = (p[3] - p[4]) * set1(b), aa = set1(a * a), bb = set1(b * b);
    out[0] = (p[0] + even_a) + even_b;
    out[1] = odd_a + odd_b;
    out[2] = fma(aa, even_a, bb * even_b);
    out[3] = fma(aa, odd_a, fma(bb, odd_b, p[5]));
  }

 private:
  // even + point * odd, and the same at -point.
  GLE_INLINE static void at_both(vf even, vf odd, float point, vf& plus, vf& minus) {
    plus = fma(set1(point), odd, even);
    minus = fma(set1(-point), odd, even);
  }
};

}  // namespace gle::cpu::GLE_ISA
