#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "training/config.h"

namespace gle {

// What a random search may choose for one setting.
struct Range {
  enum class Kind { uniform, log_uniform, choice };

  std::string name;  // "phase2.learning_rate"
  Kind kind = Kind::uniform;
  double low = 0, high = 0;  // of uniform and log_uniform; of whole numbers both ends are possible
  bool whole = false;
  std::vector<ConfigValue> choices = {};

  bool operator==(const Range&) const = default;
};

// `share` in [0, 1) of the way through the range. Real numbers have three digits.
ConfigValue value_at(const Range& range, double share);

using Settings = std::vector<std::pair<std::string, ConfigValue>>;

// The table [tune] of a file of ranges.
struct SearchSpace {
  int64_t trials = 20;
  int64_t grace = 1;               // evaluations that every trial gets
  int64_t peers = 4;               // trials that one is compared with before it is given up, at least; 0: none is
  int64_t per_embedding = 8;       // inference: trials in a row that differ in their re-ranking alone
  std::vector<double> batch = {};  // least and most images in a batch of phase 2; empty: any
  std::vector<Range> training = {};
  std::vector<Range> inference = {};

  bool operator==(const SearchSpace&) const = default;
};

// Adds what the file says of one key: `kind` is "uniform", "log_uniform" (two numbers) or "choice". Throw
// ErrorCode::usage, with `origin` in front, for a key that there is not, an empty range, and values that the key does
// not take.
void add_training_range(SearchSpace& space, const std::string& key, const std::string& kind,
                        const std::vector<ConfigValue>& values, const std::string& origin);
void add_inference_range(SearchSpace& space, const std::string& key, const std::string& kind,
                         const std::vector<ConfigValue>& values, const std::string& origin);

// What trial `number` trains with: a function of the space, the base and its seed. Throws ErrorCode::usage if no draw
// keeps to the limits of the batch.
Settings draw(const SearchSpace& space, const TrainingConfig& base, int64_t number);
TrainingConfig with(const TrainingConfig& base, const Settings& settings);

// The table as a file has it.
std::string toml_of(const SearchSpace& space);

}  // namespace gle
