#include "models/plan.h"

#include "models/dry_backend.h"

namespace gle {

MemoryPlan plan_memory(const NetworkOptions& options, const Shape& images, Mode mode, const ForwardOptions& forward) {
  DryBackend backend;
  Network network(backend, options);
  MemoryPlan plan;
  plan.parameters = backend.allocator().statistics().live;
  if (mode == Mode::inference) {
    // Gradients are made with the parameters, whatever they are for. The second pass is the steady state: the first
    // folds the batch-norms.
    for (int pass = 0; pass < 2; ++pass) {
      Context ctx{.backend = backend};
      (void)network.forward(ctx, Var(backend.new_tensor("images", images)), forward);
    }
  } else {
    Tape tape(backend);
    Context ctx{.backend = backend, .tape = &tape, .mode = Mode::training};
    const NetworkOutput output = network.forward(ctx, Var(backend.new_tensor("images", images)), forward);
    const Var& last = output.logits ? output.logits : output.embedding;
    tape.backward(last, last.value());
  }
  const MemoryStatistics statistics = backend.allocator().statistics();
  plan.peak = statistics.peak_live;
  plan.reserved = statistics.peak_reserved;
  return plan;
}

namespace {

class Describer {
 public:
  void conv(const std::string& name, const Conv2d& layer, const Shape& in) {
    const Shape out = conv2d_shape(in, layer.weight->shape, layer.options);
    const int64_t weights = layer.weight->shape.elements();
    rows.push_back({name, "conv", out, weights + (layer.bias ? layer.bias->shape.elements() : 0),
                    out.rows() / out[0] * weights * out[0]});
  }
  void norm(const std::string& name, const Shape& in) {
    rows.push_back({name, "batch-norm", in, 2 * in.channels(), 0});
  }
  void linear(const std::string& name, const Linear& layer, int64_t images) {
    const int64_t weights = layer.weight->shape.elements();
    rows.push_back({name,
                    "linear",
                    {images, layer.weight->shape[0]},
                    weights + (layer.bias ? layer.bias->shape.elements() : 0),
                    images * weights});
  }

  std::vector<LayerRow> rows;
};

// "a.b.weight" -> "a.b"
std::string layer_of(const Parameter* parameter) { return parameter->name.substr(0, parameter->name.rfind('.')); }

}  // namespace

std::vector<LayerRow> describe(const Network& network, const Shape& images) {
  const Graph& graph = network.graph();
  Describer to;
  std::vector<Shape> shapes(graph.channels.size());
  shapes[0] = images;
  for (const Step& step : graph.steps) {
    const Shape in = shapes[static_cast<size_t>(step.in.value)].with_channels(step.in.channels());
    const Shape out = network.step_shape(step, in, images);
    shapes[static_cast<size_t>(step.out.value)] = out;
    switch (step.kind) {
      case StepKind::conv_norm:
        to.conv(step.name, step.unit.conv, in);
        to.norm(layer_of(step.unit.norm.gamma), out);
        break;
      case StepKind::norm:
        to.norm(step.name, in);
        break;
      case StepKind::norm_conv:
        to.norm(layer_of(step.pre.gamma), in);
        to.conv(step.name, step.unit.conv, in);
        break;
      case StepKind::dense_layer: {
        to.norm(layer_of(step.pre.gamma), in);
        to.conv(layer_of(step.unit.conv.weight), step.unit.conv, in);
        const Shape middle = to.rows.back().output;
        to.norm(layer_of(step.unit.norm.gamma), middle);
        to.conv(layer_of(step.post.weight), step.post, middle);
        break;
      }
      case StepKind::max_pool:
      case StepKind::average_pool:
        to.rows.push_back({step.name, step.kind == StepKind::max_pool ? "max-pool" : "average-pool", out, 0, 0});
        break;
    }
  }
  to.rows.push_back({"global_pool", "pool", {images[0], network.feature_channels()}, 0, 0});
  if (network.embedding_layer()) {
    to.linear("embedding", *network.embedding_layer(), images[0]);
  }
  if (network.neck()) {
    to.norm("bottleneck", {images[0], network.embedding_channels()});
  }
  if (network.classifier()) {
    to.linear(network.classifier_name(), *network.classifier(), images[0]);
  }
  return std::move(to.rows);
}

}  // namespace gle
