#include "models/weights.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

namespace gle {

namespace {

constexpr std::array<std::string_view, 6> kPrefixes = {"module.",     "model.",     "net.",
                                                       "state_dict.", "_orig_mod.", "backbone."};

std::string text_of(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += i == 0 ? "" : ",";
    text += std::to_string(shape[i]);
  }
  text += ']';
  return text;
}

// The parameter's shape as weight files have it.
std::vector<int64_t> file_shape(const Shape& s) {
  if (s.rank() == 4) {
    return {s[0], s[3], s[1], s[2]};
  }
  return s.rank() == 2 ? std::vector<int64_t>{s[0], s[1]} : std::vector<int64_t>{s[0]};
}

// [1,C] for [C], [K,C,1,1] for [K,C]: sizes of one tell nothing.
bool same_shape(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const auto without_ones = [](std::vector<int64_t> shape) {
    std::erase(shape, 1);
    return shape;
  };
  return a == b || (a.size() != b.size() && without_ones(a) == without_ones(b));
}

// "....denselayer3.norm.1.weight" -> "....denselayer3.norm1.weight"
std::string modern_densenet_name(const std::string& name) {
  const size_t layer = name.find(".denselayer");
  if (layer == std::string::npos) {
    return name;
  }
  for (const char* old : {".norm.", ".relu.", ".conv."}) {
    const size_t at = name.find(old, layer);
    if (at != std::string::npos && at + 7 < name.size() && (name[at + 6] == '1' || name[at + 6] == '2') &&
        name[at + 7] == '.') {
      return name.substr(0, at + 5) + name.substr(at + 6);
    }
  }
  return name;
}

bool passed_over(std::string_view name) {
  return name.ends_with("num_batches_tracked") || name.starts_with("AuxLogits.") ||
         name.find(".AuxLogits.") != std::string_view::npos;
}

// The 2015 Inception-v3 names its 94 units by their place in the graph: weight, beta, mean, var, and no gamma, which is
// one. They come in the order of our steps. Empty if the file is not of this kind.
std::vector<WeightTensor> from_2015_names(const Network& network, const WeightFile& file) {
  constexpr size_t kUnits = 94;
  constexpr std::array<std::string_view, 4> kOld = {".weight", ".beta", ".mean", ".var"};
  constexpr std::array<std::string_view, 4> kNew = {".conv.weight", ".bn.bias", ".bn.running_mean", ".bn.running_var"};
  if (!network.options().name.starts_with("inception_v3") || file.tensors.size() != kUnits * kOld.size()) {
    return {};
  }
  std::vector<WeightTensor> result;
  size_t next = 0;
  for (const Step& step : network.graph().steps) {
    if (step.kind != StepKind::conv_norm) {
      continue;
    }
    const std::string unit = step.name.substr(0, step.name.size() - std::string_view(".conv").size());
    for (size_t part = 0; part < kOld.size(); ++part, ++next) {
      const WeightTensor& tensor = file.tensors[next];
      if (!tensor.name.ends_with(kOld[part])) {
        return {};
      }
      result.push_back({unit + std::string(kNew[part]), tensor.shape, tensor.values});
    }
    const int64_t width = step.out.channels();
    result.push_back({unit + ".bn.weight", {width}, std::vector<float>(static_cast<size_t>(width), 1.0F)});
  }
  return result;
}

// [K,C,R,S] and [K,R,S,C] are the same numbers in the same order.
bool stays_as_it_is(const Shape& s) { return s.rank() != 4 || s[1] * s[2] == 1 || s[3] == 1; }

// [K,C,R,S] -> [K,R,S,C], or back.
void turn(const std::vector<float>& from, const Shape& s, bool to_network, std::vector<float>& to) {
  to.resize(from.size());
  size_t here = 0;
  for (int64_t k = 0; k < s[0]; ++k) {
    for (int64_t r = 0; r < s[1]; ++r) {
      for (int64_t t = 0; t < s[2]; ++t) {
        for (int64_t c = 0; c < s[3]; ++c, ++here) {
          const auto there = static_cast<size_t>(((k * s[3] + c) * s[1] + r) * s[2] + t);
          to_network ? to[here] = from[there] : to[there] = from[here];
        }
      }
    }
  }
}

using Known = std::map<std::string, const Parameter*, std::less<>>;

Known known_names(Network& network) {
  Known known;
  ParameterSet& set = network.parameters();
  for (const std::deque<Parameter>* list : {&set.parameters(), &set.state()}) {
    for (const Parameter& parameter : *list) {
      known.emplace(parameter.name, &parameter);
    }
  }
  return known;
}

std::string name_in_network(const Known& known, const std::string& name) {
  std::string candidate = modern_densenet_name(name);
  for (;;) {
    if (known.contains(candidate)) {
      return candidate;
    }
    const auto* prefix =
        std::find_if(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view p) { return candidate.starts_with(p); });
    if (prefix == kPrefixes.end()) {
      return candidate;
    }
    candidate.erase(0, prefix->size());
  }
}

struct Match {
  const Parameter* parameter;
  const WeightTensor* tensor;
};

// Which of the file's tensors (of_2015, if there are any) belongs to which parameter.
std::vector<Match> matched(Network& network, const WeightFile& file, const std::vector<WeightTensor>& of_2015,
                           LoadReport& report) {
  const Known known = known_names(network);
  std::vector<Match> result;
  std::set<std::string, std::less<>> seen;
  bool has_classifier = false;
  for (const WeightTensor& tensor : of_2015.empty() ? file.tensors : of_2015) {
    const std::string name = name_in_network(known, tensor.name);
    if (passed_over(name)) {
      continue;
    }
    const auto found = known.find(name);
    const bool classifier = name.starts_with(network.classifier_name() + ".");
    has_classifier = has_classifier || classifier;
    if (found == known.end()) {
      // A network built without a classifier, or with one that has no bias, does not want the file's.
      (classifier ? report.skipped : report.unexpected).push_back(name);
      continue;
    }
    if (!seen.insert(name).second) {
      fail(ErrorCode::weights, file.name, ": two tensors are named '", name, "'");
    }
    const std::vector<int64_t> wanted = file_shape(found->second->shape);
    if (!same_shape(tensor.shape, wanted)) {
      const std::string shapes = name + ": the file has " + text_of(tensor.shape) + ", the network " + text_of(wanted);
      (classifier ? report.skipped : report.mismatched).push_back(shapes);
      continue;
    }
    report.loaded.push_back(name);
    result.push_back({found->second, &tensor});
  }
  const bool no_classifier = !report.skipped.empty() || file.tensors.empty() || !has_classifier;
  if (network.classifier() && !report.loaded.empty() && !has_classifier) {
    report.skipped.push_back(network.classifier_name() + ": the file has none");
  }
  for (const auto& [name, parameter] : known) {
    if (!seen.contains(name) && !(no_classifier && name.starts_with(network.classifier_name() + "."))) {
      report.missing.push_back(name);
    }
  }
  return result;
}

void append_names(std::string& text, const char* what, const std::vector<std::string>& names, size_t most) {
  if (names.empty()) {
    return;
  }
  if (!text.empty()) {
    text += '\n';
  }
  text += what;
  text += ' ';
  text += std::to_string(names.size());
  for (size_t i = 0; i < std::min(most, names.size()); ++i) {
    text += i == 0 ? ": " : ", ";
    text += names[i];
  }
  text += names.size() > most ? ", ..." : "";
}

}  // namespace

std::string LoadReport::text(size_t most) const {
  std::string text = "loaded " + std::to_string(loaded.size());
  append_names(text, "missing", missing, most);
  append_names(text, "unexpected", unexpected, most);
  append_names(text, "mismatched", mismatched, most);
  append_names(text, "skipped", skipped, most);
  return text;
}

std::vector<WeightTensor> renamed_weights(Network& network, const WeightFile& file, LoadReport& report) {
  const std::vector<WeightTensor> of_2015 = from_2015_names(network, file);
  std::vector<WeightTensor> result;
  for (const auto& [parameter, tensor] : matched(network, file, of_2015, report)) {
    result.push_back({parameter->name, file_shape(parameter->shape), tensor->values});
  }
  return result;
}

LoadReport load_weights(Backend& backend, Network& network, const WeightFile& file, Strictness strictness) {
  LoadReport report;
  const std::vector<WeightTensor> of_2015 = from_2015_names(network, file);
  const std::vector<Match> matches = matched(network, file, of_2015, report);
  if (strictness == Strictness::strict && !report.complete()) {
    fail(ErrorCode::weights, file.name, ": does not fit ", network.options().name, ". ", report.text(),
         "\nTo take what fits: gle-train --set network.strict=false, gle-model --no-strict.");
  }
  if (report.loaded.empty()) {
    fail(ErrorCode::weights, file.name, ": nothing in it belongs to ", network.options().name, ". ", report.text());
  }
  std::vector<float> turned;
  for (const auto& [parameter, tensor] : matches) {
    const bool as_it_is = stays_as_it_is(parameter->shape);
    if (!as_it_is) {
      turn(tensor->values, parameter->shape, true, turned);
    }
    backend.upload((as_it_is ? tensor->values : turned).data(), parameter->value);
  }
  network.parameters().values_changed();
  return report;
}

std::vector<WeightTensor> network_weights(Backend& backend, Network& network) {
  std::vector<WeightTensor> result;
  ParameterSet& set = network.parameters();
  for (const std::deque<Parameter>* list : {&set.parameters(), &set.state()}) {
    for (const Parameter& parameter : *list) {
      std::vector<float> values(static_cast<size_t>(parameter.shape.elements()));
      backend.download(parameter.value, values.data());
      if (!stays_as_it_is(parameter.shape)) {
        std::vector<float> turned;
        turn(values, parameter.shape, false, turned);
        values = std::move(turned);
      }
      result.push_back({parameter.name, file_shape(parameter.shape), std::move(values)});
    }
  }
  return result;
}

}  // namespace gle
