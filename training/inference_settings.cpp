#include "training/inference_settings.h"

#include <algorithm>
#include <iterator>

#include "data/random.h"
#include "engine/error.h"

namespace gle {

namespace {

using Type = InferenceKey::Type;

const InferenceKey kKeys[] = {
    {"max_share", Type::real, Strategy::mixed_pooling, 0, 1},
    {"beta", Type::real, Strategy::beta, 0, 1e6},
    {"slope", Type::real, Strategy::leaky, -1e3, 1e3},
    {"flip", Type::flag, Strategy::flip},
    {"k1", Type::whole, Strategy::rerank, 1, 1e6},
    {"k2", Type::whole, Strategy::rerank, 1, 1e6},
    {"lambda", Type::real, Strategy::rerank, 0, 1},
};

const char* expected(Type type) {
  return type == Type::flag ? "true or false" : type == Type::whole ? "a whole number" : "a number";
}

}  // namespace

const InferenceKey& inference_key(const std::string& name, const std::string& origin) {
  const auto* found = std::ranges::find(kKeys, name, &InferenceKey::name);
  if (found != std::end(kKeys)) {
    return *found;
  }
  std::vector<std::string> names;
  std::ranges::transform(kKeys, std::back_inserter(names), &InferenceKey::name);
  fail(ErrorCode::usage, origin, ": inference has no setting '", name, "'; did you mean '", nearest_name(name, names),
       "'?");
}

void set_inference(InferenceSettings& settings, const InferenceKey& key, const ConfigValue& value,
                   const std::string& origin) {
  const auto* flag = std::get_if<bool>(&value);
  const auto* whole = std::get_if<int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const bool fits = key.type == Type::flag ? flag != nullptr : whole || (real && key.type == Type::real);
  if (!fits) {
    fail(ErrorCode::usage, origin, ": ", key.name, " is ", toml_of(value), "; expected ", expected(key.type));
  }
  const bool wanted = !flag || *flag;
  if (wanted && !uses(settings.used, key.strategy)) {
    settings.used.push_back(key.strategy);
    std::sort(settings.used.begin(), settings.used.end());
  }
  if (flag) {
    return;
  }
  const double number = whole ? static_cast<double>(*whole) : *real;
  if (!(number >= key.least && number <= key.most)) {
    fail(ErrorCode::usage, origin, ": ", key.name, " is ", number, "; expected ", key.least, " to ", key.most);
  }
  StrategyValues& values = settings.values;
  if (key.name == "k1" || key.name == "k2") {
    (key.name == "k1" ? values.rerank.k1 : values.rerank.k2) = *whole;
  } else {
    float& place = key.name == "max_share" ? values.max_share
                   : key.name == "beta"    ? values.beta
                   : key.name == "slope"   ? values.slope
                                           : values.rerank.lambda;
    place = static_cast<float>(number);
  }
}

Settings draw_inference(const SearchSpace& space, uint64_t seed, int64_t number) {
  Settings settings;
  for (size_t i = 0; i < space.inference.size(); ++i) {
    const Range& range = space.inference[i];
    const bool shared = inference_key(range.name, "").strategy != Strategy::rerank;
    const int64_t drawn_for = shared ? number / space.per_embedding : number;
    // Trials of a training search have no `b` of this size.
    data::Random random(seed, static_cast<uint64_t>(drawn_for), data::Purpose::search, i, 0xFFFFFFFF);
    settings.emplace_back(range.name, value_at(range, random.uniform()));
  }
  return settings;
}

InferenceSettings with(const StrategyValues& published, const Settings& settings) {
  InferenceSettings result{.values = published, .used = {}};
  for (const auto& [name, value] : settings) {
    set_inference(result, inference_key(name, "the search"), value, "the search");
  }
  return result;
}

}  // namespace gle
