#include "training/recipe.h"

#include <algorithm>
#include <cmath>

#include "engine/error.h"
#include "losses/registry.h"
#include "retrieval/input.h"

namespace gle {

namespace {

// The colours' keys name what a network was published with.
std::string colours_like(const TrainingConfig& config) {
  const std::string& name = config.input.colours;
  return name == "bgr255"     ? "bn_inception"
         : name == "centred"  ? "inception_v3_2015"
         : name == "imagenet" ? "densenet121"
                              : config.network.name;
}

data::Size input_size(const TrainingConfig& config) {
  return {static_cast<int>(config.input.width), static_cast<int>(config.input.height)};
}

void check_samples(const TrainingConfig& config, const PhaseConfig& phase, const char* name) {
  if (phase.loss == "cross_entropy" || loss_named(phase.loss).needs_proxies) {
    return;
  }
  require(phase.sampler != "shuffled", name, phase.loss,
          " compares pictures of a class: take sampler = \"classes\", \"chunks\" or \"hard\"");
  require(phase.samples > 1, name, phase.loss, " compares pictures of a class, and samples = 1 leaves none to compare");
  require(!has_anchors_alone(config, phase), name, "group_loss.anchors = ", config.group_loss.anchors,
          " of samples = ", phase.samples, " leaves no picture to learn from; expected fewer anchors than samples");
}

void check_phase(const TrainingConfig& config, const PhaseConfig& phase, const char* name) {
  static_cast<void>(train_transform(config, phase).output());
  static_cast<void>(schedule_of(phase, 1, std::max<int64_t>(1, phase.steps > 0 ? phase.steps : phase.epochs)));
  require(phase.drops.empty() || phase.decay == "steps", name, "drops go with decay = \"steps\" alone");
  require(!phase.reload_best_at_drop || !phase.drops.empty(), name, "reload_best_at_drop needs drops");
  require(!phase.reload_best_at_drop || std::ranges::all_of(phase.drops, [](double d) { return d == std::floor(d); }),
          name, "reload_best_at_drop needs drops after whole epochs");
  require(!phase.reload_best_at_drop || config.evaluation.on != "none", name,
          "reload_best_at_drop needs an evaluation to tell what is best");
  require(!phase.reload_best_at_drop || config.evaluation.every > 0, name,
          "reload_best_at_drop needs evaluation.every above 0");
  check_samples(config, phase, name);
  const Loss& loss = loss_named(phase.loss);
  const bool trains_head = loss.needs_logits || loss.needs_proxies || cross_entropy_weight(config, phase) > 0;
  require(phase.backbone_rate > 0 || trains_head || config.network.embedding > 0, name,
          "nothing would learn: backbone_rate is 0, and ", phase.loss, " trains no head");
}

void check_ks(const std::vector<double>& ks) {
  for (size_t i = 0; i < ks.size(); ++i) {
    require(ks[i] == std::floor(ks[i]), "evaluation.ks", ks[i], " is not a whole number");
    require(std::count(ks.begin(), ks.begin() + static_cast<std::ptrdiff_t>(i), ks[i]) == 0, "evaluation.ks", ks[i],
            " stands twice");
  }
}

}  // namespace

InputDescription input_description(const TrainingConfig& config) {
  const auto side = static_cast<int>(config.input.resize_to);
  const bool short_side = config.input.resize == "short_side";
  require(!short_side || side > 0, "input", "resize = \"short_side\" needs resize_to");
  require(side == 0 || (side >= config.input.width && side >= config.input.height), "input", "resize_to is ", side,
          ", smaller than the input of ", config.input.height, " x ", config.input.width);
  InputDescription input = published_input(colours_like(config));
  input.height = static_cast<int>(config.input.height);
  input.width = static_cast<int>(config.input.width);
  input.short_side = short_side ? side : 0;
  input.square = short_side ? 0 : side;
  return input;
}

data::TransformOptions test_transform(const TrainingConfig& config) {
  return inference_transform(input_description(config));
}

data::TransformOptions train_transform(const TrainingConfig& config, const PhaseConfig& phase) {
  data::TransformOptions options = test_transform(config);
  if (!phase.augment) {
    return options;
  }
  const AugmentConfig& augment = config.augment;
  options.mirror = augment.mirror;
  options.turn = augment.turn;
  options.shift = augment.shift;
  options.turn_fill.fill(static_cast<uint8_t>(augment.fill));
  options.erase = augment.erase;
  if (augment.geometry == "random_resized_crop") {
    require(augment.area_low <= augment.area_high, "augment", "area_low ", augment.area_low, " is above area_high ",
            augment.area_high);
    require(augment.pad == 0, "augment", "pad goes with geometry = \"resize\" alone");
    options.geometry = data::Geometry::random_resized_crop;
    options.size = input_size(config);
    options.area = {augment.area_low, augment.area_high};
    options.crop = data::Crop::none;
  } else {
    options.pad = static_cast<int>(augment.pad);
    if (config.input.resize_to > 0 || augment.pad > 0) {
      options.crop = data::Crop::random;
      options.crop_size = input_size(config);
    }
  }
  return options;
}

NetworkOptions network_options(const TrainingConfig& config, int64_t classes) {
  const NetworkConfig& network = config.network;
  return {
      .name = network.name,
      .head = {.classes = classes,
               .embedding = network.embedding,
               .bnneck = network.bnneck,
               .max_share = static_cast<float>(network.max_share)},
      .norms = {.momentum = static_cast<float>(network.batch_norm_momentum), .frozen = network.batch_norm == "frozen"},
      .recompute = network.recompute};
}

LossSettings loss_settings(const TrainingConfig& config) {
  const GroupLossConfig& group = config.group_loss;
  LossSettings settings;
  settings.group.refinement = {
      .similarity = group.similarity == "cosine" ? Similarity::cosine : Similarity::correlation,
      .negatives = group.negatives == "shift" ? Negatives::shift : Negatives::clamp,
      .diagonal = group.diagonal == "one" ? Diagonal::one : Diagonal::zero,
      .temperature = static_cast<float>(group.temperature),
      .steps = static_cast<int>(group.steps)};
  settings.group.anchors = group.anchor_choice == "first" ? AnchorChoice::first : AnchorChoice::random;
  settings.group.anchors_per_class = static_cast<int>(group.anchors);
  settings.group.mean_over = group.mean_over == "all" ? MeanOver::all : MeanOver::non_anchors;
  settings.group.columns = group.batch_classes_only ? Columns::of_batch : Columns::all;
  settings.group.weight = static_cast<float>(group.weight);
  settings.smoothing = static_cast<float>(config.loss.smoothing);
  settings.contrastive_margin = static_cast<float>(config.loss.contrastive_margin);
  settings.triplet_margin = static_cast<float>(config.loss.triplet_margin);
  settings.proxy_nca_length = static_cast<float>(config.loss.proxy_nca_length);
  settings.proxy_anchor_margin = static_cast<float>(config.loss.proxy_anchor_margin);
  settings.proxy_anchor_scale = static_cast<float>(config.loss.proxy_anchor_scale);
  return settings;
}

float cross_entropy_weight(const TrainingConfig& config, const PhaseConfig& phase) {
  if (phase.loss == "cross_entropy") {
    return 0;
  }
  return static_cast<float>(phase.loss == "group_loss" ? config.group_loss.cross_entropy_weight
                                                       : config.loss.cross_entropy_weight);
}

OptimiserOptions optimiser_options(const TrainingConfig& config, const PhaseConfig& phase) {
  return {.kind = optimiser_kind(phase.optimiser),
          .beta1 = static_cast<float>(phase.beta1),
          .beta2 = static_cast<float>(phase.beta2),
          .eps = static_cast<float>(phase.eps),
          .weight_decay = static_cast<float>(phase.weight_decay),
          .nesterov = phase.nesterov,
          .clip_norm = static_cast<float>(phase.clip_norm),
          .average = static_cast<float>(config.evaluation.average)};
}

Schedule schedule_of(const PhaseConfig& phase, int64_t epoch_steps, int64_t total_steps) {
  const auto steps_of = [&](double epochs) { return std::llround(epochs * static_cast<double>(epoch_steps)); };
  Schedule schedule{.rate = static_cast<float>(phase.learning_rate),
                    .total_steps = total_steps,
                    .warmup_steps = steps_of(phase.warmup_epochs),
                    .final_rate = static_cast<float>(phase.final_rate),
                    .decay_start = std::llround(phase.decay_start * static_cast<double>(total_steps)),
                    .drops = {},
                    .drop_factor = static_cast<float>(phase.drop_factor)};
  schedule.decay = phase.decay == "steps"    ? Decay::steps
                   : phase.decay == "cosine" ? Decay::cosine
                   : phase.decay == "linear" ? Decay::linear
                                             : Decay::constant;
  for (const double epoch : phase.drops) {
    schedule.drops.push_back(steps_of(epoch));
  }
  check(schedule);
  return schedule;
}

const PhaseConfig& phase_of(const TrainingConfig& config, int64_t phase) {
  return phase == 0 ? config.phase1 : config.phase2;
}

bool is_empty(const PhaseConfig& phase) { return phase.epochs == 0 && phase.steps == 0; }

int64_t batch_size(const PhaseConfig& phase) {
  return phase.sampler == "shuffled" ? phase.batch : phase.classes * phase.samples;
}

bool has_anchors_alone(const TrainingConfig& config, const PhaseConfig& phase) {
  return !is_empty(phase) && phase.loss == "group_loss" && phase.sampler != "shuffled" &&
         config.group_loss.anchors >= phase.samples;
}

void check(const TrainingConfig& config) {
  require(!config.data.path.empty(), "data", "path is empty; say where the data set is: --set data.path=...");
  require(!is_empty(config.phase1) || !is_empty(config.phase2), "phase1, phase2",
          "there is nothing to do: epochs and steps of both are 0");
  static_cast<void>(test_transform(config).output());
  check_ks(config.evaluation.ks);
  for (int64_t i = 0; i < kPhases; ++i) {
    const PhaseConfig& phase = phase_of(config, i);
    if (is_empty(phase)) {
      continue;
    }
    check_phase(config, phase, i == 0 ? "phase1" : "phase2");
  }
  if (is_empty(config.phase1) || is_empty(config.phase2) || config.phase2.fresh_optimiser) {
    return;
  }
  require(config.phase1.backbone_rate > 0 || config.phase2.backbone_rate == 0, "phase2",
          "fresh_optimiser = false needs moments of the backbone, and phase1.backbone_rate = 0 makes none");
  require((config.phase1.optimiser == "sgd") == (config.phase2.optimiser == "sgd"), "phase2",
          "fresh_optimiser = false: ", config.phase2.optimiser, " cannot go on with the moments of ",
          config.phase1.optimiser);
}

void check_division(const TrainingConfig& config, int ranks) {
  for (int64_t i = 0; i < kPhases; ++i) {
    const PhaseConfig& phase = phase_of(config, i);
    require(is_empty(phase) || batch_size(phase) % ranks == 0, i == 0 ? "phase1" : "phase2", "a batch of ",
            batch_size(phase), " images cannot be divided equally among ", ranks, " ranks; change ",
            phase.sampler == "shuffled" ? "batch" : "classes or samples", ", or the ranks");
  }
}

}  // namespace gle
