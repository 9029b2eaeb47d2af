#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/graph.h"

namespace gle {

struct BatchNormOptions {
  std::optional<float> eps = std::nullopt;  // else the network's own: 1e-5, and 1e-3 for Inception-v3
  float momentum = 0.1F;                    // PyTorch's sense; `official` is 0.9
  bool frozen = false;
};

// How a parameter starts.
struct Initial {
  enum class Kind { constant, uniform, normal };
  Kind kind = Kind::constant;
  float scale = 0;  // the constant, the bound of [-scale, scale), the standard deviation
};

struct ConvSpec {
  int64_t out = 0;
  int kernel_h = 1;
  int kernel_w = 1;
  int stride = 1;
  int pad_h = 0;
  int pad_w = 0;
};

enum class WeightRule { pytorch_default, he_normal, normal_tenth };

// Adds steps to a graph and their parameters to a set.
class GraphBuilder {
 public:
  GraphBuilder(ParameterSet& set, const BatchNormOptions& norms, float default_eps, WeightRule rule, bool conv_bias)
      : set_(set), norms_(norms), default_eps_(default_eps), rule_(rule), conv_bias_(conv_bias) {
    graph_.channels.push_back(3);
  }

  Place image() const { return {0, 0, 3}; }
  Place new_value(int64_t channels);
  // The next `channels` behind those taken of `value`.
  static Place part(const Place& value, int64_t& taken, int64_t channels);

  // Each writes `out` if given, else a new value, and returns it.
  Place conv_norm(const std::string& conv, const std::string& norm, const Place& in, const ConvSpec& spec,
                  const std::optional<Place>& out = {}, bool last = false);
  Place norm(const std::string& name, const Place& in, bool last);
  Place norm_conv(const std::string& norm, const std::string& conv, const Place& in, const ConvSpec& spec);
  void dense_layer(const std::string& name, const Place& in, int64_t bottleneck, const Place& out);
  Place max_pool(const std::string& name, const Place& in, const Pool2dOptions& options,
                 const std::optional<Place>& out = {});
  Place average_pool(const std::string& name, const Place& in, const Pool2dOptions& options,
                     const std::optional<Place>& out = {});

  Graph finish(const Place& features);

  BatchNorm make_norm(const std::string& name, int64_t channels);
  void start(Parameter* parameter, const Initial& initial);
  std::vector<std::pair<Parameter*, Initial>> take_initials() { return std::move(initials_); }

 private:
  Conv2d make_conv(const std::string& name, int64_t in, const ConvSpec& spec);
  Place add(Step step, const std::optional<Place>& out, int64_t channels);

  ParameterSet& set_;
  BatchNormOptions norms_;
  float default_eps_;
  WeightRule rule_;
  bool conv_bias_;
  Graph graph_;
  std::vector<std::pair<Parameter*, Initial>> initials_;
};

// The backbones, each a table.

// `model_zoo`: the Inception-v2 of the ONNX model zoo, which came from Caffe2. Its average pools ignore their padding
// and two modules have narrower pool projections; else as pretrainedmodels has it.
enum class BnInceptionKind { pretrainedmodels, model_zoo };
Graph build_bn_inception(GraphBuilder& builder, BnInceptionKind kind);

struct DenseNetTable {
  int64_t growth;
  int layers[4];
  int64_t first;
};
Graph build_densenet(GraphBuilder& builder, const DenseNetTable& table);

// `of_2015`: average pools that ignore their padding, and a max-pool in the last block, as in the graph that Google
// published first; else as torchvision has it.
enum class InceptionV3Pools { torchvision, of_2015 };
Graph build_inception_v3(GraphBuilder& builder, InceptionV3Pools pools);

}  // namespace gle
