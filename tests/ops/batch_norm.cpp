#include "layers/batch_norm.h"

#include <algorithm>
#include <cmath>

#include "layers/batch_norm_conv.h"
#include "layers/conv_batch_norm.h"
#include "tests/op_test.h"
#include "tests/reference/reference.h"
#include "tests/shapes.h"

namespace gle::test {

namespace {

enum class Form { training, frozen, inference };
constexpr Form kForms[] = {Form::training, Form::frozen, Form::inference};
constexpr Activation kActivations[] = {kIdentity, kRelu, {0.25F}};
constexpr float kEps = 1e-3F;
// Nearer to its kink an activation may be seen from the other side by finite differences and single precision.
constexpr double kKink = 2e-5;

std::string form_name(Form form) {
  return form == Form::training ? " training" : form == Form::frozen ? " frozen" : " inference";
}

void upload(Backend& backend, const Array& values, const Tensor& to) {
  const std::vector<float> floats(values.values.begin(), values.values.end());
  backend.upload(floats.data(), to);
}

// The reference of a batch-norm with its running statistics.
struct Norm {
  Form form;
  Activation f;
  Array running_mean, running_var;

  Norm(Draw& draw, Form form, Activation f, int64_t channels)
      : form(form),
        f(f),
        running_mean(draw.array(Shape{channels}, -0.5, 0.5)),
        running_var(draw.array(Shape{channels}, 0.5, 2)) {}

  Array mean(const Array& x) const {
    return form == Form::training ? reference::batch_statistics(x).mean : running_mean;
  }
  Array inv_std(const Array& x) const {
    return reference::inv_std(form == Form::training ? reference::batch_statistics(x).variance : running_var, kEps);
  }
  Array forward(const Array& x, const Array& gamma, const Array& beta, Activation g) const {
    return reference::batch_norm(x, mean(x), inv_std(x), gamma, beta, g);
  }
  reference::BatchNormGradients backward(const Array& x, const Array& gamma, const Array& beta, const Array& dy) const {
    return reference::batch_norm_backward(x, mean(x), inv_std(x), gamma, beta, f,
                                          form == Form::training ? Statistics::of_batch : Statistics::frozen, dy);
  }
  bool near_kink(const Array& x, const Array& gamma, const Array& beta) const {
    const Array z = forward(x, gamma, beta, kIdentity);
    return f.slope != 1 && std::any_of(z.values.begin(), z.values.end(), [](double v) { return std::abs(v) < kKink; });
  }
  Mode mode() const { return form == Form::inference ? Mode::inference : Mode::training; }

  // The layer, in a set that is not trained.
  BatchNorm layer(ParameterSet& set, int64_t channels) const {
    BatchNorm layer = make_batch_norm(set, "norm", channels);
    layer.eps = kEps;
    layer.frozen = form == Form::frozen;
    layer.gamma->trainable = layer.beta->trainable = false;
    return layer;
  }
  void upload_statistics(Backend& backend, const BatchNorm& layer) const {
    upload(backend, running_mean, layer.running_mean->value);
    upload(backend, running_var, layer.running_var->value);
  }
};

Op batch_norm_op() {
  Op op{"batch_norm", {}};
  Draw draw(170);
  for (const Shape& shape : row_shapes()) {
    for (const Form form : kForms) {
      const Activation f = kActivations[op.cases.size() / 3 % 3];
      if ((form == Form::training && shape.rows() < 2) || shape.elements() > 20000) {
        continue;
      }
      const Norm norm(draw, form, f, shape.channels());
      const Shape channels{shape.channels()};
      Array x, gamma, beta;
      do {
        x = draw.array(shape);
        gamma = draw.array_off_zero(channels, 0.3);
        beta = draw.array_off_zero(channels, 0.3);
      } while (norm.near_kink(x, gamma, beta));
      op.cases.push_back({.label = name_of(shape) + form_name(form) + " slope " + std::to_string(f.slope),
                          .inputs = {{x}, {gamma, false}, {beta, false}},
                          .run =
                              [norm](Context& ctx, std::span<const Var> in, const Var& out) {
                                ParameterSet set;
                                const BatchNorm layer = norm.layer(set, in[0].shape().channels());
                                set.allocate(ctx.backend);
                                norm.upload_statistics(ctx.backend, layer);
                                return batch_norm(ctx, in[0], in[1], in[2], layer, norm.f, out);
                              },
                          .forward = [norm](const Arrays& in) { return norm.forward(in[0], in[1], in[2], norm.f); },
                          .backward =
                              [norm](const Arrays& in, const Array& dy) {
                                const auto g = norm.backward(in[0], in[1], in[2], dy);
                                return Arrays{g.dx, g.dgamma, g.dbeta};
                              },
                          .mode = norm.mode(),
                          .at_least = 0.1});
    }
  }
  return op;
}

Op channel_moments_op() {
  Op op{"channel_moments", {}};
  Draw draw(173);
  for (const Shape& shape : row_shapes()) {
    if (shape.rows() < 2 || shape.elements() > 20000) {
      continue;
    }
    for (const double centre : {0, 10}) {
      op.cases.push_back({.label = name_of(shape) + " around " + std::to_string(centre),
                          .inputs = {{draw.array(shape, centre - 1, centre + 1)}},
                          .run = [](Context& ctx, std::span<const Var> in,
                                    const Var& out) { return channel_moments(ctx, in[0], out); },
                          .forward = [](const Arrays& in) { return reference::moments(in[0]); },
                          .backward = [](const Arrays& in,
                                         const Array& dy) { return Arrays{reference::moments_backward(in[0], dy)}; }});
    }
  }
  return op;
}

// Any moments will do: the op does not ask whose they are.
Op batch_norm_given_op() {
  Op op{"batch_norm_given", {}};
  Draw draw(174);
  for (const Shape& shape : row_shapes()) {
    if (shape.rows() < 2 || shape.elements() > 20000) {
      continue;
    }
    for (const Activation f : kActivations) {
      const int64_t rows = shape.rows();
      // The statistics of the moments as running ones: then the reference is that of a frozen batch-norm.
      const auto norm_of = [f, rows](const Array& moments) {
        Draw unused(0);
        Norm norm(unused, Form::frozen, f, moments.channels());
        for (int64_t c = 0; c < moments.channels(); ++c) {
          norm.running_mean[c] = moments(0, c);
          norm.running_var[c] = moments(1, c) * static_cast<double>(rows - 1) / static_cast<double>(rows);
        }
        return norm;
      };
      const Shape channels{shape.channels()};
      Array x, moments, gamma, beta;
      do {
        x = draw.array(shape);
        moments = draw.array(Shape{2, shape.channels()}, 0.5, 2);
        gamma = draw.array_off_zero(channels, 0.3);
        beta = draw.array_off_zero(channels, 0.3);
      } while (norm_of(moments).near_kink(x, gamma, beta));
      op.cases.push_back(
          {.label = name_of(shape) + " slope " + std::to_string(f.slope),
           .inputs = {{x}, {moments}, {gamma, false}, {beta, false}},
           .run =
               [=](Context& ctx, std::span<const Var> in, const Var& out) {
                 ParameterSet set;
                 Norm norm = norm_of(moments);
                 norm.form = Form::training;
                 const BatchNorm layer = norm.layer(set, in[0].shape().channels());
                 set.allocate(ctx.backend);
                 norm.upload_statistics(ctx.backend, layer);
                 return batch_norm_given(ctx, in[0], in[1], in[2], in[3], layer, f, out);
               },
           .forward = [=](const Arrays& in) { return norm_of(in[1]).forward(in[0], in[2], in[3], f); },
           .backward =
               [=](const Arrays& in, const Array& dy) {
                 const Norm norm = norm_of(in[1]);
                 const auto g = norm.backward(in[0], in[2], in[3], dy);
                 const Array inv_std = norm.inv_std(in[0]);
                 return Arrays{g.dx, reference::gradient_of_moments(inv_std, in[2], g, rows), g.dgamma, g.dbeta};
               },
           .at_least = 0.1});
    }
  }
  return op;
}

// In inference without a tape the batch-norm is folded into the weights, with one it is not: both must equal the
// reference, which folds nothing.
Op conv_batch_norm_op() {
  Op op{"conv_batch_norm", {}};
  Draw draw(171);
  for (const ConvGeometry& g : conv_geometries()) {
    for (const Form form : kForms) {
      const Activation f = kActivations[op.cases.size() / 3 % 3];
      const Norm norm(draw, form, f, g.w[0]);
      const auto conv = [g](const Array& x, const Array& w, const Array& bias) {
        return reference::conv2d(x, w, bias, g.options, kIdentity);
      };
      const Array bias = g.with_bias ? draw.array(Shape{g.w[0]}) : Array();
      const Array gamma = draw.array_off_zero(Shape{g.w[0]}, 0.3), beta = draw.array_off_zero(Shape{g.w[0]}, 0.3);
      Array x = draw.array(g.x), w = draw.array(g.w), z = conv(x, w, bias);
      if (z.size() > 5000 || (form == Form::training && z.rows() < 2)) {
        continue;
      }
      while (norm.near_kink(z, gamma, beta)) {
        x = draw.array(g.x);
        z = conv(x, w, bias);
      }
      op.cases.push_back(
          {.label = name_of(g) + form_name(form) + " slope " + std::to_string(f.slope),
           .inputs = {{x}},
           .run =
               [=](Context& ctx, std::span<const Var> in, const Var& out) {
                 ParameterSet set;
                 const Conv2dSizes sizes{g.w[3], g.w[0], static_cast<int>(g.w[1]), static_cast<int>(g.w[2])};
                 ConvBatchNorm layer(make_conv2d(set, "conv", sizes, g.options, g.with_bias), norm.layer(set, g.w[0]));
                 set.allocate(ctx.backend);
                 norm.upload_statistics(ctx.backend, layer.norm);
                 upload(ctx.backend, w, layer.conv.weight->value);
                 layer.conv.weight->trainable = false;
                 if (g.with_bias) {
                   upload(ctx.backend, bias, layer.conv.bias->value);
                   layer.conv.bias->trainable = false;
                 }
                 upload(ctx.backend, gamma, layer.norm.gamma->value);
                 upload(ctx.backend, beta, layer.norm.beta->value);
                 return conv_batch_norm(ctx, in[0], layer, set, norm.f, out);
               },
           .forward = [=](const Arrays& in) { return norm.forward(conv(in[0], w, bias), gamma, beta, norm.f); },
           .backward =
               [=](const Arrays& in, const Array& dy) {
                 const Array dz = norm.backward(conv(in[0], w, bias), gamma, beta, dy).dx;
                 return Arrays{reference::conv2d_backward_data(w, dz, g.options, in[0].shape)};
               },
           .by_library = true,
           .mode = norm.mode(),
           .at_least = 0.1});
    }
  }
  return op;
}

// The composition of batch_norm() and conv2d() is its reference.
Op batch_norm_conv_op() {
  Op op{"batch_norm_conv", {}};
  Draw draw(172);
  for (const ConvGeometry& g : conv_geometries()) {
    for (const Form form : kForms) {
      const Activation f = kActivations[op.cases.size() / 3 % 3];
      const Norm norm(draw, form, f, g.x[3]);
      if (g.x.elements() > 5000 || g.x.rows() < 2) {
        continue;
      }
      const Shape channels{g.x[3]};
      Array x, gamma, beta;
      do {
        x = draw.array(g.x);
        gamma = draw.array_off_zero(channels, 0.3);
        beta = draw.array_off_zero(channels, 0.3);
      } while (norm.near_kink(x, gamma, beta));
      op.cases.push_back({.label = name_of(g) + form_name(form) + " slope " + std::to_string(f.slope),
                          .inputs = {{x}, {gamma, false}, {beta, false}, {draw.array(g.w), false}},
                          .run =
                              [=](Context& ctx, std::span<const Var> in, const Var& out) {
                                ParameterSet set;
                                const BatchNorm layer = norm.layer(set, in[0].shape().channels());
                                set.allocate(ctx.backend);
                                norm.upload_statistics(ctx.backend, layer);
                                return batch_norm_conv(ctx, in[0], in[1], in[2], layer, norm.f, in[3], g.options, out);
                              },
                          .forward =
                              [=](const Arrays& in) {
                                return reference::conv2d(norm.forward(in[0], in[1], in[2], norm.f), in[3], Array(),
                                                         g.options, kIdentity);
                              },
                          .backward =
                              [=](const Arrays& in, const Array& dy) {
                                const Array active = norm.forward(in[0], in[1], in[2], norm.f);
                                const Array dactive =
                                    reference::conv2d_backward_data(in[3], dy, g.options, active.shape);
                                const auto gradients = norm.backward(in[0], in[1], in[2], dactive);
                                return Arrays{gradients.dx, gradients.dgamma, gradients.dbeta,
                                              reference::conv2d_backward_weights(active, dy, g.options, in[3].shape)};
                              },
                          .by_library = true,
                          .mode = norm.mode(),
                          .at_least = 0.1});
    }
  }
  return op;
}

}  // namespace

void add_batch_norm_ops(std::vector<Op>& to) {
  to.insert(to.end(),
            {batch_norm_op(), channel_moments_op(), batch_norm_given_op(), conv_batch_norm_op(), batch_norm_conv_op()});
}

}  // namespace gle::test
