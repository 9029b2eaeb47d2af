// One step of an optimiser over the flat arrays of a network: every array is read once and written once. The formulas
// are in engine/options.h.

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/lanes.h"
#include "engine/cpu/partition.h"

namespace gle::cpu::GLE_ISA {

void CpuBackend::adam_step(const AdamStep& step, const Tensor& gradient, const Tensor& moment1, const Tensor& moment2,
                           const Tensor& value) {
  for_stretches(runtime_.pool, value.rows(), value.channels(), true, [&](int64_t, int64_t first, int64_t n) {
    const float* g = gradient.data() + first;
    float* m = moment1.data() + first;
    float* v = moment2.data() + first;
    float* p = value.data() + first;
    const vf beta1 = set1(step.beta1);
    const vf beta2 = set1(step.beta2);
    const vf rest1 = set1(1 - step.beta1);
    const vf rest2 = set1(1 - step.beta2);
    const vf size = set1(step.step_size);
    for_vectors(n, [&](int64_t i, auto lanes) {
      const vf old = lanes.load(p + i);
      const vf slope = fma(old, set1(step.l2), lanes.load(g + i) * step.gradient_scale);
      const vf m1 = fma(beta1, lanes.load(m + i), rest1 * slope);
      const vf m2 = fma(beta2, lanes.load(v + i), rest2 * slope * slope);
      lanes.store(m + i, m1);
      lanes.store(v + i, m2);
      const vf move = step.adaptive ? m1 / fma(sqrt(m2), set1(step.root_scale), set1(step.eps)) : m1;
      lanes.store(p + i, old * step.decay - size * move);
    });
  });
}

void CpuBackend::momentum_step(const MomentumStep& step, const Tensor& gradient, const Tensor& moment,
                               const Tensor& value) {
  for_stretches(runtime_.pool, value.rows(), value.channels(), true, [&](int64_t, int64_t first, int64_t n) {
    const float* g = gradient.data() + first;
    float* m = moment.data() + first;
    float* p = value.data() + first;
    const vf momentum = set1(step.momentum);
    for_vectors(n, [&](int64_t i, auto lanes) {
      const vf old = lanes.load(p + i);
      const vf slope = fma(old, set1(step.l2), lanes.load(g + i) * step.gradient_scale);
      const vf m1 = fma(momentum, lanes.load(m + i), slope);
      lanes.store(m + i, m1);
      const vf move = step.nesterov ? fma(momentum, m1, slope) : m1;
      lanes.store(p + i, old * step.decay - move * step.step_size);
    });
  });
}

void CpuBackend::moving_average(float keep, const Tensor& x, const Tensor& average) {
  for_stretches(runtime_.pool, x.rows(), x.channels(), true, [&](int64_t, int64_t first, int64_t n) {
    const float* from = x.data() + first;
    float* to = average.data() + first;
    for_vectors(n, [&](int64_t i, auto lanes) {
      const vf old = lanes.load(to + i);
      lanes.store(to + i, fma(set1(1 - keep), lanes.load(from + i) - old, old));
    });
  });
}

double CpuBackend::sum_of_squares(const Tensor& x) {
  constexpr int64_t kRun = 4096;  // summed in floats; the sums of runs in doubles
  const int64_t total = x.rows() * x.channels();
  const Pieces pieces = cut_rows((total + kRun - 1) / kRun, kRun);
  const auto lease = workspace().lease(static_cast<size_t>(pieces.count()) * sizeof(double), "sum_of_squares");
  auto* sums = reinterpret_cast<double*>(lease.data());
  runtime_.pool.parallel_for(pieces.count(), [&](int64_t piece, int) {
    double sum = 0;
    for (int64_t run = pieces.begin(piece); run < pieces.end(piece); ++run) {
      const float* from = x.data() + run * kRun;
      vf squares = zero();
      for_vectors(run * kRun + kRun < total ? kRun : total - run * kRun, [&](int64_t i, auto lanes) {
        const vf value = lanes.load(from + i);
        squares = fma(value, value, squares);
      });
      sum += static_cast<double>(horizontal_sum(squares));
    }
    sums[piece] = sum;
  });
  double result = 0;
  for (int64_t piece = 0; piece < pieces.count(); ++piece) {
    result += sums[piece];
  }
  return result;
}

}  // namespace gle::cpu::GLE_ISA
