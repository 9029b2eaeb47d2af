#include "tests/kernel_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

Array labels_array(const std::vector<int>& labels) {
  return Array(Shape{static_cast<int64_t>(labels.size())}, std::vector<double>(labels.begin(), labels.end()));
}

// Logits as they come, and large ones, which overflow unless the largest is subtracted first.
Array logits(Draw& draw, const Shape& shape) {
  const double range = draw.one_of<double>({3, 30, 1e4});
  return draw.array(shape, -range, range);
}

Kernel softmax_forward() {
  Kernel kernel{"softmax_forward", {}};
  Draw draw(30);
  for (const Shape& shape : matrix_shapes()) {
    const Array x = logits(draw, shape);
    kernel.cases.push_back(
        {name_of(shape),
         {{x}},
         {{.expected = reference::softmax(x), .adds = false}},
         [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) { b.softmax_forward(in[0], out[0].grad); }});
  }
  return kernel;
}

Kernel softmax_backward() {
  Kernel kernel{"softmax_backward", {}};
  Draw draw(31);
  for (const Shape& shape : matrix_shapes()) {
    const Array y = reference::softmax(draw.array(shape, -3, 3)), dy = draw.array(shape);
    kernel.cases.push_back(
        {name_of(shape),
         {{y}, {dy}},
         {{.expected = reference::softmax_backward(y, dy), .at_least = shape.channels() == 1 ? 1.0 : 0.0}},
         [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) { b.softmax_backward(in[0], in[1], out[0]); }});
  }
  return kernel;
}

Kernel log_softmax_forward() {
  Kernel kernel{"log_softmax_forward", {}};
  Draw draw(32);
  for (const Shape& shape : matrix_shapes()) {
    const Array x = logits(draw, shape);
    kernel.cases.push_back({name_of(shape),
                            {{x}},
                            {{.expected = reference::log_softmax(x), .adds = false, .at_least = 1}},
                            [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.log_softmax_forward(in[0], out[0].grad);
                            }});
  }
  return kernel;
}

Kernel log_softmax_backward() {
  Kernel kernel{"log_softmax_backward", {}};
  Draw draw(33);
  for (const Shape& shape : matrix_shapes()) {
    const Array y = reference::log_softmax(draw.array(shape, -3, 3)), dy = draw.array(shape);
    kernel.cases.push_back({name_of(shape),
                            {{y}, {dy}},
                            {{.expected = reference::log_softmax_backward(y, dy), .at_least = 1}},
                            [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.log_softmax_backward(in[0], in[1], out[0]);
                            }});
  }
  return kernel;
}

Kernel cross_entropy_forward() {
  Kernel kernel{"cross_entropy_forward", {}};
  Draw draw(34);
  for (const Shape& shape : matrix_shapes()) {
    for (const float smoothing : {0.0F, 0.1F}) {
      const Array x = logits(draw, shape);
      const std::vector<int> labels = draw.labels(shape.rows(), shape.channels());
      kernel.cases.push_back({name_of(shape) + " smoothing " + std::to_string(smoothing),
                              {{x}, {labels_array(labels), DType::i32, false}},
                              {{.expected = reference::log_sums(x), .sliceable = false, .adds = false},
                               {.expected = reference::cross_entropy(x, labels, smoothing),
                                .sliceable = false,
                                .adds = false,
                                .at_least = 1}},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.cross_entropy_forward(in[0], in[1], smoothing, out[0].grad, out[1].grad);
                              }});
    }
  }
  return kernel;
}

Kernel cross_entropy_backward() {
  Kernel kernel{"cross_entropy_backward", {}};
  Draw draw(35);
  for (const Shape& shape : matrix_shapes()) {
    for (const float smoothing : {0.0F, 0.1F}) {
      const double base = draw.one_of<double>({0, 1e4});
      const Array x = draw.array(shape, base - 3, base + 3);
      const std::vector<int> labels = draw.labels(shape.rows(), shape.channels());
      kernel.cases.push_back({name_of(shape) + " smoothing " + std::to_string(smoothing),
                              {{x},
                               {labels_array(labels), DType::i32, false},
                               {reference::log_sums(x), DType::f32, false},
                               {Array(Shape{1}, 1.5), DType::f32, false}},
                              {{.expected = reference::cross_entropy_backward(x, labels, smoothing, 1.5),
                                .at_least = shape.channels() == 1 ? 1.0 : 0.0}},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.cross_entropy_backward(in[0], in[1], smoothing, in[2], in[3], out[0]);
                              }});
    }
  }
  return kernel;
}

}  // namespace

void add_softmax_kernels(std::vector<Kernel>& to) {
  to.insert(to.end(), {softmax_forward(), softmax_backward(), log_softmax_forward(), log_softmax_backward(),
                       cross_entropy_forward(), cross_entropy_backward()});
}

}  // namespace gle::test
