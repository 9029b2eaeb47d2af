// Softmax over the channels of each row x[rows, C], m = max(x), s = sum exp(x - m); rows in parallel, each read again
// from the nearest cache.
//   softmax        y = exp(x - m) / s           dx = y (dy - sum y dy)
//   log_softmax    y = (x - m) - log s          dx = dy - exp(y) sum dy
//   cross entropy  L = mean of log s + (1 - e) (m - x_label) + e mean(m - x), e the smoothing
//                  dx = dL (exp(x - (m + log s)) - t) / rows.  Saved: m and log s of each row
// Only differences from m are formed, so large logits do no harm. -inf counts as a class of no weight; a row of nothing
// else has no softmax and gives NaN, as does a NaN or +inf.

#include <cmath>

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/lanes.h"
#include "engine/cpu/partition.h"

namespace gle::cpu::GLE_ISA {

namespace {

// An exponential costs a core what loading a few floats does.
constexpr int64_t kExpCost = 3;

GLE_INLINE float row_max(const float* x, int64_t channels) {
  const vf lowest = set1(-__builtin_inff());
  vf highest = lowest;
  for_vectors(channels, [&](int64_t c, auto lanes) { highest = max(lanes.keep(lanes.load(x + c), lowest), highest); });
  return horizontal_max(highest);
}

// sum of exp(x - m); also of x - m if asked.
GLE_INLINE float row_exp_sum(const float* x, int64_t channels, float m, float* differences) {
  vf sum = zero();
  vf difference_sum = zero();
  for_vectors(channels, [&](int64_t c, auto lanes) {
    const vf difference = lanes.load(x + c) - m;
    sum += lanes.keep(exp(difference), zero());
    difference_sum += lanes.keep(difference, zero());
  });
  if (differences) {
    *differences = horizontal_sum(difference_sum);
  }
  return horizontal_sum(sum);
}

}  // namespace

void CpuBackend::softmax_forward(const Tensor& x, const Tensor& y) {
  const int64_t channels = x.channels();
  for_row_ranges(runtime_.pool, cut_rows(x.rows(), kExpCost * channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* px = x.data() + row * x.pitch();
      float* py = y.data() + row * y.pitch();
      const float m = row_max(px, channels);
      vf sum = zero();
      for_vectors(channels, [&](int64_t c, auto lanes) {
        const vf e = exp(lanes.load(px + c) - m);
        lanes.store(py + c, e);
        sum += lanes.keep(e, zero());
      });
      const vf factor = set1(1.0F / horizontal_sum(sum));
      for_vectors(channels, [&](int64_t c, auto lanes) { lanes.store(py + c, lanes.load(py + c) * factor); });
    }
  });
}

void CpuBackend::softmax_backward(const Tensor& y, const Tensor& dy, const GradTarget& dx) {
  if (!dx) {
    return;
  }
  const Put mode = put_mode(dx);
  const int64_t channels = y.channels();
  for_row_ranges(runtime_.pool, cut_rows(y.rows(), 2 * channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* py = y.data() + row * y.pitch();
      const float* pdy = dy.data() + row * dy.pitch();
      float* pdx = dx.grad.data() + row * dx.grad.pitch();
      vf sum = zero();
      for_vectors(channels, [&](int64_t c, auto lanes) { sum = fma(lanes.load(py + c), lanes.load(pdy + c), sum); });
      const vf dot = set1(horizontal_sum(sum));
      for_vectors(channels, [&](int64_t c, auto lanes) {
        lanes.put(pdx + c, lanes.load(py + c) * (lanes.load(pdy + c) - dot), mode);
      });
    }
  });
}

void CpuBackend::log_softmax_forward(const Tensor& x, const Tensor& y) {
  const Put mode = put_mode(y);
  const int64_t channels = x.channels();
  for_row_ranges(runtime_.pool, cut_rows(x.rows(), kExpCost * channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* px = x.data() + row * x.pitch();
      float* py = y.data() + row * y.pitch();
      const float m = row_max(px, channels);
      const float log_sum = logf(row_exp_sum(px, channels, m, nullptr));
      for_vectors(channels,
                  [&](int64_t c, auto lanes) { lanes.put(py + c, (lanes.load(px + c) - m) - log_sum, mode); });
    }
  });
}

void CpuBackend::log_softmax_backward(const Tensor& y, const Tensor& dy, const GradTarget& dx) {
  if (!dx) {
    return;
  }
  const Put mode = put_mode(dx);
  const int64_t channels = y.channels();
  for_row_ranges(runtime_.pool, cut_rows(y.rows(), kExpCost * channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* py = y.data() + row * y.pitch();
      const float* pdy = dy.data() + row * dy.pitch();
      float* pdx = dx.grad.data() + row * dx.grad.pitch();
      vf sum = zero();
      for_vectors(channels, [&](int64_t c, auto lanes) { sum += lanes.load(pdy + c); });
      const vf total = set1(horizontal_sum(sum));
      for_vectors(channels, [&](int64_t c, auto lanes) {
        lanes.put(pdx + c, lanes.load(pdy + c) - exp(lanes.load(py + c)) * total, mode);
      });
    }
  });
}

void CpuBackend::cross_entropy_forward(const Tensor& logits, const Tensor& labels, float smoothing,
                                       const Tensor& log_sums, const Tensor& loss) {
  const int64_t rows = logits.rows();
  const int64_t channels = logits.channels();
  const Workspace::Lease lease = workspace().lease(static_cast<size_t>(rows) * sizeof(float), "cross_entropy");
  float* losses = lease.floats();
  for_row_ranges(runtime_.pool, cut_rows(rows, kExpCost * channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* px = logits.data() + row * logits.pitch();
      const float m = row_max(px, channels);
      float differences = 0.0F;
      const float log_sum = logf(row_exp_sum(px, channels, m, &differences));
      log_sums.data()[2 * row] = m;
      log_sums.data()[2 * row + 1] = log_sum;
      losses[row] = log_sum + (1.0F - smoothing) * (m - px[labels.ints()[row]]);
      if (smoothing != 0.0F) {  // 0 times a class of -inf is no number
        losses[row] -= smoothing * differences / static_cast<float>(channels);
      }
    }
  });
  double sum = 0.0;
  for (int64_t row = 0; row < rows; ++row) {
    sum += static_cast<double>(losses[row]);
  }
  loss.data()[0] = static_cast<float>(sum / static_cast<double>(rows));
}

void CpuBackend::cross_entropy_backward(const Tensor& logits, const Tensor& labels, float smoothing,
                                        const Tensor& log_sums, const Tensor& dloss, const GradTarget& dlogits) {
  if (!dlogits) {
    return;
  }
  const Put mode = dlogits.mode == Accumulate::add ? Put::add : Put::overwrite;
  const int64_t rows = logits.rows();
  const int64_t channels = logits.channels();
  const float factor = dloss.data()[0] / static_cast<float>(rows);
  const float others = smoothing / static_cast<float>(channels);
  for_row_ranges(runtime_.pool, cut_rows(rows, kExpCost * channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* px = logits.data() + row * logits.pitch();
      float* pdx = dlogits.grad.data() + row * dlogits.grad.pitch();
      const vf m = set1(log_sums.data()[2 * row]);
      const vf log_sum = set1(log_sums.data()[2 * row + 1]);
      for_vectors(channels, [&](int64_t c, auto lanes) {
        lanes.put(pdx + c, (exp((lanes.load(px + c) - m) - log_sum) - others) * factor, mode);
      });
      pdx[labels.ints()[row]] -= (1.0F - smoothing) * factor;
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
