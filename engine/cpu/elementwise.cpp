// Elementwise kernels: one pass over memory each, by stretches that run across rows where no tensor has a pitch.
// Dropout draws the number of element first + row * C + c from Philox (math/philox.h), four to a block; nothing is
// saved, its backward draws them again.

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/lanes.h"
#include "engine/cpu/partition.h"
#include "engine/math/philox.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr int64_t kBatch = 64;  // factors drawn at once: whole cache lines

GLE_INLINE const float* at(const Tensor& x, int64_t row, int64_t column) { return x.data() + row * x.pitch() + column; }

GLE_INLINE float* out(const Tensor& y, int64_t row, int64_t column) { return y.data() + row * y.pitch() + column; }

// Returns where the factors of elements first ... first + kBatch - 1 begin in factors[kBatch + 4], as `first` may lie
// within a block: `scale` for an element that stays, 0 for the others.
GLE_INLINE const float* draw_factors(RandomKey key, int64_t first, float probability, float scale, float* factors) {
  const auto block = static_cast<uint64_t>(first) / 4;
  for (uint64_t i = 0; i < kBatch / 4 + 1; ++i) {
    const PhiloxBlock words = random_words(key, block + i);
    for (uint64_t j = 0; j < 4; ++j) {
      factors[4 * i + j] = uniform_of_word(words.word[j]) < probability ? 0.0F : scale;
    }
  }
  return factors + first % 4;
}

}  // namespace

void CpuBackend::fill(float value, const Tensor& y) {
  const Put mode = put_mode(y);
  for_stretches(runtime_.pool, y.rows(), y.channels(), y.dense(), [&](int64_t row, int64_t column, int64_t n) {
    float* py = out(y, row, column);
    for_vectors(n, [&](int64_t i, auto lanes) { lanes.put(py + i, set1(value), mode); });
  });
}

void CpuBackend::add(const Tensor& a, const Tensor& b, const Tensor& y) {
  const Put mode = put_mode(y);
  const bool dense = a.dense() && b.dense() && y.dense();
  for_stretches(runtime_.pool, y.rows(), y.channels(), dense, [&](int64_t row, int64_t column, int64_t n) {
    const float* pa = at(a, row, column);
    const float* pb = at(b, row, column);
    float* py = out(y, row, column);
    for_vectors(n, [&](int64_t i, auto lanes) { lanes.put(py + i, lanes.load(pa + i) + lanes.load(pb + i), mode); });
  });
}

void CpuBackend::scale(float factor, const Tensor& x, const GradTarget& y) {
  if (!y) {
    return;
  }
  const Put mode = put_mode(y);
  const bool dense = x.dense() && y.grad.dense();
  for_stretches(runtime_.pool, x.rows(), x.channels(), dense, [&](int64_t row, int64_t column, int64_t n) {
    const float* px = at(x, row, column);
    float* py = out(y.grad, row, column);
    for_vectors(n, [&](int64_t i, auto lanes) { lanes.put(py + i, lanes.load(px + i) * factor, mode); });
  });
}

void CpuBackend::scale_by(const Tensor& factor, const Tensor& x, const GradTarget& y) { scale(factor.data()[0], x, y); }

void CpuBackend::activation_forward(const Tensor& x, Activation f, const Tensor& y) {
  const Put mode = put_mode(y);
  const bool dense = x.dense() && y.dense();
  for_stretches(runtime_.pool, x.rows(), x.channels(), dense, [&](int64_t row, int64_t column, int64_t n) {
    const float* px = at(x, row, column);
    float* py = out(y, row, column);
    const vf slope = set1(f.slope);
    for_vectors(n, [&](int64_t i, auto lanes) { lanes.put(py + i, activate(lanes.load(px + i), slope), mode); });
  });
}

void CpuBackend::activation_backward(const Tensor& y, Activation f, const Tensor& dy, const GradTarget& dx) {
  if (!dx) {
    return;
  }
  const Put mode = put_mode(dx);
  const bool dense = y.dense() && dy.dense() && dx.grad.dense();
  for_stretches(runtime_.pool, y.rows(), y.channels(), dense, [&](int64_t row, int64_t column, int64_t n) {
    const float* py = at(y, row, column);
    const float* pdy = at(dy, row, column);
    float* pdx = out(dx.grad, row, column);
    const vf slope = set1(f.slope);
    for_vectors(n, [&](int64_t i, auto lanes) {
      lanes.put(pdx + i, activation_gradient(lanes.load(py + i), slope, lanes.load(pdy + i)), mode);
    });
  });
}

void CpuBackend::dropout(const Tensor& x, float probability, RandomKey key, int64_t first, const GradTarget& y) {
  if (!y) {
    return;
  }
  const Put mode = put_mode(y);
  const bool dense = x.dense() && y.grad.dense();
  const float factor = probability < 1.0F ? 1.0F / (1.0F - probability) : 0.0F;
  for_stretches(runtime_.pool, x.rows(), x.channels(), dense, [&](int64_t row, int64_t column, int64_t n) {
    for (int64_t begin = 0; begin < n; begin += kBatch) {
      const float* px = at(x, row, column + begin);
      float* py = out(y.grad, row, column + begin);
      float factors[kBatch + 4];
      const float* keep = draw_factors(key, first + row * x.channels() + column + begin, probability, factor, factors);
      for_vectors(n - begin < kBatch ? n - begin : kBatch, [&](int64_t i, auto lanes) {
        // Selected, not multiplied: what is dropped may be infinite.
        const vf kept = lanes.load(keep + i);
        lanes.put(py + i, select(gt(kept, zero()), lanes.load(px + i) * kept, zero()), mode);
      });
    }
  });
}

bool CpuBackend::all_finite(const Tensor& x) {
  bool finite = true;
  for_stretches(runtime_.pool, x.rows(), x.channels(), x.dense(), [&](int64_t row, int64_t column, int64_t n) {
    const float* px = at(x, row, column);
    vf sum = zero();
    // 0 * v is 0 for every finite v and NaN for the others, and NaN stays in the sum.
    for_vectors(n, [&](int64_t i, auto lanes) { sum = fma(lanes.load(px + i), zero(), sum); });
    if (!(horizontal_sum(sum) == 0.0F)) {
      __atomic_store_n(&finite, false, __ATOMIC_RELAXED);
    }
  });
  return finite;
}

}  // namespace gle::cpu::GLE_ISA
