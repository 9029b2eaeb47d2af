#include <limits>

#include "tests/kernel_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

Kernel conv2d_forward() {
  Kernel kernel{"conv2d_forward", {}};
  Draw draw(50);
  const std::vector<Activation> activations = {kIdentity, kRelu, {0.25F}};
  for (const ConvGeometry& g : conv_geometries()) {
    const Activation f = activations[kernel.cases.size() / 2 % activations.size()];
    const Array x = draw.array(g.x), w = draw.array(g.w);
    const Array bias = g.with_bias ? draw.array(Shape{g.w[0]}) : Array();
    const Array expected = reference::conv2d(x, w, bias, g.options, f);
    for (const bool cached : {false, true}) {
      kernel.cases.push_back({name_of(g) + " slope " + std::to_string(f.slope) + (cached ? " packed" : ""),
                              {{x}, {w, DType::f32, false}, {bias, DType::f32, false}},
                              {{.expected = expected, .adds = false}},
                              [=, options = g.options](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                PackedWeights packed;
                                b.conv2d_forward(in[0], in[1], in[2], options, f, cached ? &packed : nullptr,
                                                 out[0].grad);
                                if (cached) {
                                  b.fill(std::numeric_limits<float>::quiet_NaN(), out[0].grad);
                                  b.conv2d_forward(in[0], in[1], in[2], options, f, &packed, out[0].grad);
                                }
                              },
                              true});
    }
  }
  return kernel;
}

Kernel conv2d_backward_data() {
  Kernel kernel{"conv2d_backward_data", {}};
  Draw draw(51);
  for (const ConvGeometry& g : conv_geometries()) {
    const Array w = draw.array(g.w);
    const Array dy = draw.array(reference::conv2d(Array(g.x), w, {}, g.options, kIdentity).shape);
    kernel.cases.push_back({name_of(g),
                            {{w, DType::f32, false}, {dy}},
                            {{.expected = reference::conv2d_backward_data(w, dy, g.options, g.x)}},
                            [options = g.options](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.conv2d_backward_data(in[0], in[1], options, out[0]);
                            },
                            true});
  }
  return kernel;
}

Kernel conv2d_backward_weights() {
  Kernel kernel{"conv2d_backward_weights", {}};
  Draw draw(52);
  for (const ConvGeometry& g : conv_geometries()) {
    const Array x = draw.array(g.x);
    const Array dy = draw.array(reference::conv2d(x, Array(g.w), {}, g.options, kIdentity).shape);
    kernel.cases.push_back(
        {name_of(g),
         {{x}, {dy}},
         {{.expected = reference::conv2d_backward_weights(x, dy, g.options, g.w), .sliceable = false}},
         [options = g.options](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
           b.conv2d_backward_weights(in[0], in[1], options, out[0]);
         },
         true});
  }
  return kernel;
}

}  // namespace

void add_conv2d_kernels(std::vector<Kernel>& to) {
  to.insert(to.end(), {conv2d_forward(), conv2d_backward_data(), conv2d_backward_weights()});
}

}  // namespace gle::test
