// ONNX is one protobuf message. Writing one needs three things: numbers of seven bits a byte, floats, and fields that
// carry their length.
#include "models/onnx.h"

#include <cstring>
#include <map>

#include "models/weights.h"

namespace gle {

namespace {

class Message {
 public:
  Message& number(uint32_t field, int64_t value) {
    varint(field << 3U);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(uint32_t field, float value) {
    varint((field << 3U) | 5U);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Message& text(uint32_t field, const std::string& value) {
    varint((field << 3U) | 2U);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7U) {
      bytes_ += static_cast<char>(value | 0x80U);
    }
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

// Field numbers of onnx.proto.
enum AttributeType { kFloat = 1, kInt = 2, kInts = 7 };

Message attribute(const std::string& name, float value) {
  return Message().text(1, name).real(2, value).number(20, kFloat);
}
Message attribute(const std::string& name, int64_t value) {
  return Message().text(1, name).number(3, value).number(20, kInt);
}
Message attribute(const std::string& name, const std::vector<int64_t>& values) {
  Message result = Message().text(1, name);
  for (const int64_t value : values) {
    result.number(8, value);
  }
  return result.number(20, kInts);
}

Message tensor(const std::string& name, const std::vector<int64_t>& shape, const std::vector<float>& values) {
  Message result;
  for (const int64_t size : shape) {
    result.number(1, size);
  }
  std::string raw(values.size() * sizeof(float), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return result.number(2, 1).text(8, name).text(9, raw);
}

Message value_info(const std::string& name, const std::vector<std::string>& dimensions) {
  Message shape;
  for (const std::string& dimension : dimensions) {
    const bool digits = dimension.find_first_not_of("0123456789") == std::string::npos;
    shape.message(1, digits ? Message().number(1, std::stoll(dimension)) : Message().text(2, dimension));
  }
  return Message().text(1, name).message(2, Message().message(1, Message().number(1, 1).message(2, shape)));
}

class Exporter {
 public:
  Exporter(Network& network, const ForwardOptions& options) : network_(network), options_(options) {}

  Message graph(const std::vector<WeightTensor>& weights) {
    const Graph& graph = network_.graph();
    parts_[0].push_back({0, 3, "images"});
    for (const Step& step : graph.steps) {
      const std::string out = run(step, read(step.in));
      parts_[step.out.value].push_back({step.out.begin, step.out.end, out});
    }
    head(read(graph.features));
    Message result = nodes_;
    result.text(2, network_.options().name);
    for (const WeightTensor& weight : weights) {
      result.message(5, tensor(weight.name, weight.shape, weight.values));
    }
    for (const auto& [name, value] : constants_) {
      result.message(5, tensor(name, {1}, {value}));
    }
    result.message(11, value_info("images", {"N", "3", "H", "W"}));
    result.message(12, value_info("embedding", {"N", std::to_string(network_.embedding_channels())}));
    if (network_.classifier()) {
      result.message(12, value_info("logits", {"N", std::to_string(network_.options().head.classes)}));
    }
    return result;
  }

 private:
  struct Part {
    int64_t begin, end;
    std::string name;
  };

  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<Message>& attributes, std::string output = {}) {
    if (output.empty()) {
      output = 'v';
      output += std::to_string(counter_++);
    }
    Message result;
    for (const std::string& input : inputs) {
      result.text(1, input);
    }
    result.text(2, output).text(4, op);
    for (const Message& a : attributes) {
      result.message(5, a);
    }
    nodes_.message(1, result);
    return output;
  }

  // A place of a value: the part that was written there, or several side by side.
  std::string read(const Place& place) {
    std::vector<std::string> names;
    for (const Part& part : parts_[place.value]) {
      if (part.begin >= place.begin && part.end <= place.end) {
        names.push_back(part.name);
      }
    }
    return names.size() == 1 ? names[0] : node("Concat", names, {attribute("axis", int64_t{1})});
  }

  std::string conv(const Conv2d& layer, const std::string& in) {
    const Conv2dOptions& o = layer.options;
    std::vector<std::string> inputs = {in, layer.weight->name};
    if (layer.bias) {
      inputs.push_back(layer.bias->name);
    }
    return node("Conv", inputs,
                {attribute("kernel_shape", std::vector<int64_t>{layer.weight->shape[1], layer.weight->shape[2]}),
                 attribute("strides", std::vector<int64_t>{o.stride_h, o.stride_w}),
                 attribute("pads", std::vector<int64_t>{o.pad_h, o.pad_w, o.pad_h, o.pad_w})});
  }
  std::string norm(const BatchNorm& layer, const std::string& in) {
    return node("BatchNormalization",
                {in, layer.gamma->name, layer.beta->name, layer.running_mean->name, layer.running_var->name},
                {attribute("epsilon", layer.eps)});
  }
  std::string active(const std::string& in, bool last) {
    return last && options_.last_slope != 0 ? node("LeakyRelu", {in}, {attribute("alpha", options_.last_slope)})
                                            : node("Relu", {in}, {});
  }
  std::string pool(const Step& step, const std::string& in) {
    const Pool2dOptions& o = step.pool;
    std::vector<Message> attributes = {attribute("kernel_shape", std::vector<int64_t>{o.kernel_h, o.kernel_w}),
                                       attribute("strides", std::vector<int64_t>{o.stride_h, o.stride_w}),
                                       attribute("pads", std::vector<int64_t>{o.pad_h, o.pad_w, o.pad_h, o.pad_w})};
    // A stride of one divides everything: rounding up changes nothing, and runtimes differ in what they count then.
    if (o.rounding == Rounding::ceil && o.stride_h * o.stride_w > 1) {
      attributes.push_back(attribute("ceil_mode", int64_t{1}));
    }
    if (step.kind == StepKind::average_pool) {
      attributes.push_back(attribute("count_include_pad", int64_t{o.padding == Padding::counted}));
    }
    return node(step.kind == StepKind::max_pool ? "MaxPool" : "AveragePool", {in}, attributes);
  }

  std::string run(const Step& step, const std::string& in) {
    switch (step.kind) {
      case StepKind::conv_norm:
        return active(norm(step.unit.norm, conv(step.unit.conv, in)), step.last);
      case StepKind::norm:
        return active(norm(step.pre, in), step.last);
      case StepKind::norm_conv:
        return conv(step.unit.conv, active(norm(step.pre, in), false));
      case StepKind::dense_layer: {
        const std::string middle = conv(step.unit.conv, active(norm(step.pre, in), false));
        return conv(step.post, active(norm(step.unit.norm, middle), false));
      }
      case StepKind::max_pool:
      case StepKind::average_pool:
        return pool(step, in);
    }
    bug("unknown kind of step");
  }

  std::string constant(const std::string& name, float value) {
    constants_[name] = value;
    return name;
  }
  std::string linear(const Linear& layer, const std::string& in, const std::string& output) {
    std::vector<std::string> inputs = {in, layer.weight->name};
    if (layer.bias) {
      inputs.push_back(layer.bias->name);
    }
    return node("Gemm", inputs, {attribute("transB", int64_t{1})}, output);
  }

  void head(const std::string& features) {
    const float share = options_.max_share.value_or(network_.options().head.max_share);
    std::string pooled = share == 1 ? node("GlobalMaxPool", {features}, {}) : node("GlobalAveragePool", {features}, {});
    if (share > 0 && share < 1) {
      const std::string largest = node("GlobalMaxPool", {features}, {});
      pooled = node("Add",
                    {node("Mul", {pooled, constant("average_share", 1 - share)}, {}),
                     node("Mul", {largest, constant("max_share", share)}, {})},
                    {});
    }
    std::string x = node("Flatten", {pooled}, {});
    if (network_.embedding_layer()) {
      x = linear(*network_.embedding_layer(), x, {});
    }
    if (options_.beta) {
      const std::string size = node("ReduceL2", {x}, {attribute("axes", std::vector<int64_t>{1})});
      const std::string unit = node("Div", {x, node("Max", {size, constant("smallest_norm", 1e-12F)}, {})}, {});
      node("Add", {unit, node("Mul", {x, constant("beta", *options_.beta)}, {})}, {}, "embedding");
    } else {
      node("Identity", {x}, {}, "embedding");
    }
    if (network_.classifier()) {
      linear(*network_.classifier(), network_.neck() ? norm(*network_.neck(), x) : x, "logits");
    }
  }

  Network& network_;
  ForwardOptions options_;
  Message nodes_;
  std::map<int, std::vector<Part>> parts_;
  std::map<std::string, float> constants_;
  int counter_ = 0;
};

}  // namespace

std::vector<std::byte> export_onnx(Backend& backend, Network& network, const ForwardOptions& options) {
  require(!options.flip, "export_onnx", "flip is a second pass over the mirror image and no part of a graph");
  const Message graph = Exporter(network, options).graph(network_weights(backend, network));
  const Message model =
      Message().number(1, 7).text(2, "gle").message(7, graph).message(8, Message().text(1, "").number(2, 13));
  const Bytes bytes = std::as_bytes(std::span(model.bytes()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace gle
