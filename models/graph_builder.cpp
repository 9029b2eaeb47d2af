#include "models/graph_builder.h"

#include <cmath>

#include "layers/pool2d.h"

namespace gle {

Shape output_shape(const Step& step, const Shape& in) {
  switch (step.kind) {
    case StepKind::conv_norm:
    case StepKind::norm_conv:
      return conv2d_shape(in, step.unit.conv.weight->shape, step.unit.conv.options);
    case StepKind::dense_layer:
      return in.with_channels(step.out.channels());
    case StepKind::norm:
      return in;
    case StepKind::max_pool:
    case StepKind::average_pool:
      return pool2d_shape(in, step.pool);
  }
  bug("unknown kind of step");
}

Place GraphBuilder::new_value(int64_t channels) {
  graph_.channels.push_back(channels);
  return {static_cast<int>(graph_.channels.size()) - 1, 0, channels};
}

Place GraphBuilder::part(const Place& value, int64_t& taken, int64_t channels) {
  const Place result{value.value, value.begin + taken, value.begin + taken + channels};
  taken += channels;
  invariant(result.end <= value.end, "the parts of a concatenation exceed it");
  return result;
}

void GraphBuilder::start(Parameter* parameter, const Initial& initial) { initials_.emplace_back(parameter, initial); }

BatchNorm GraphBuilder::make_norm(const std::string& name, int64_t channels) {
  BatchNorm norm = make_batch_norm(set_, name, channels);
  norm.eps = norms_.eps.value_or(default_eps_);
  norm.momentum = norms_.momentum;
  norm.frozen = norms_.frozen;
  start(norm.gamma, {Initial::Kind::constant, 1});
  start(norm.beta, {Initial::Kind::constant, 0});
  start(norm.running_mean, {Initial::Kind::constant, 0});
  start(norm.running_var, {Initial::Kind::constant, 1});
  return norm;
}

Conv2d GraphBuilder::make_conv(const std::string& name, int64_t in, const ConvSpec& spec) {
  const Conv2dOptions options{
      .stride_h = spec.stride, .stride_w = spec.stride, .pad_h = spec.pad_h, .pad_w = spec.pad_w};
  const Conv2d conv = make_conv2d(set_, name, {in, spec.out, spec.kernel_h, spec.kernel_w}, options, conv_bias_);
  const auto fan_in = static_cast<float>(in * spec.kernel_h * spec.kernel_w);
  const float bound = 1 / std::sqrt(fan_in);
  switch (rule_) {
    case WeightRule::pytorch_default:
      start(conv.weight, {Initial::Kind::uniform, bound});
      break;
    case WeightRule::he_normal:
      start(conv.weight, {Initial::Kind::normal, std::sqrt(2 / fan_in)});
      break;
    case WeightRule::normal_tenth:
      start(conv.weight, {Initial::Kind::normal, 0.1F});
      break;
  }
  if (conv.bias) {
    start(conv.bias, {Initial::Kind::uniform, bound});
  }
  return conv;
}

Place GraphBuilder::add(Step step, const std::optional<Place>& out, int64_t channels) {
  step.out = out ? *out : new_value(channels);
  invariant(step.out.channels() == channels, "a step's output has another number of channels than its place");
  graph_.steps.push_back(std::move(step));
  return graph_.steps.back().out;
}

Place GraphBuilder::conv_norm(const std::string& conv, const std::string& norm, const Place& in, const ConvSpec& spec,
                              const std::optional<Place>& out, bool last) {
  Step step{.kind = StepKind::conv_norm, .name = conv, .in = in, .out = {}, .last = last};
  step.unit.conv = make_conv(conv, in.channels(), spec);
  step.unit.norm = make_norm(norm, spec.out);
  return add(std::move(step), out, spec.out);
}

Place GraphBuilder::norm(const std::string& name, const Place& in, bool last) {
  Step step{.kind = StepKind::norm, .name = name, .in = in, .out = {}, .last = last};
  step.pre = make_norm(name, in.channels());
  return add(std::move(step), {}, in.channels());
}

Place GraphBuilder::norm_conv(const std::string& norm, const std::string& conv, const Place& in, const ConvSpec& spec) {
  Step step{.kind = StepKind::norm_conv, .name = conv, .in = in, .out = {}};
  step.pre = make_norm(norm, in.channels());
  step.unit.conv = make_conv(conv, in.channels(), spec);
  return add(std::move(step), {}, spec.out);
}

void GraphBuilder::dense_layer(const std::string& name, const Place& in, int64_t bottleneck, const Place& out) {
  Step step{.kind = StepKind::dense_layer, .name = name, .in = in, .out = {}};
  step.pre = make_norm(name + ".norm1", in.channels());
  step.unit.conv = make_conv(name + ".conv1", in.channels(), {.out = bottleneck});
  step.unit.norm = make_norm(name + ".norm2", bottleneck);
  step.post = make_conv(name + ".conv2", bottleneck,
                        {.out = out.channels(), .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1});
  add(std::move(step), out, out.channels());
}

Place GraphBuilder::max_pool(const std::string& name, const Place& in, const Pool2dOptions& options,
                             const std::optional<Place>& out) {
  return add({.kind = StepKind::max_pool, .name = name, .in = in, .out = {}, .pool = options}, out, in.channels());
}

Place GraphBuilder::average_pool(const std::string& name, const Place& in, const Pool2dOptions& options,
                                 const std::optional<Place>& out) {
  return add({.kind = StepKind::average_pool, .name = name, .in = in, .out = {}, .pool = options}, out, in.channels());
}

Graph GraphBuilder::finish(const Place& features) {
  graph_.features = features;
  return std::move(graph_);
}

}  // namespace gle
