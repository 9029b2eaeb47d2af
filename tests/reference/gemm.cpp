#include "tests/reference/reference.h"

namespace gle::reference {

Array gemm(const Array& a, Transpose op_a, const Array& b, Transpose op_b, const Array& bias) {
  const bool ta = op_a == Transpose::yes;
  const bool tb = op_b == Transpose::yes;
  const int64_t m = a.shape[ta ? 1 : 0];
  const int64_t k = a.shape[ta ? 0 : 1];
  const int64_t n = b.shape[tb ? 0 : 1];
  Array c({m, n});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias ? bias[j] : 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += (ta ? a(l, i) : a(i, l)) * (tb ? b(j, l) : b(l, j));
      }
      c(i, j) = sum;
    }
  }
  return c;
}

}  // namespace gle::reference
