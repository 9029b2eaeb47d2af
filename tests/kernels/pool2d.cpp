#include "tests/kernel_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

// Values from a handful, so that most windows have ties: the first tap must win.
Array array_with_ties(Draw& draw, const Shape& shape) {
  Array x(shape);
  for (double& v : x.values) {
    v = static_cast<double>(draw.integer(-2, 1));
  }
  return x;
}

Kernel max_pool_forward() {
  Kernel kernel{"max_pool_forward", {}};
  Draw draw(70);
  for (const PoolGeometry& g : pool_geometries()) {
    const bool ties = kernel.cases.size() % 2 == 1;
    const Array x = ties ? array_with_ties(draw, g.x) : draw.array(g.x);
    const reference::MaxPooled expected = reference::max_pool(x, g.options);
    kernel.cases.push_back({name_of(g) + (ties ? " with ties" : ""),
                            {{x}},
                            {{.expected = expected.y, .adds = false, .tolerance = 0},
                             {.expected = expected.taps,
                              .sliceable = false,
                              .adds = false,
                              .omissible = true,
                              .type = DType::u8,
                              .tolerance = 0}},
                            [options = g.options](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.max_pool_forward(in[0], options, out[0].grad, out[1].grad);
                            }});
  }
  return kernel;
}

Kernel max_pool_backward() {
  Kernel kernel{"max_pool_backward", {}};
  Draw draw(71);
  for (const PoolGeometry& g : pool_geometries()) {
    const Array taps = reference::max_pool(draw.array(g.x), g.options).taps;
    const Array dy = draw.array(taps.shape);
    kernel.cases.push_back({name_of(g),
                            {{taps, DType::u8, false}, {dy}},
                            {{.expected = reference::max_pool_backward(taps, g.options, dy, g.x)}},
                            [options = g.options](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.max_pool_backward(in[0], options, in[1], out[0]);
                            }});
  }
  return kernel;
}

Kernel average_pool_forward() {
  Kernel kernel{"average_pool_forward", {}};
  Draw draw(72);
  for (const PoolGeometry& g : pool_geometries()) {
    const Array x = draw.array(g.x);
    kernel.cases.push_back({name_of(g),
                            {{x}},
                            {{.expected = reference::average_pool(x, g.options), .adds = false}},
                            [options = g.options](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.average_pool_forward(in[0], options, out[0].grad);
                            }});
  }
  return kernel;
}

Kernel average_pool_backward() {
  Kernel kernel{"average_pool_backward", {}};
  Draw draw(73);
  for (const PoolGeometry& g : pool_geometries()) {
    const Array dy = draw.array(reference::average_pool(Array(g.x), g.options).shape);
    kernel.cases.push_back({name_of(g),
                            {{dy}},
                            {{.expected = reference::average_pool_backward(g.options, dy, g.x)}},
                            [options = g.options](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.average_pool_backward(options, in[0], out[0]);
                            }});
  }
  return kernel;
}

std::vector<Shape> image_shapes() {
  std::vector<Shape> shapes = row_shapes();
  std::erase_if(shapes, [](const Shape& s) { return s.rank() != 4; });
  return shapes;
}

Kernel global_pool_forward() {
  Kernel kernel{"global_pool_forward", {}};
  Draw draw(74);
  for (const Shape& shape : image_shapes()) {
    for (const float max_share : {0.0F, 1.0F, 0.6F}) {
      const Array x = max_share == 1 ? array_with_ties(draw, shape) : draw.array(shape);
      const reference::GlobalPooled expected = reference::global_pool(x, max_share);
      KernelCase c{name_of(shape) + " max share " + std::to_string(max_share),
                   {{x}},
                   {{.expected = expected.y, .adds = false, .at_least = 1}},
                   [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                     b.global_pool_forward(in[0], max_share, out[0].grad, out.size() > 1 ? out[1].grad : Tensor());
                   }};
      if (max_share > 0) {
        c.outputs.push_back({.expected = expected.where,
                             .sliceable = false,
                             .adds = false,
                             .omissible = true,
                             .type = DType::i32,
                             .tolerance = 0});
      }
      kernel.cases.push_back(c);
    }
  }
  return kernel;
}

Kernel global_pool_backward() {
  Kernel kernel{"global_pool_backward", {}};
  Draw draw(75);
  for (const Shape& shape : image_shapes()) {
    for (const float max_share : {0.0F, 1.0F, 0.6F}) {
      const Array where = reference::global_pool(draw.array(shape), max_share).where;
      const Array dy = draw.array(where.shape);
      kernel.cases.push_back({name_of(shape) + " max share " + std::to_string(max_share),
                              {{max_share > 0 ? where : Array(), DType::i32, false}, {dy}},
                              {{.expected = reference::global_pool_backward(where, max_share, dy, shape)}},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.global_pool_backward(in[0], max_share, in[1], out[0]);
                              }});
    }
  }
  return kernel;
}

}  // namespace

void add_pool2d_kernels(std::vector<Kernel>& to) {
  to.insert(to.end(), {max_pool_forward(), max_pool_backward(), average_pool_forward(), average_pool_backward(),
                       global_pool_forward(), global_pool_backward()});
}

}  // namespace gle::test
