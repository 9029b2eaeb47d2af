#include "training/search_space.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "data/random.h"
#include "engine/error.h"
#include "training/inference_settings.h"
#include "training/recipe.h"

namespace gle {

namespace {

// More would promise a precision that a search of some dozen trials has not.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return std::strtod(text, nullptr);
}

double number_of(const ConfigValue& value, const std::string& key, const std::string& origin) {
  if (const auto* whole = std::get_if<int64_t>(&value)) {
    return static_cast<double>(*whole);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return *real;
  }
  fail(ErrorCode::usage, origin, ": ", key, ": ", toml_of(value), " is no number");
}

enum class KeyType { whole, real, other };

template <class Try>
Range range_of(const std::string& key, KeyType type, const std::string& kind, const std::vector<ConfigValue>& values,
               const std::string& origin, const Try& try_value) {
  Range range{.name = key};
  if (kind == "choice") {
    range.kind = Range::Kind::choice;
    range.choices = values;
    if (values.empty()) {
      fail(ErrorCode::usage, origin, ": ", key, ": the range is empty: choice has no values");
    }
  } else if (kind == "uniform" || kind == "log_uniform") {
    range.kind = kind == "uniform" ? Range::Kind::uniform : Range::Kind::log_uniform;
    range.whole = type == KeyType::whole;
    if (type == KeyType::other) {
      fail(ErrorCode::usage, origin, ": ", key, ": ", kind, " is for numbers; expected choice");
    }
    if (values.size() != 2) {
      fail(ErrorCode::usage, origin, ": ", key, ": ", kind, " has ", values.size(),
           " values; expected two, the least and the most");
    }
    range.low = number_of(values[0], key, origin);
    range.high = number_of(values[1], key, origin);
    if (!(range.low < range.high)) {
      fail(ErrorCode::usage, origin, ": ", key, ": the range is empty: ", range.low, " is not below ", range.high);
    }
    if (range.kind == Range::Kind::log_uniform && !(range.low > 0)) {
      fail(ErrorCode::usage, origin, ": ", key, ": log_uniform begins at ", range.low, "; expected above 0");
    }
  } else {
    fail(ErrorCode::usage, origin, ": ", key, ": '", kind,
         "' is no range; expected one of uniform, log_uniform, choice", " (did you mean '",
         nearest_name(kind, {"uniform", "log_uniform", "choice"}), "'?)");
  }
  for (const ConfigValue& value : values) {
    try_value(value);
  }
  return range;
}

void add(std::vector<Range>& ranges, Range range, const std::string& origin) {
  if (std::ranges::find(ranges, range.name, &Range::name) != ranges.end()) {
    fail(ErrorCode::usage, origin, ": ", range.name, " has a range already");
  }
  ranges.push_back(std::move(range));
}

bool keeps_to_batch(const SearchSpace& space, const TrainingConfig& config) {
  if (space.batch.empty()) {
    return true;
  }
  const auto images = static_cast<double>(batch_size(config.phase2));
  return images >= space.batch[0] && images <= space.batch[1];
}

bool leaves_pictures_to_learn(const TrainingConfig& config) {
  return !has_anchors_alone(config, config.phase1) && !has_anchors_alone(config, config.phase2);
}

std::string range_text(const Range& range) {
  std::string text = range.name + " = { ";
  if (range.kind == Range::Kind::choice) {
    text += "choice = [";
    for (size_t i = 0; i < range.choices.size(); ++i) {
      text += (i == 0 ? "" : ", ") + toml_of(range.choices[i]);
    }
    return text + "] }\n";
  }
  const auto end = [&](double value) {
    return range.whole ? std::to_string(std::llround(value)) : toml_of(ConfigValue(value));
  };
  return text + (range.kind == Range::Kind::uniform ? "uniform" : "log_uniform") + " = [" + end(range.low) + ", " +
         end(range.high) + "] }\n";
}

}  // namespace

ConfigValue value_at(const Range& range, double share) {
  if (range.kind == Range::Kind::choice) {
    return range.choices[static_cast<size_t>(share * static_cast<double>(range.choices.size()))];
  }
  // A whole number has all that rounds to it.
  const double margin = range.whole ? 0.5 : 0;
  const double low = range.low - margin;
  const double high = range.high + margin;
  const double value = range.kind == Range::Kind::uniform
                           ? low + share * (high - low)
                           : std::exp(std::log(low) + share * (std::log(high) - std::log(low)));
  if (range.whole) {
    return static_cast<int64_t>(std::clamp(std::round(value), range.low, range.high));
  }
  return std::clamp(rounded(value), range.low, range.high);
}

void add_training_range(SearchSpace& space, const std::string& key, const std::string& kind,
                        const std::vector<ConfigValue>& values, const std::string& origin) {
  const ConfigKey* known = nullptr;
  try {
    known = &config_key(key);
  } catch (const Error& e) {
    fail(ErrorCode::usage, origin, ": ", e.what());
  }
  TrainingConfig scratch;
  const ConfigPlace place = known->place(scratch);
  const KeyType type = std::holds_alternative<int64_t*>(place)  ? KeyType::whole
                       : std::holds_alternative<double*>(place) ? KeyType::real
                                                                : KeyType::other;
  add(space.training,
      range_of(key, type, kind, values, origin,
               [&](const ConfigValue& value) { set_value(scratch, *known, value, origin); }),
      origin);
}

void add_inference_range(SearchSpace& space, const std::string& key, const std::string& kind,
                         const std::vector<ConfigValue>& values, const std::string& origin) {
  const InferenceKey& known = inference_key(key, origin);
  const KeyType type = known.type == InferenceKey::Type::whole  ? KeyType::whole
                       : known.type == InferenceKey::Type::real ? KeyType::real
                                                                : KeyType::other;
  InferenceSettings scratch;
  add(space.inference,
      range_of(key, type, kind, values, origin,
               [&](const ConfigValue& value) { set_inference(scratch, known, value, origin); }),
      origin);
}

Settings draw(const SearchSpace& space, const TrainingConfig& base, int64_t number) {
  constexpr uint64_t kAttempts = 10'000;
  bool in_batch = false;
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    Settings settings;
    for (size_t i = 0; i < space.training.size(); ++i) {
      data::Random random(static_cast<uint64_t>(base.run.seed), static_cast<uint64_t>(number), data::Purpose::search, i,
                          attempt);
      settings.emplace_back(space.training[i].name, value_at(space.training[i], random.uniform()));
    }
    const TrainingConfig config = with(base, settings);
    if (leaves_pictures_to_learn(config) && keeps_to_batch(space, config)) {
      return settings;
    }
    in_batch = in_batch || keeps_to_batch(space, config);
  }
  if (in_batch) {
    fail(ErrorCode::usage, "tune.ranges: none of ", kAttempts,
         " draws has fewer group_loss.anchors than samples of a class; lower the one or raise the other");
  }
  fail(ErrorCode::usage, "tune.batch: none of ", kAttempts, " draws has a batch of ", space.batch[0], " to ",
       space.batch[1], " images; widen it, or the ranges of phase2.classes and phase2.samples");
}

TrainingConfig with(const TrainingConfig& base, const Settings& settings) {
  TrainingConfig config = base;
  for (const auto& [name, value] : settings) {
    set_value(config, config_key(name), value, "the search");
  }
  return config;
}

std::string toml_of(const SearchSpace& space) {
  std::string text = "[tune]\ntrials = " + std::to_string(space.trials) + "\ngrace = " + std::to_string(space.grace) +
                     "\npeers = " + std::to_string(space.peers) +
                     "\nper_embedding = " + std::to_string(space.per_embedding) + "\n";
  if (!space.batch.empty()) {
    text += "batch = " + toml_of(ConfigValue(space.batch)) + "\n";
  }
  for (const auto& [title, ranges] :
       {std::pair("[tune.ranges]", &space.training), std::pair("[tune.inference]", &space.inference)}) {
    if (!ranges->empty()) {
      text += std::string("\n") + title + "\n";
      for (const Range& range : *ranges) {
        text += range_text(range);
      }
    }
  }
  return text;
}

}  // namespace gle
