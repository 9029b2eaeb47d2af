#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "layers/linear.h"
#include "models/graph.h"
#include "models/graph_builder.h"

namespace gle {

struct HeadOptions {
  int64_t classes = 0;    // 0: no classifier
  int64_t embedding = 0;  // 0: the pooled features are the embedding and the classifier has a bias; D: a linear layer
                          // with bias to D numbers, then a classifier without
  bool bnneck = false;    // batch-norm with its bias fixed at 0, then a classifier without bias, N(0, 0.001)
  float max_share = 0;    // global pooling: 0 average, 1 maximum, between them mixed
};

struct NetworkOptions {
  std::string name;  // one of network_names()
  HeadOptions head = {};
  BatchNormOptions norms = {};
  // DenseNet: keep no batch-norm + ReLU output in training, make it again in backward. Other networks have none that
  // it could save.
  bool recompute = false;
};

// What GL++ changes at inference, without training anew; each alone or all together.
struct ForwardOptions {
  float last_slope = 0;                 // of the backbone's last activation, for negative values
  std::optional<float> max_share = {};  // instead of the head's
  std::optional<float> beta = {};       // the embedding becomes f / max(|f|, 1e-12) + beta * f
  bool flip = false;                    // mean of the embeddings of the image and of its mirror image
  bool with_logits = true;
};

struct NetworkOutput {
  Var embedding;  // [N,D]: pooled features, or the linear layer's; before the neck
  Var logits;     // [N,classes]; empty without a classifier
};

// A backbone with its head and all parameters. Images are [N,H,W,3].
class Network {
 public:
  Network(Backend& backend, const NetworkOptions& options);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Fills parameters and state as PyTorch's own definitions of these networks do, from counter-based random numbers: a
  // parameter's values depend on the seed and its name alone.
  void initialise(Backend& backend, uint64_t seed);

  NetworkOutput forward(Context& ctx, const Var& images, const ForwardOptions& options = {});
  // The embeddings of forward() by each of several options, to the same bits, from one pass through the backbone, or
  // two if one of them flips. Inference only.
  std::vector<Var> embeddings(Context& ctx, const Var& images, std::span<const ForwardOptions> ways);

  // Of all batch-norms: the share of the new batch in the running statistics.
  void set_norm_momentum(float momentum);
  // Factor of the optimiser's learning rate for all that comes before the pooling; at 0 no gradient is computed there.
  void set_backbone_rate(float factor);

  ParameterSet& parameters() { return *parameters_; }
  const ParameterSet& parameters() const { return *parameters_; }
  const Graph& graph() const { return graph_; }
  const NetworkOptions& options() const { return options_; }
  // output_shape() of a step of graph(), for images of this shape: those that are too small for it are refused.
  Shape step_shape(const Step& step, const Shape& in, const Shape& images) const;
  int64_t feature_channels() const { return graph_.features.channels(); }
  int64_t embedding_channels() const;

  // The layers of the head, for those who describe or export it; null where there is none.
  const Linear* embedding_layer() const { return embedding_ ? &*embedding_ : nullptr; }
  const BatchNorm* neck() const { return neck_ ? &*neck_ : nullptr; }
  const Linear* classifier() const { return classifier_ ? &*classifier_ : nullptr; }
  // "last_linear", "classifier" or "fc".
  const std::string& classifier_name() const { return classifier_name_; }

 private:
  void build_head(GraphBuilder& builder);
  Var features(Context& ctx, const Var& images, Activation last);
  Var embed(Context& ctx, const Var& features, const ForwardOptions& options, Var* raw);
  void drop_kept_weights();
  void run(Context& ctx, Step& step, const Var& in, Activation last, const Var& out);
  Var norm_in_front(Context& ctx, const Step& step, const Var& in, Activation f, const Var& out = {});

  NetworkOptions options_;
  std::unique_ptr<ParameterSet> parameters_;
  size_t backbone_parameters_ = 0;  // the first ones
  Graph graph_;
  struct Moments {
    Var value;             // [2,C], of the pass under way
    int64_t channels = 0;  // of which it has the first
    int norms = 0;         // that normalise the value
  };
  std::vector<size_t> last_use_;  // of each value: the step
  std::vector<Moments> moments_;  // of each value
  std::vector<Var> values_;       // of the pass under way
  std::string classifier_name_;
  std::optional<Linear> embedding_;
  std::optional<BatchNorm> neck_;
  std::optional<Linear> classifier_;
  std::vector<std::pair<Parameter*, Initial>> initials_;
};

std::vector<std::string> network_names();

// Every image mirrored left to right.
Tensor mirrored(Backend& backend, const Tensor& images);

}  // namespace gle
