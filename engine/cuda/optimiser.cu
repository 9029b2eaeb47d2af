// One step of an optimiser over the flat arrays of a network, in one launch: every array is read once and written once
// (map.h). The formulas are in engine/options.h.
//
// Bytes that must move, for e parameters: adam_step 28e, momentum_step 20e, moving_average 12e, one launch each;
// sum_of_squares 4e, two launches (total.h).

#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/map.h"
#include "engine/cuda/total.h"

namespace gle::cuda {

namespace {

struct Adam {
  AdamStep step;
  const float* gradient;
  float *moment1, *moment2, *value;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t) {
      const auto g = load<kWidth>(gradient + column), m = load<kWidth>(moment1 + column);
      const auto v = load<kWidth>(moment2 + column), old = load<kWidth>(value + column);
      Floats<kWidth> m1, m2;
      for (int i = 0; i < kWidth; ++i) {
        const float slope = fmaf(old.at[i], step.l2, g.at[i] * step.gradient_scale);
        m1.at[i] = fmaf(step.beta1, m.at[i], (1 - step.beta1) * slope);
        m2.at[i] = fmaf(step.beta2, v.at[i], (1 - step.beta2) * slope * slope);
      }
      store<kWidth>(moment1 + column, m1);
      store<kWidth>(moment2 + column, m2);
      return each<kWidth>([&](int i) {
        const float move = step.adaptive ? m1.at[i] / fmaf(sqrtf(m2.at[i]), step.root_scale, step.eps) : m1.at[i];
        return old.at[i] * step.decay - step.step_size * move;
      });
    };
  }
};

struct Momentum {
  MomentumStep step;
  const float* gradient;
  float *moment, *value;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t) {
      const auto g = load<kWidth>(gradient + column), m = load<kWidth>(moment + column);
      const auto old = load<kWidth>(value + column);
      const auto slope = each<kWidth>([&](int i) { return fmaf(old.at[i], step.l2, g.at[i] * step.gradient_scale); });
      const auto m1 = each<kWidth>([&](int i) { return fmaf(step.momentum, m.at[i], slope.at[i]); });
      store<kWidth>(moment + column, m1);
      return each<kWidth>([&](int i) {
        const float move = step.nesterov ? fmaf(step.momentum, m1.at[i], slope.at[i]) : m1.at[i];
        return old.at[i] * step.decay - move * step.step_size;
      });
    };
  }
};

struct MovingAverage {
  float keep;
  const float *x, *average;

  template <int kWidth>
  __device__ auto at(int64_t column) const {
    return [this, column](int64_t) {
      const auto v = load<kWidth>(x + column), old = load<kWidth>(average + column);
      return each<kWidth>([&](int i) { return fmaf(1 - keep, v.at[i] - old.at[i], old.at[i]); });
    };
  }
};

struct Squares {
  const float* x;

  template <int kWidth>
  __device__ float operator()(int64_t, int64_t column) const {
    const auto v = load<kWidth>(x + column);
    float sum = 0.0F;
    for (int i = 0; i < kWidth; ++i) {
      sum = fmaf(v.at[i], v.at[i], sum);
    }
    return sum;
  }
};

}  // namespace

void CudaBackend::adam_step(const AdamStep& step, const Tensor& gradient, const Tensor& moment1, const Tensor& moment2,
                            const Tensor& value) {
  map(at("adam_step"), begin_in_fours({&gradient, &moment1, &moment2, &value}),
      Adam{step, gradient.data(), moment1.data(), moment2.data(), value.data()}, 1, value.elements(), value);
}

void CudaBackend::momentum_step(const MomentumStep& step, const Tensor& gradient, const Tensor& moment,
                                const Tensor& value) {
  map(at("momentum_step"), begin_in_fours({&gradient, &moment, &value}),
      Momentum{step, gradient.data(), moment.data(), value.data()}, 1, value.elements(), value);
}

void CudaBackend::moving_average(float keep, const Tensor& x, const Tensor& average) {
  map(at("moving_average"), begin_in_fours({&x, &average}), MovingAverage{keep, x.data(), average.data()}, 1,
      x.elements(), average);
}

double CudaBackend::sum_of_squares(const Tensor& x) {
  const Workspace::Lease lease = workspace().lease(kTotalBytes, "sum_of_squares");
  return fetch(total(at("sum_of_squares"), x, Squares{x.data()}, reinterpret_cast<double*>(lease.data())));
}

}  // namespace gle::cuda
