#pragma once

#include <string>
#include <vector>

#include "retrieval/strategies.h"
#include "training/search_space.h"

namespace gle {

// Which strategies of GL++ inference are used, with what values.
struct InferenceSettings {
  StrategyValues values;
  std::vector<Strategy> used;
};

// A setting that can be searched for: max_share, beta, slope, flip, k1, k2, lambda.
struct InferenceKey {
  enum class Type { whole, real, flag };

  std::string name;
  Type type;
  Strategy strategy;  // that it belongs to
  double least = 0, most = 0;
};

// Throws ErrorCode::usage with the nearest name if there is none.
const InferenceKey& inference_key(const std::string& name, const std::string& origin);
// Uses the strategy with this value, or not if it is a flag that says so. Throws ErrorCode::usage, with `origin` in
// front, for a value that the key does not take.
void set_inference(InferenceSettings& settings, const InferenceKey& key, const ConfigValue& value,
                   const std::string& origin);

// What trial `number` infers with: a function of the space and the seed. A strategy is used if one of its keys has a
// range; keys without are as `published`.
Settings draw_inference(const SearchSpace& space, uint64_t seed, int64_t number);
InferenceSettings with(const StrategyValues& published, const Settings& settings);

}  // namespace gle
