#include <array>

#include "tests/reference/reference.h"

namespace gle::reference {

namespace {

// Philox4x32-10 as its authors print it: counter (index / 4, stream), key (seed).
uint32_t random_word(RandomKey key, uint64_t index) {
  const uint64_t block = index / 4;
  std::array<uint64_t, 4> c = {block & 0xffffffffU, block >> 32U, key.stream & 0xffffffffU, key.stream >> 32U};
  uint64_t k0 = key.seed & 0xffffffffU;
  uint64_t k1 = key.seed >> 32U;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = 0xD2511F53U * c[0];
    const uint64_t p1 = 0xCD9E8D57U * c[2];
    c = {(p1 >> 32U) ^ c[1] ^ k0, p1 & 0xffffffffU, (p0 >> 32U) ^ c[3] ^ k1, p0 & 0xffffffffU};
    k0 = (k0 + 0x9E3779B9U) & 0xffffffffU;
    k1 = (k1 + 0xBB67AE85U) & 0xffffffffU;
  }
  return static_cast<uint32_t>(c[index % 4]);
}

}  // namespace

Array add(const Array& a, const Array& b) {
  Array y(a.shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    y[i] = a[i] + b[i];
  }
  return y;
}

Array scale(const Array& x, double factor) {
  Array y(x.shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    y[i] = factor * x[i];
  }
  return y;
}

Array activation(const Array& x, Activation f) {
  Array y(x.shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    y[i] = x[i] > 0 ? x[i] : double{f.slope} * x[i];
  }
  return y;
}

Array activation_backward(const Array& x, Activation f, const Array& dy) {
  Array dx(x.shape);
  for (int64_t i = 0; i < dx.size(); ++i) {
    dx[i] = x[i] > 0 ? dy[i] : double{f.slope} * dy[i];
  }
  return dx;
}

Array dropout(const Array& x, double probability, RandomKey key, int64_t first) {
  Array y(x.shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    const double uniform = static_cast<double>(random_word(key, static_cast<uint64_t>(first + i)) >> 8U) / 0x1p24;
    y[i] = uniform < probability ? 0 : x[i] / (1 - probability);
  }
  return y;
}

}  // namespace gle::reference
