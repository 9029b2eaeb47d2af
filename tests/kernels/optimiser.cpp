#include <cmath>

#include "tests/kernel_test.h"

#include <gtest/gtest.h>

namespace gle::test {

namespace {

// Flat arrays: below, at and beyond the vectors, and more than one piece of work.
const std::vector<Shape> kSizes = {{1, 1}, {1, 7}, {1, 16}, {1, 257}, {1, 70001}};

Array updated(const Array& from, const std::function<double(int64_t)>& value) {
  Array result = from;
  for (int64_t i = 0; i < result.size(); ++i) {
    result[i] = value(i);
  }
  return result;
}

KernelOutput update(const Array& initial, Array expected) {
  return {.expected = std::move(expected), .sliceable = false, .adds = false, .initial = initial, .tolerance = 1e-6};
}

Kernel adam_step() {
  Kernel kernel{"adam_step", {}};
  Draw draw(60);
  for (const Shape& size : kSizes) {
    for (const bool adaptive : {true, false}) {
      const AdamStep s{.gradient_scale = 0.5F,
                       .l2 = adaptive ? 0.01F : 0.0F,
                       .beta1 = 0.8F,
                       .beta2 = 0.95F,
                       .decay = 0.99F,
                       .step_size = 0.1F,
                       .root_scale = 1.5F,
                       .eps = 1e-3F,
                       .adaptive = adaptive};
      const Array g = draw.array(size), m = draw.array(size), v = draw.array(size, 0, 1), p = draw.array(size);
      const auto slope = [=](int64_t i) { return s.gradient_scale * g[i] + s.l2 * p[i]; };
      const Array m1 = updated(m, [=](int64_t i) { return s.beta1 * m[i] + (1.0 - s.beta1) * slope(i); });
      const Array v1 = updated(v, [=](int64_t i) { return s.beta2 * v[i] + (1.0 - s.beta2) * slope(i) * slope(i); });
      const Array p1 = updated(p, [=](int64_t i) {
        return s.decay * p[i] - s.step_size * (adaptive ? m1[i] / (s.root_scale * std::sqrt(v1[i]) + s.eps) : m1[i]);
      });
      kernel.cases.push_back({name_of(size) + (adaptive ? " adaptive" : " plain"),
                              {{.value = g, .sliceable = false}},
                              {update(m, m1), update(v, v1), update(p, p1)},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.adam_step(s, in[0], out[0].grad, out[1].grad, out[2].grad);
                              }});
    }
  }
  return kernel;
}

Kernel momentum_step() {
  Kernel kernel{"momentum_step", {}};
  Draw draw(61);
  for (const Shape& size : kSizes) {
    for (const bool nesterov : {true, false}) {
      const MomentumStep s{.gradient_scale = 0.5F,
                           .l2 = 0.02F,
                           .momentum = 0.7F,
                           .decay = 0.98F,
                           .step_size = 0.3F,
                           .nesterov = nesterov};
      const Array g = draw.array(size), m = draw.array(size), p = draw.array(size);
      const auto slope = [=](int64_t i) { return s.gradient_scale * g[i] + s.l2 * p[i]; };
      const Array m1 = updated(m, [=](int64_t i) { return s.momentum * m[i] + slope(i); });
      const Array p1 = updated(p, [=](int64_t i) {
        return s.decay * p[i] - s.step_size * (nesterov ? slope(i) + s.momentum * m1[i] : m1[i]);
      });
      kernel.cases.push_back({name_of(size) + (nesterov ? " Nesterov" : " plain"),
                              {{.value = g, .sliceable = false}},
                              {update(m, m1), update(p, p1)},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.momentum_step(s, in[0], out[0].grad, out[1].grad);
                              }});
    }
  }
  return kernel;
}

Kernel moving_average() {
  Kernel kernel{"moving_average", {}};
  Draw draw(62);
  for (const Shape& size : kSizes) {
    const Array x = draw.array(size), average = draw.array(size);
    const Array expected = updated(x, [=](int64_t i) { return 0.75 * average[i] + 0.25 * x[i]; });
    kernel.cases.push_back({name_of(size),
                            {{.value = x, .sliceable = false}},
                            {update(average, expected)},
                            [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.moving_average(0.75F, in[0], out[0].grad);
                            }});
  }
  return kernel;
}

void check_sum_of_squares(Backend& backend) {
  Draw draw(63);
  for (const Shape& size : kSizes) {
    const Array x = draw.array(size);
    double expected = 0;
    std::vector<float> values;
    for (const double value : x.values) {
      expected += value * value;
      values.push_back(static_cast<float>(value));
    }
    const Tensor tensor = backend.new_tensor("test", size);
    backend.upload(values.data(), tensor);
    EXPECT_NEAR(backend.sum_of_squares(tensor), expected, 1e-6 * expected);
  }
}

}  // namespace

void add_optimiser_kernels(std::vector<Kernel>& to) {
  to.insert(to.end(), {adam_step(), momentum_step(), moving_average()});
  to.push_back({"sum_of_squares", {}, check_sum_of_squares});
}

}  // namespace gle::test
