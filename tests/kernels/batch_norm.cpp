#include <algorithm>
#include <cmath>

#include "tests/kernel_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

constexpr float kEps = 1e-5F;

std::vector<Shape> shapes_of_several_rows() {
  std::vector<Shape> shapes = row_shapes();
  std::erase_if(shapes, [](const Shape& s) { return s.rows() < 2; });
  return shapes;
}

// What the forward and backward kernels take besides x: any statistics will do, the kernels do not ask whose they are.
struct Norm {
  Array x, mean, inv_std, gamma, beta;
};

Norm draw_norm(Draw& draw, const Shape& shape) {
  const Shape channels{shape.channels()};
  Norm norm{draw.array(shape), draw.array(channels, -0.5, 0.5), draw.array(channels, 0.5, 2),
            draw.array_off_zero(channels, 0.3), draw.array(channels)};
  const Array z = reference::batch_norm(norm.x, norm.mean, norm.inv_std, norm.gamma, norm.beta, kIdentity);
  for (int64_t i = 0; i < z.size(); ++i) {
    if (std::abs(z[i]) < 1e-4) {  // so near to the kink single precision may see the other side
      norm.x[i] = static_cast<float>(norm.x[i] + 0.01);
    }
  }
  return norm;
}

Kernel batch_norm_statistics() {
  Kernel kernel{"batch_norm_statistics", {}};
  Draw draw(60);
  const std::vector<double> offsets = {0, 0, 10, 1000};
  for (const Shape& shape : shapes_of_several_rows()) {
    const double offset = offsets[kernel.cases.size() % offsets.size()];
    const float momentum = draw.one_of<float>({0.1F, 0.9F, 0.0F, 1.0F});
    const Array x = draw.array(shape, offset - 2, offset + 2);
    const Shape channels{shape.channels()};
    const Array mean = draw.array(channels), variance = draw.array(channels, 0.5, 2);
    const reference::BatchStatistics s = reference::batch_statistics(x);
    const auto moved = [&](const Array& old, const Array& now) {
      return reference::add(reference::scale(old, 1 - double{momentum}), reference::scale(now, momentum));
    };
    // A mean of 1000 known to the last bit leaves an error of 3e-5 in what is near 1.
    const double tolerance = offset == 1000 ? 1e-4 : 1e-5;
    const auto output = [&](const Array& expected, double limit, const Array& initial) {
      return KernelOutput{
          .expected = expected, .sliceable = false, .adds = false, .initial = initial, .tolerance = limit};
    };
    kernel.cases.push_back(
        {name_of(shape) + " around " + std::to_string(offset),
         {{x}},
         {output(moved(mean, s.mean), 1e-5, mean), output(moved(variance, s.unbiased_variance), tolerance, variance),
          output(s.mean, 1e-5, {}), output(reference::inv_std(s.variance, kEps), tolerance, {})},
         [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
           b.batch_norm_statistics(in[0], kEps, momentum, out[0].grad, out[1].grad, out[2].grad, out[3].grad);
         }});
  }
  return kernel;
}

// Of all parts together, as if they were one batch.
Kernel batch_norm_join_statistics() {
  Kernel kernel{"batch_norm_join_statistics", {}};
  Draw draw(65);
  for (const int64_t channels : {1, 3, 16, 33, 257}) {
    for (const int64_t parts : {1, 2, 5}) {
      for (const int64_t rows : {1, 6}) {
        if (parts * rows < 2) {
          continue;
        }
        const Array x = draw.array(Shape{parts * rows, channels}, 8, 12);
        Array moments(Shape{2 * parts, channels});
        for (int64_t part = 0; part < parts; ++part) {
          Array own(Shape{rows, channels});
          std::copy_n(x.values.begin() + part * own.size(), own.size(), own.values.begin());
          const reference::BatchStatistics s = reference::batch_statistics(own);
          for (int64_t c = 0; c < channels; ++c) {
            moments[2 * part * channels + c] = s.mean[c];
            moments[(2 * part + 1) * channels + c] = rows > 1 ? s.unbiased_variance[c] : 0;
          }
        }
        const float momentum = draw.one_of<float>({0.1F, 1.0F});
        const Array mean = draw.array(Shape{channels}), variance = draw.array(Shape{channels}, 0.5, 2);
        const reference::BatchStatistics all = reference::batch_statistics(x);
        const auto moved = [&](const Array& old, const Array& now) {
          return reference::add(reference::scale(old, 1 - double{momentum}), reference::scale(now, momentum));
        };
        const auto output = [](const Array& expected, const Array& initial) {
          return KernelOutput{
              .expected = expected, .sliceable = false, .adds = false, .initial = initial, .tolerance = 2e-5};
        };
        kernel.cases.push_back(
            {std::to_string(parts) + " parts of " + std::to_string(rows) + "x" + std::to_string(channels),
             {{moments}},
             {output(moved(mean, all.mean), mean), output(moved(variance, all.unbiased_variance), variance),
              output(all.mean, {}), output(reference::inv_std(all.variance, kEps), {})},
             [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
               b.batch_norm_join_statistics(in[0], rows, kEps, momentum, out[0].grad, out[1].grad, out[2].grad,
                                            out[3].grad);
             }});
      }
    }
  }
  return kernel;
}

Kernel batch_norm_inv_std() {
  Kernel kernel{"batch_norm_inv_std", {}};
  Draw draw(61);
  for (const int64_t channels : {1, 3, 7, 16, 17, 64, 257, 1000}) {
    Array variance = draw.array(Shape{channels}, 0, 3);
    variance[0] = 0;
    for (const float eps : {1e-5F, 1e-3F}) {
      kernel.cases.push_back({std::to_string(channels) + " channels",
                              {{variance, DType::f32, false}},
                              {{.expected = reference::inv_std(variance, eps), .sliceable = false, .adds = false}},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.batch_norm_inv_std(in[0], eps, out[0].grad);
                              }});
    }
  }
  return kernel;
}

std::vector<KernelInput> inputs_of(const Norm& norm) {
  std::vector<KernelInput> inputs = {{norm.x}};
  for (const Array& vector : {norm.mean, norm.inv_std, norm.gamma, norm.beta}) {
    inputs.push_back({vector, DType::f32, false});
  }
  return inputs;
}

Kernel batch_norm_forward() {
  Kernel kernel{"batch_norm_forward", {}};
  Draw draw(62);
  for (const Shape& shape : row_shapes()) {
    for (const Activation f : {kIdentity, kRelu, Activation{0.25F}}) {
      const Norm norm = draw_norm(draw, shape);
      kernel.cases.push_back(
          {name_of(shape) + " slope " + std::to_string(f.slope),
           inputs_of(norm),
           {{.expected = reference::batch_norm(norm.x, norm.mean, norm.inv_std, norm.gamma, norm.beta, f),
             .adds = false}},
           [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
             b.batch_norm_forward(in[0], in[1], in[2], in[3], in[4], f, out[0].grad);
           }});
    }
  }
  return kernel;
}

Kernel batch_norm_backward() {
  Kernel kernel{"batch_norm_backward", {}};
  Draw draw(63);
  for (const Shape& shape : row_shapes()) {
    for (const Activation f : {kIdentity, kRelu, Activation{0.25F}}) {
      for (const Statistics statistics : {Statistics::of_batch, Statistics::frozen}) {
        const Norm norm = draw_norm(draw, shape);
        const Array dy = draw.array(shape);
        const reference::BatchNormGradients expected =
            reference::batch_norm_backward(norm.x, norm.mean, norm.inv_std, norm.gamma, norm.beta, f, statistics, dy);
        std::vector<KernelInput> inputs = inputs_of(norm);
        inputs.push_back({dy});
        kernel.cases.push_back({name_of(shape) + " slope " + std::to_string(f.slope) +
                                    (statistics == Statistics::frozen ? " frozen" : " of batch"),
                                inputs,
                                {{.expected = expected.dx, .omissible = true},
                                 {.expected = expected.dgamma, .sliceable = false, .omissible = true},
                                 {.expected = expected.dbeta, .sliceable = false, .omissible = true}},
                                [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                  b.batch_norm_backward(in[0], in[1], in[2], in[3], in[4], f, statistics, in[5], out[0],
                                                        out[1], out[2]);
                                }});
      }
    }
  }
  return kernel;
}

// Sums of e and e (x - mean) by channel, from the gradients that they give.
Array gradient_sums(const reference::BatchNormGradients& g, const Array& inv_std) {
  Array sums(Shape{2, inv_std.size()});
  for (int64_t c = 0; c < inv_std.size(); ++c) {
    sums[c] = g.dbeta[c];
    sums[inv_std.size() + c] = g.dgamma[c] / inv_std[c];
  }
  return sums;
}

Kernel batch_norm_backward_sums() {
  Kernel kernel{"batch_norm_backward_sums", {}};
  Draw draw(66);
  for (const Shape& shape : row_shapes()) {
    const Activation f = draw.one_of<Activation>({kIdentity, kRelu, Activation{0.25F}});
    const Norm norm = draw_norm(draw, shape);
    const Array dy = draw.array(shape);
    const reference::BatchNormGradients g = reference::batch_norm_backward(norm.x, norm.mean, norm.inv_std, norm.gamma,
                                                                           norm.beta, f, Statistics::of_batch, dy);
    std::vector<KernelInput> inputs = inputs_of(norm);
    inputs.push_back({dy});
    kernel.cases.push_back({name_of(shape) + " slope " + std::to_string(f.slope),
                            inputs,
                            {{.expected = gradient_sums(g, norm.inv_std), .sliceable = false, .adds = false},
                             {.expected = g.dgamma, .sliceable = false, .omissible = true},
                             {.expected = g.dbeta, .sliceable = false, .omissible = true}},
                            [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.batch_norm_backward_sums(in[0], in[1], in[2], in[3], in[4], f, in[5], out[0].grad,
                                                         out[1], out[2]);
                            }});
  }
  return kernel;
}

// With the sums of its own rows it is what one process has; with others', rows and sums count alone.
Kernel batch_norm_backward_data() {
  Kernel kernel{"batch_norm_backward_data", {}};
  Draw draw(67);
  for (const Shape& shape : row_shapes()) {
    for (const int64_t parts : {1, 3}) {
      const Activation f = draw.one_of<Activation>({kIdentity, kRelu, Activation{0.25F}});
      const Norm norm = draw_norm(draw, shape);
      const Array dy = draw.array(shape);
      const reference::BatchNormGradients g = reference::batch_norm_backward(
          norm.x, norm.mean, norm.inv_std, norm.gamma, norm.beta, f, Statistics::of_batch, dy);
      std::vector<KernelInput> inputs = inputs_of(norm);
      inputs.push_back({dy});
      inputs.push_back(
          {reference::scale(gradient_sums(g, norm.inv_std), static_cast<double>(parts)), DType::f32, false});
      kernel.cases.push_back({name_of(shape) + " of " + std::to_string(parts) + " slope " + std::to_string(f.slope),
                              inputs,
                              {{.expected = g.dx, .omissible = true}},
                              [=](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                                b.batch_norm_backward_data(in[0], in[1], in[2], in[3], in[4], f, in[5], in[6],
                                                           parts * in[0].rows(), out[0]);
                              }});
    }
  }
  return kernel;
}

Kernel batch_norm_backward_moments() {
  Kernel kernel{"batch_norm_backward_moments", {}};
  Draw draw(68);
  for (const int64_t channels : {1, 3, 16, 33, 257}) {
    for (const int64_t rows : {2, 50}) {
      const Shape shape{channels};
      const Array inv_std = draw.array(shape, 0.5, 2), gamma = draw.array(shape);
      const reference::BatchNormGradients g{{}, draw.array(shape), draw.array(shape)};
      KernelCase c{std::to_string(rows) + "x" + std::to_string(channels),
                   {},
                   {{.expected = reference::gradient_of_moments(inv_std, gamma, g, rows)}},
                   [rows](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                     b.batch_norm_backward_moments(in[0], in[1], in[2], in[3], rows, out[0]);
                   }};
      for (const Array& input : {inv_std, gamma, g.dgamma, g.dbeta}) {
        c.inputs.push_back({input, DType::f32, false});
      }
      kernel.cases.push_back(c);
    }
  }
  return kernel;
}

Kernel moments_backward() {
  Kernel kernel{"moments_backward", {}};
  Draw draw(69);
  for (const Shape& shape : shapes_of_several_rows()) {
    const Array x = draw.array(shape), dmoments = draw.array(Shape{2, shape.channels()});
    kernel.cases.push_back({name_of(shape),
                            {{x}, {reference::moments(x)}, {dmoments}},
                            {{.expected = reference::moments_backward(x, dmoments)}},
                            [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                              b.moments_backward(in[0], in[1], in[2], in[0].rows(), out[0]);
                            }});
  }
  return kernel;
}

Kernel batch_norm_fold() {
  Kernel kernel{"batch_norm_fold", {}};
  Draw draw(64);
  for (const Shape& shape : {Shape{1, 1, 1, 1}, Shape{3, 2, 1, 5}, Shape{17, 3, 3, 7}, Shape{64, 1, 1, 33}}) {
    for (const bool with_bias : {false, true}) {
      const Shape filters{shape[0]};
      const Array w = draw.array(shape), bias = with_bias ? draw.array(filters) : Array();
      const Array mean = draw.array(filters), inv_std = draw.array(filters, 0.5, 2);
      const Array gamma = draw.array(filters), beta = draw.array(filters);
      const reference::Folded expected = reference::batch_norm_fold(w, bias, mean, inv_std, gamma, beta);
      KernelCase c{name_of(shape) + (with_bias ? " bias" : ""),
                   {},
                   {{.expected = expected.w, .sliceable = false, .adds = false},
                    {.expected = expected.bias, .sliceable = false, .adds = false}},
                   [](Backend& b, KernelCase::Inputs in, KernelCase::Outputs out) {
                     b.batch_norm_fold(in[0], in[1], in[2], in[3], in[4], in[5], out[0].grad, out[1].grad);
                   }};
      for (const Array& input : {w, bias, mean, inv_std, gamma, beta}) {
        c.inputs.push_back({input, DType::f32, false});
      }
      kernel.cases.push_back(c);
    }
  }
  return kernel;
}

}  // namespace

void add_batch_norm_kernels(std::vector<Kernel>& to) {
  to.insert(to.end(),
            {batch_norm_statistics(), batch_norm_join_statistics(), batch_norm_inv_std(), batch_norm_forward(),
             batch_norm_backward(), batch_norm_backward_sums(), batch_norm_backward_data(),
             batch_norm_backward_moments(), moments_backward(), batch_norm_fold()});
}

}  // namespace gle::test
