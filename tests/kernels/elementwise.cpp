#include "tests/kernel_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

constexpr Activation kLeaky{0.25F};

Kernel fill() {
  Kernel kernel{"fill", {}};
  for (const Shape& shape : row_shapes()) {
    kernel.cases.push_back(
        {name_of(shape),
         {},
         {{.expected = Array(shape, -2.5), .adds = false, .tolerance = 0}},
         [](Backend& b, KernelCase::Inputs, KernelCase::Outputs out) { b.fill(-2.5F, out[0].grad); }});
  }
  return kernel;
}

Kernel add() {
  Kernel kernel{"add", {}};
  Draw draw(10);
  for (const Shape& shape : row_shapes()) {
    const Array a = draw.array(shape), b = draw.array(shape);
    kernel.cases.push_back({name_of(shape),
                            {{a}, {b}},
                            {{.expected = reference::add(a, b), .adds = false, .tolerance = 1e-6}},
                            [](Backend& backend, KernelCase::Inputs in, KernelCase::Outputs out) {
                              backend.add(in[0], in[1], out[0].grad);
                            }});
  }
  return kernel;
}

Kernel scale() {
  Kernel kernel{"scale", {}};
  Draw draw(11);
  for (const Shape& shape : row_shapes()) {
    const Array x = draw.array(shape);
    const float factor = draw.one_of<float>({1.0F, -0.5F, 0.0F, 3.0F});
    kernel.cases.push_back(
        {name_of(shape) + " by " + std::to_string(factor),
         {{x}},
         {{.expected = reference::scale(x, factor), .tolerance = 1e-6}},
         [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) { b.scale(factor, in[0], out[0]); }});
  }
  return kernel;
}

Kernel activation_forward() {
  Kernel kernel{"activation_forward", {}};
  Draw draw(12);
  for (const Shape& shape : row_shapes()) {
    for (const Activation f : {kIdentity, kRelu, kLeaky}) {
      const Array x = draw.array_off_zero(shape);
      kernel.cases.push_back({name_of(shape) + " slope " + std::to_string(f.slope),
                              {{x}},
                              {{.expected = reference::activation(x, f), .adds = false, .tolerance = 1e-6}},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.activation_forward(in[0], f, out[0].grad);
                              }});
    }
  }
  return kernel;
}

Kernel activation_backward() {
  Kernel kernel{"activation_backward", {}};
  Draw draw(13);
  for (const Shape& shape : row_shapes()) {
    for (const Activation f : {kIdentity, kRelu, kLeaky}) {
      Array x = draw.array_off_zero(shape);
      x[0] = 0;  // at the kink the slope counts
      const Array dy = draw.array(shape);
      kernel.cases.push_back({name_of(shape) + " slope " + std::to_string(f.slope),
                              {{reference::activation(x, f)}, {dy}},
                              {{.expected = reference::activation_backward(x, f, dy), .tolerance = 1e-6}},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.activation_backward(in[0], f, in[1], out[0]);
                              }});
    }
  }
  return kernel;
}

Kernel dropout() {
  Kernel kernel{"dropout", {}};
  Draw draw(14);
  for (const Shape& shape : row_shapes()) {
    const Array x = draw.array_off_zero(shape);
    const float probability = draw.one_of<float>({0.1F, 0.5F, 0.9F});
    const RandomKey key{static_cast<uint64_t>(draw.integer(0, INT64_MAX)),
                        static_cast<uint64_t>(draw.integer(0, INT64_MAX))};
    const int64_t first = draw.one_of<int64_t>({0, 8, 1001, int64_t{1} << 40});
    kernel.cases.push_back({name_of(shape) + " probability " + std::to_string(probability),
                            {{x}},
                            {{.expected = reference::dropout(x, probability, key, first), .tolerance = 1e-6}},
                            [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.dropout(in[0], probability, key, first, out[0]);
                            }});
  }
  return kernel;
}

}  // namespace

void add_elementwise_kernels(std::vector<Kernel>& to) {
  to.insert(to.end(), {fill(), add(), scale(), activation_forward(), activation_backward(), dropout()});
}

}  // namespace gle::test
