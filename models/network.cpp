#include "models/network.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "layers/batch_norm_conv.h"
#include "layers/elementwise.h"
#include "layers/pool2d.h"
#include "layers/rows.h"

namespace gle {

namespace {

constexpr float kClassifierSpread = 0.001F;

struct Entry {
  const char* name;
  const char* classifier;
  float eps;
  WeightRule rule;
  bool conv_bias;
  Graph (*build)(GraphBuilder&);
};

constexpr Entry kNetworks[] = {
    {"bn_inception", "last_linear", 1e-5F, WeightRule::pytorch_default, true,
     [](GraphBuilder& b) { return build_bn_inception(b, BnInceptionKind::pretrainedmodels); }},
    {"densenet121", "classifier", 1e-5F, WeightRule::he_normal, false,
     [](GraphBuilder& b) {
       return build_densenet(b, {32, {6, 12, 24, 16}, 64});
     }},
    {"densenet161", "classifier", 1e-5F, WeightRule::he_normal, false,
     [](GraphBuilder& b) {
       return build_densenet(b, {48, {6, 12, 36, 24}, 96});
     }},
    {"densenet169", "classifier", 1e-5F, WeightRule::he_normal, false,
     [](GraphBuilder& b) {
       return build_densenet(b, {32, {6, 12, 32, 32}, 64});
     }},
    {"densenet201", "classifier", 1e-5F, WeightRule::he_normal, false,
     [](GraphBuilder& b) {
       return build_densenet(b, {32, {6, 12, 48, 32}, 64});
     }},
    {"densenet_tiny", "classifier", 1e-5F, WeightRule::he_normal, false,
     [](GraphBuilder& b) {
       return build_densenet(b, {8, {2, 2, 2, 2}, 16});
     }},
    {"inception_v2", "last_linear", 1e-5F, WeightRule::pytorch_default, false,
     [](GraphBuilder& b) { return build_bn_inception(b, BnInceptionKind::model_zoo); }},
    {"inception_v3", "fc", 1e-3F, WeightRule::normal_tenth, false,
     [](GraphBuilder& b) { return build_inception_v3(b, InceptionV3Pools::torchvision); }},
    {"inception_v3_2015", "fc", 1e-3F, WeightRule::normal_tenth, false,
     [](GraphBuilder& b) { return build_inception_v3(b, InceptionV3Pools::of_2015); }},
};

const Entry& entry_of(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(kNetworks), std::end(kNetworks), [&](const Entry& entry) { return name == entry.name; });
  if (found == std::end(kNetworks)) {
    std::string names;
    for (const Entry& entry : kNetworks) {
      names += std::string(names.empty() ? "" : ", ") + entry.name;
    }
    fail(ErrorCode::usage, "network: there is no '", name, "'; there are: ", names);
  }
  return *found;
}

// Whether squares of this side go through, and branches that are concatenated end in one size.
bool takes_square(const Graph& graph, int64_t side) {
  std::vector<std::optional<Shape>> shapes(graph.channels.size());
  shapes[0] = {1, side, side, 3};
  try {
    for (const Step& step : graph.steps) {
      const Shape in = shapes[static_cast<size_t>(step.in.value)]->with_channels(step.in.channels());
      std::optional<Shape>& to = shapes[static_cast<size_t>(step.out.value)];
      const Shape out = output_shape(step, in);
      if (to && (*to)[1] != out[1]) {
        return false;
      }
      to = out;
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

int64_t least_square(const Graph& graph) {
  int64_t side = 1;
  while (!takes_square(graph, side)) {
    ++side;
  }
  return side;
}

}  // namespace

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kNetworks) {
    names.emplace_back(entry.name);
  }
  return names;
}

Network::Network(Backend& backend, const NetworkOptions& options)
    : options_(options), parameters_(std::make_unique<ParameterSet>()) {
  const Entry& entry = entry_of(options.name);
  const HeadOptions& head = options.head;
  require(head.classes >= 0 && head.embedding >= 0, "network", "classes and embedding must not be negative, got ",
          head.classes, " and ", head.embedding);
  classifier_name_ = entry.classifier;
  GraphBuilder builder(*parameters_, options.norms, entry.eps, entry.rule, entry.conv_bias);
  graph_ = entry.build(builder);
  backbone_parameters_ = parameters_->parameters().size();
  build_head(builder);
  initials_ = builder.take_initials();
  last_use_.resize(graph_.channels.size());
  moments_.resize(graph_.channels.size());
  for (size_t i = 0; i < graph_.steps.size(); ++i) {
    const auto from = static_cast<size_t>(graph_.steps[i].in.value);
    last_use_[from] = i;
    moments_[from].norms += graph_.steps[i].pre.gamma ? 1 : 0;
  }
  parameters_->allocate(backend);
}

int64_t Network::embedding_channels() const {
  return options_.head.embedding > 0 ? options_.head.embedding : feature_channels();
}

void Network::build_head(GraphBuilder& builder) {
  const HeadOptions& head = options_.head;
  const auto bound = [](int64_t in) { return Initial{Initial::Kind::uniform, 1 / std::sqrt(static_cast<float>(in))}; };
  if (head.embedding > 0) {
    embedding_ = make_linear(*parameters_, "embedding", feature_channels(), head.embedding, true);
    builder.start(embedding_->weight, bound(feature_channels()));
    builder.start(embedding_->bias, bound(feature_channels()));
  }
  if (head.bnneck) {
    neck_ = builder.make_norm("bottleneck", embedding_channels());
    neck_->beta->trainable = false;
  }
  if (head.classes == 0) {
    return;
  }
  const bool with_bias = !embedding_ && !neck_;
  classifier_ = make_linear(*parameters_, classifier_name_, embedding_channels(), head.classes, with_bias);
  const bool densenet = options_.name.starts_with("densenet");
  builder.start(classifier_->weight,
                neck_ ? Initial{Initial::Kind::normal, kClassifierSpread} : bound(embedding_channels()));
  if (with_bias) {
    builder.start(classifier_->bias, densenet ? Initial{} : bound(embedding_channels()));
  }
}

void Network::set_backbone_rate(float factor) {
  for (size_t i = 0; i < backbone_parameters_; ++i) {
    Parameter& parameter = parameters_->parameters()[i];
    parameter.lr_scale = factor;
    parameter.trainable = factor > 0;
  }
}

void Network::set_norm_momentum(float momentum) {
  for (Step& step : graph_.steps) {
    step.pre.momentum = step.unit.norm.momentum = momentum;
  }
  if (neck_) {
    neck_->momentum = momentum;
  }
}

NetworkOutput Network::forward(Context& ctx, const Var& images, const ForwardOptions& options) {
  const Shape& shape = images.shape();
  require(shape.rank() == 4 && shape.channels() == 3, "network", options_.name, " takes images [N,H,W,3], got ", shape);
  NetworkOutput output;
  Var raw;
  const Activation last{options.last_slope};
  output.embedding = embed(ctx, features(ctx, images, last), options, &raw);
  if (options.flip) {
    require(!ctx.tape, "network", "flip is for inference: it cannot be trained through");
    const Var mirror = features(ctx, Var(mirrored(ctx.backend, images.value())), last);
    output.embedding = scale(ctx, add(ctx, output.embedding, embed(ctx, mirror, options, nullptr)), 0.5F);
  }
  if (classifier_ && options.with_logits) {
    output.logits = linear(ctx, neck_ ? batch_norm(ctx, raw, *neck_) : raw, *classifier_);
  }
  return output;
}

std::vector<Var> Network::embeddings(Context& ctx, const Var& images, std::span<const ForwardOptions> ways) {
  require(!ctx.tape && !ways.empty(), "network", "several embeddings at once are for inference, and at least one");
  const float slope = ways.front().last_slope;
  const bool one_slope =
      std::all_of(ways.begin(), ways.end(), [&](const ForwardOptions& way) { return way.last_slope == slope; });
  const auto embed_by = [&](const Var& found, const ForwardOptions& way) {
    return embed(ctx, one_slope ? found : activation(ctx, found, Activation{way.last_slope}), way, nullptr);
  };
  const Activation last = one_slope ? Activation{slope} : kIdentity;
  std::vector<Var> result;
  const Var found = features(ctx, images, last);
  for (const ForwardOptions& way : ways) {
    result.push_back(embed_by(found, way));
  }
  if (std::any_of(ways.begin(), ways.end(), [](const ForwardOptions& way) { return way.flip; })) {
    const Var mirror = features(ctx, Var(mirrored(ctx.backend, images.value())), last);
    for (size_t i = 0; i < ways.size(); ++i) {
      if (ways[i].flip) {
        result[i] = scale(ctx, add(ctx, result[i], embed_by(mirror, ways[i])), 0.5F);
      }
    }
  }
  return result;
}

// `raw`: where the embedding before beta normalisation goes, which the classifier was trained on.
Var Network::embed(Context& ctx, const Var& features, const ForwardOptions& options, Var* raw) {
  const float max_share = options.max_share.value_or(options_.head.max_share);
  Var x = global_pool(ctx, features, max_share);
  if (embedding_) {
    x = linear(ctx, x, *embedding_);
  }
  if (raw) {
    *raw = x;
  }
  return options.beta ? normalise_rows(ctx, x, *options.beta) : x;
}

void Network::drop_kept_weights() {
  for (Step& step : graph_.steps) {
    step.unit.drop_folded();
    step.kept = {};
  }
}

Shape Network::step_shape(const Step& step, const Shape& in, const Shape& images) const {
  try {
    return output_shape(step, in);
  } catch (const Error& problem) {
    const int64_t least = least_square(graph_);
    fail(problem.code(), options_.name, ": images of ", images[1], "x", images[2],
         " are too small; the least square is ", least, "x", least, " (", step.name, ": ", problem.what(), ")");
  }
}

Var Network::features(Context& ctx, const Var& images, Activation last) {
  if (ctx.tape || ctx.mode == Mode::training) {
    // An evaluation may have left them; a step wants their memory, and changes the weights anyway.
    drop_kept_weights();
  }
  // The lists keep their room from pass to pass, and their values no longer than this one.
  struct Emptied {
    Network& network;
    ~Emptied() {
      network.values_.clear();
      for (Moments& moments : network.moments_) {
        moments.value = Var();
        moments.channels = 0;
      }
    }
  } const emptied{*this};
  std::vector<Var>& values = values_;
  values.resize(graph_.channels.size());
  values[0] = images;
  for (size_t i = 0; i < graph_.steps.size(); ++i) {
    Step& step = graph_.steps[i];
    const auto from = static_cast<size_t>(step.in.value);
    const auto to = static_cast<size_t>(step.out.value);
    const Var in = values[from].slice(step.in.begin, step.in.end);
    const Shape whole = step_shape(step, in.shape(), images.shape()).with_channels(graph_.channels[to]);
    if (!values[to]) {
      values[to] = ctx.new_var(step.name.c_str(), whole);
    }
    require(values[to].shape() == whole, options_.name.c_str(), "does not take images of ", images.shape()[1], "x",
            images.shape()[2], ": ", step.name, " would end in ", whole[1], "x", whole[2], " beside a branch of ",
            values[to].shape()[1], "x", values[to].shape()[2], "; multiples of 32 fit");
    run(ctx, step, in, last, values[to].slice(step.out.begin, step.out.end));
    if (last_use_[from] == i) {
      values[from] = Var();
    }
  }
  return values[static_cast<size_t>(graph_.features.value)];
}

// The layers of a dense block all normalise the same channels, each with its own scale and shift: what one needs of the
// batch's statistics the ones before it have found.
Var Network::norm_in_front(Context& ctx, const Step& step, const Var& in, Activation f, const Var& out) {
  const auto from = static_cast<size_t>(step.in.value);
  Moments& moments = moments_[from];
  const bool of_batch = ctx.mode == Mode::training && !step.pre.frozen;
  if (moments.norms < 2 || !of_batch) {
    return batch_norm(ctx, in, step.pre, f, out);
  }
  if (!moments.value) {
    moments.value = ctx.new_var(step.name.c_str(), {2, graph_.channels[from]});
  }
  if (moments.channels < step.in.end) {
    channel_moments(ctx, values_[from].slice(moments.channels, step.in.end),
                    moments.value.slice(moments.channels, step.in.end));
    moments.channels = step.in.end;
  }
  return batch_norm_given(ctx, in, moments.value.slice(step.in.begin, step.in.end), step.pre, f, out);
}

void Network::run(Context& ctx, Step& step, const Var& in, Activation last, const Var& out) {
  const Activation f = step.last ? last : kRelu;
  const bool recompute = options_.recompute && ctx.tape;
  switch (step.kind) {
    case StepKind::conv_norm:
      conv_batch_norm(ctx, in, step.unit, *parameters_, f, out);
      return;
    case StepKind::norm:
      norm_in_front(ctx, step, in, f, out);
      return;
    case StepKind::norm_conv:
      if (recompute) {
        batch_norm_conv(ctx, in, step.pre, kRelu, step.unit.conv, out);
      } else {
        conv2d(ctx, norm_in_front(ctx, step, in, kRelu), step.unit.conv, step.kept, *parameters_, out);
      }
      return;
    case StepKind::dense_layer:
      if (recompute) {
        const Var middle = batch_norm_conv(ctx, in, step.pre, kRelu, step.unit.conv);
        batch_norm_conv(ctx, middle, step.unit.norm, kRelu, step.post, out);
      } else {
        const Var normed = norm_in_front(ctx, step, in, kRelu);
        const Var middle = conv_batch_norm(ctx, normed, step.unit, *parameters_, kRelu);
        conv2d(ctx, middle, step.post, step.kept, *parameters_, out);
      }
      return;
    case StepKind::max_pool:
      max_pool(ctx, in, step.pool, out);
      return;
    case StepKind::average_pool:
      average_pool(ctx, in, step.pool, out);
      return;
  }
}

Tensor mirrored(Backend& backend, const Tensor& images) {
  const Shape& s = images.shape();
  require(s.rank() == 4 && images.dense(), "mirrored", "images must be dense [N,H,W,C], got ", s);
  Tensor result = backend.new_tensor("mirrored", s);
  // A column of pixels is a slice of the rows of all pictures.
  const Shape rows{s[0] * s[1], s[2] * s[3]};
  const Tensor from = images.reshaped(rows);
  const Tensor to = result.reshaped(rows);
  for (int64_t w = 0; w < s[2]; ++w) {
    const int64_t mirror = s[2] - 1 - w;
    backend.scale(1.0F, from.slice(w * s[3], (w + 1) * s[3]), {to.slice(mirror * s[3], (mirror + 1) * s[3])});
  }
  return result;
}

}  // namespace gle
