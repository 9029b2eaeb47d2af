#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gle {

// All that decides what a training run does, as keys of a TOML file: section.key. config_keys() has the meaning, type,
// default and limits of each.
struct PhaseConfig {
  std::string loss = "cross_entropy";
  int64_t epochs = 10;
  int64_t steps = 0;
  std::string sampler = "shuffled";
  int64_t batch = 32;
  int64_t classes = 6;
  int64_t samples = 9;
  int64_t hard_refresh = 5;
  bool augment = true;
  int64_t accumulate = 1;
  std::string optimiser = "radam";
  bool fresh_optimiser = true;
  double learning_rate = 2e-4;
  double backbone_rate = 1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool nesterov = false;
  double clip_norm = 0;
  std::string decay = "constant";
  double warmup_epochs = 0;
  double decay_start = 0;
  double final_rate = 0;
  std::vector<double> drops = {};
  double drop_factor = 0.1;
  bool reload_best_at_drop = false;
};

struct DataConfig {
  std::string path;
  std::string dataset;
  std::string train_classes;
  bool allow_outside_root = false;
  bool exif = false;
  int64_t workers = 2;
  int64_t prefetch = 3;
  int64_t cache_mb = 1024;
  std::string on_bad = "quarantine";
  double max_bad = 0.001;
};

struct NetworkConfig {
  std::string name = "bn_inception";
  std::string weights;
  bool strict = true;
  int64_t embedding = 0;
  bool bnneck = false;
  double max_share = 0;
  std::string batch_norm = "trained";
  double batch_norm_momentum = 0.1;
  int64_t reestimate_batches = 50;
  bool recompute = false;
};

struct InputConfig {
  int64_t height = 227;
  int64_t width = 227;
  std::string resize = "stretch";
  int64_t resize_to = 0;
  std::string colours = "auto";
};

struct AugmentConfig {
  std::string geometry = "resize";
  double area_low = 0.08;
  double area_high = 1.0;
  double mirror = 0.5;
  int64_t pad = 0;
  double turn = 0;
  double shift = 0;
  int64_t fill = 0;
  double erase = 0;
};

struct GroupLossConfig {
  double temperature = 1;
  int64_t steps = 1;
  int64_t anchors = 1;
  std::string anchor_choice = "random";
  std::string similarity = "correlation";
  std::string negatives = "clamp";
  std::string diagonal = "zero";
  std::string mean_over = "non_anchors";
  bool batch_classes_only = false;
  double weight = 1;
  double cross_entropy_weight = 1;
};

struct LossConfig {
  double smoothing = 0;
  double cross_entropy_weight = 0;
  double contrastive_margin = 0.5;
  double triplet_margin = 0.2;
  double proxy_nca_length = 3;
  double proxy_anchor_margin = 0.1;
  double proxy_anchor_scale = 32;
};

struct EvaluationConfig {
  std::string on = "held_out";
  double held_out = 0.1;
  int64_t every = 1;
  std::string metric = "R@1";
  std::vector<double> ks = {1, 2, 4, 8};
  int64_t patience = 0;
  int64_t batch = 64;
  int64_t train_images = 256;
  double average = 0;
};

struct RunConfig {
  int64_t seed = 1;
  int64_t checkpoint_steps = 0;
  int64_t checkpoint_epochs = 1;
  int64_t keep_last = 2;
  int64_t log_every = 10;
  std::string on_nonfinite = "stop";
  int64_t nonfinite_budget = 10;
  std::string on_save_error = "stop";
};

struct DistributedConfig {
  bool sync_batch_norm = true;
  int64_t bucket_kb = 4096;
  bool shard_optimiser = false;
  double timeout = 20;
};

struct TrainingConfig {
  RunConfig run;
  DataConfig data;
  InputConfig input;
  AugmentConfig augment;
  NetworkConfig network;
  GroupLossConfig group_loss;
  LossConfig loss;
  PhaseConfig phase1;
  PhaseConfig phase2 = {.loss = "group_loss", .epochs = 60, .sampler = "classes"};
  EvaluationConfig evaluation;
  DistributedConfig distributed;
};

using ConfigValue = std::variant<bool, int64_t, double, std::string, std::vector<double>>;
using ConfigPlace = std::variant<bool*, int64_t*, double*, std::string*, std::vector<double>*>;

enum class Resuming { fixed, may_change };

struct ConfigKey {
  std::string name;  // "phase2.learning_rate"
  std::string meaning;
  std::function<ConfigPlace(TrainingConfig&)> place;
  std::vector<std::string> choices = {};  // of a text; empty: anything
  double least = -1e300;
  double most = 1e300;
  Resuming resuming = Resuming::fixed;  // whether a resumed run may have another value

  const char* type() const;  // "true or false", "a whole number", ...
};

// In the order in which a file is written.
const std::vector<ConfigKey>& config_keys();
// Throws ErrorCode::usage with the nearest name if there is none.
const ConfigKey& config_key(std::string_view name);

// Both throw ErrorCode::usage, with `origin` (a file and line, "--set", a variable's name) in front, for a value of
// another type, an unknown choice, or a number out of its limits.
void set_value(TrainingConfig& config, const ConfigKey& key, const ConfigValue& value, const std::string& origin);
void set_text(TrainingConfig& config, const ConfigKey& key, const std::string& text, const std::string& origin);

ConfigValue value_of(const TrainingConfig& config, const ConfigKey& key);
// A number with as few digits, of six at least, as tell it from others.
std::string number_text(double value);
// The value as TOML has it.
std::string toml_of(const ConfigValue& value);
// The whole as a TOML file that gives the same config again; with comments, every key's meaning above it.
enum class Comments { none, meanings };
std::string toml_of(const TrainingConfig& config, Comments comments);

// All keys with type, limits, default and meaning, as the page docs/configuration.md.
std::string config_reference();

// Throws ErrorCode::usage, naming key and values, if `config` differs from that of the run it resumes, in its `phase`
// (0 or 1), in a key that must not change, or can no longer.
void require_resumable(const TrainingConfig& config, const TrainingConfig& before, int64_t phase);

// "phase2.learning_rate" -> "GLE_PHASE2_LEARNING_RATE"
std::string environment_name(const ConfigKey& key);

// The nearest of `names` by edits, for messages about `wrong`.
std::string nearest_name(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace gle
