// The table of all keys of a training config.
#include <cctype>

#include "training/config.h"

namespace gle {

namespace {

using Choices = std::vector<std::string>;
constexpr double kCount = 1e9;

class Table {
 public:
  struct Limits {
    double least = -1e300;
    double most = 1e300;
  };

  // Keys of one section; `section` finds it in a config.
  template <class Section>
  class Part {
   public:
    Part(Table& table, std::string name, std::function<Section&(TrainingConfig&)> section)
        : table_(table), name_(std::move(name)), section_(std::move(section)) {}

    template <class Type>
    ConfigKey& add(const char* key, Type Section::*member, const char* meaning) {
      return table_.keys.emplace_back(
          ConfigKey{.name = name_ + "." + key,
                    .meaning = meaning,
                    .place = [section = section_, member](TrainingConfig& config) -> ConfigPlace {
                      return &(section(config).*member);
                    }});
    }
    template <class Type>
    ConfigKey& number(const char* key, Type Section::*member, Limits limits, const char* meaning) {
      ConfigKey& added = add(key, member, meaning);
      added.least = limits.least;
      added.most = limits.most;
      return added;
    }
    ConfigKey& choice(const char* key, std::string Section::*member, Choices choices, const char* meaning) {
      ConfigKey& added = add(key, member, meaning);
      added.choices = std::move(choices);
      return added;
    }

   private:
    Table& table_;
    std::string name_;
    std::function<Section&(TrainingConfig&)> section_;
  };

  template <class Section>
  Part<Section> part(const char* name, Section TrainingConfig::*member) {
    return {*this, name, [member](TrainingConfig& config) -> Section& { return config.*member; }};
  }

  std::vector<ConfigKey> keys;
};

void may_change(ConfigKey& key) { key.resuming = Resuming::may_change; }

void add_run(Table& table) {
  auto run = table.part("run", &TrainingConfig::run);
  run.number("seed", &RunConfig::seed, {0, 9e15}, "Of everything random: weights, order, augmentation, anchors");
  may_change(run.number("checkpoint_steps", &RunConfig::checkpoint_steps, {0, kCount},
                        "Write a checkpoint every so many steps; 0: only after epochs"));
  may_change(run.number("checkpoint_epochs", &RunConfig::checkpoint_epochs, {0, kCount},
                        "Write a checkpoint every so many epochs; 0: only at the end and where one was best"));
  may_change(run.number("keep_last", &RunConfig::keep_last, {1, kCount},
                        "Checkpoints to keep beside best.gle; two allow for one to be damaged"));
  run.number("log_every", &RunConfig::log_every, {1, kCount}, "Steps from one line of metrics.jsonl to the next");
  run.choice("on_nonfinite", &RunConfig::on_nonfinite, {"stop", "skip"},
             "A loss or gradient that is not finite: end the run with code 7, or leave the step out");
  run.number("nonfinite_budget", &RunConfig::nonfinite_budget, {0, kCount}, "Steps that `skip` may leave out");
  may_change(run.choice("on_save_error", &RunConfig::on_save_error, {"stop", "warn"},
                        "A checkpoint that cannot be written: end with code 6, or go on without it, but for the last"));
}

void add_data(Table& table) {
  auto data = table.part("data", &TrainingConfig::data);
  may_change(data.add("path", &DataConfig::path, "Folder, CSV file or tar shard of the data set"));
  data.add("dataset", &DataConfig::dataset, "Its kind, such as cub or market1501; empty: by what is there");
  data.add("train_classes", &DataConfig::train_classes, "A:B for class folders: train on classes A to B-1");
  may_change(data.add("allow_outside_root", &DataConfig::allow_outside_root,
                      "Lists and links may lead out of the data set's folder"));
  data.add("exif", &DataConfig::exif, "Turn pictures as EXIF says");
  may_change(data.number("workers", &DataConfig::workers, {0, 256}, "Threads that read and decode"));
  may_change(data.number("prefetch", &DataConfig::prefetch, {1, 1024}, "Batches made ahead"));
  may_change(data.number("cache_mb", &DataConfig::cache_mb, {0, kCount}, "Decoded pictures to keep, in MiB"));
  data.choice("on_bad", &DataConfig::on_bad, {"quarantine", "error"},
              "A picture that cannot be read: another of its class takes its place, and evaluations go without it; or "
              "the run ends");
  data.number("max_bad", &DataConfig::max_bad, {0, 1}, "Share of the pictures that quarantine may take");
}

void add_input(Table& table) {
  auto input = table.part("input", &TrainingConfig::input);
  input.number("height", &InputConfig::height, {1, 8192}, "Pixels from top to bottom that the network sees");
  input.number("width", &InputConfig::width, {1, 8192}, "Pixels from left to right");
  input.choice("resize", &InputConfig::resize, {"stretch", "short_side"},
               "How pictures come to size: to a square (to the input's own shape if resize_to is 0), or by their "
               "short side");
  input.number("resize_to", &InputConfig::resize_to, {0, 8192},
               "Pixels of the side before the crop; 0: the input's size, without a crop");
  input.choice("colours", &InputConfig::colours, {"auto", "bgr255", "imagenet", "centred"},
               "bgr255: BGR minus (104, 117, 128); imagenet: RGB by its mean and deviation; centred: RGB, (v - 128) / "
               "128; auto: what the network was published with");
  auto augment = table.part("augment", &TrainingConfig::augment);
  augment.choice("geometry", &AugmentConfig::geometry, {"resize", "random_resized_crop"},
                 "resize: as [input] says, then a random crop; or a random part of the picture, stretched");
  augment.number("area_low", &AugmentConfig::area_low, {1e-4, 1}, "random_resized_crop: smallest share of the area");
  augment.number("area_high", &AugmentConfig::area_high, {1e-4, 1}, "random_resized_crop: largest share of the area");
  augment.number("mirror", &AugmentConfig::mirror, {0, 1}, "Probability of the mirror image");
  augment.number("pad", &AugmentConfig::pad, {0, 4096}, "Black pixels on all sides before the random crop");
  augment.number("turn", &AugmentConfig::turn, {0, 180}, "Turned by so many degrees at most, either way");
  augment.number("shift", &AugmentConfig::shift, {0, 1}, "Shifted by this share of the sides at most, either way");
  augment.number("fill", &AugmentConfig::fill, {0, 255}, "Grey level of what turn and shift leave bare");
  augment.number("erase", &AugmentConfig::erase, {0, 1}, "Probability of a rectangle erased");
}

void add_network(Table& table) {
  auto network = table.part("network", &TrainingConfig::network);
  network.add("name", &NetworkConfig::name, "Network: bn_inception, inception_v3, inception_v3_2015, densenet121 ...");
  network.add("weights", &NetworkConfig::weights, "File of weights to begin with; empty: random");
  network.add("strict", &NetworkConfig::strict, "The file must have all of the network and nothing else");
  network.number("embedding", &NetworkConfig::embedding, {0, 1e6},
                 "Size of a linear embedding; 0: the pooled features are the embedding");
  network.add("bnneck", &NetworkConfig::bnneck, "Batch-norm between embedding and classifier, as in re-ID");
  network.number("max_share", &NetworkConfig::max_share, {0, 1}, "Global pooling: 0 average, 1 maximum, else mixed");
  network.choice(
      "batch_norm", &NetworkConfig::batch_norm, {"trained", "frozen", "reestimated"},
      "Statistics of a batch, or the running ones kept as they are; reestimated: trained, and the running ones made "
      "anew before every evaluation");
  network.number("batch_norm_momentum", &NetworkConfig::batch_norm_momentum, {0, 1},
                 "Share of the new batch in the running statistics");
  network.number("reestimate_batches", &NetworkConfig::reestimate_batches, {1, kCount},
                 "Batches that reestimated statistics are the mean of");
  network.add("recompute", &NetworkConfig::recompute,
              "DenseNet: keep no batch-norm outputs for backward; less memory for more work");
}

void add_losses(Table& table) {
  auto group = table.part("group_loss", &TrainingConfig::group_loss);
  group.number("temperature", &GroupLossConfig::temperature, {1e-3, 1e6},
               "Divides the logits before the softmax that refinement starts from");
  group.number("steps", &GroupLossConfig::steps, {0, 100}, "Refinements T; 0: softmax cross-entropy");
  group.number("anchors", &GroupLossConfig::anchors, {0, 1e6}, "Samples of each class whose label is given");
  group.choice("anchor_choice", &GroupLossConfig::anchor_choice, {"random", "first"},
               "Which samples of a class are anchors: a new draw each step (paper), or the first of the batch");
  group.choice("similarity", &GroupLossConfig::similarity, {"correlation", "cosine"},
               "Of embeddings: correlation centres each over its features first");
  group.choice("negatives", &GroupLossConfig::negatives, {"clamp", "shift"},
               "Negative similarities: to 0, or all less the smallest");
  group.choice("diagonal", &GroupLossConfig::diagonal, {"zero", "one"},
               "Similarity of a sample with itself: 0 (paper), or kept (the authors' code)");
  group.choice("mean_over", &GroupLossConfig::mean_over, {"all", "non_anchors"},
               "Samples that the loss averages; anchors add 0 to the sum");
  group.add("batch_classes_only", &GroupLossConfig::batch_classes_only,
            "Refine the classes of the batch alone, renormalised: for thousands of classes");
  group.number("weight", &GroupLossConfig::weight, {0, 1e6}, "Factor of the refined likelihood's loss");
  group.number("cross_entropy_weight", &GroupLossConfig::cross_entropy_weight, {0, 1e6},
               "Factor of cross-entropy beside it; 0: the refined loss alone");
  auto loss = table.part("loss", &TrainingConfig::loss);
  loss.number("smoothing", &LossConfig::smoothing, {0, 0.99}, "Label smoothing of cross-entropy, alone or beside");
  loss.number(
      "cross_entropy_weight", &LossConfig::cross_entropy_weight, {0, 1e6},
      "Factor of cross-entropy beside a loss of pairs or proxies, as re-ID has it beside triplets (group_loss has "
      "one of its own); 0: that loss alone");
  loss.number("contrastive_margin", &LossConfig::contrastive_margin, {0, 1e6},
              "Distance (of normalised embeddings) up to which different classes are pushed apart");
  loss.number("triplet_margin", &LossConfig::triplet_margin, {0, 1e6},
              "By how much a match must be nearer than an image of another class");
  loss.number("proxy_nca_length", &LossConfig::proxy_nca_length, {1e-6, 1e6},
              "Length that embeddings and proxies are scaled to");
  loss.number("proxy_anchor_margin", &LossConfig::proxy_anchor_margin, {0, 1e6},
              "Margin of the cosine between embedding and proxy");
  loss.number("proxy_anchor_scale", &LossConfig::proxy_anchor_scale, {1e-6, 1e6}, "Factor of the cosine");
}

void add_phase(Table& table, const char* name, PhaseConfig TrainingConfig::*member) {
  auto phase = table.part(name, member);
  phase.choice("loss", &PhaseConfig::loss,
               {"cross_entropy", "group_loss", "contrastive", "triplet_hard", "triplet_semihard", "triplet_all",
                "proxy_nca", "multi_similarity", "proxy_anchor"},
               "What is minimised; proxies are the classifier's weights");
  may_change(phase.number("epochs", &PhaseConfig::epochs, {0, kCount}, "Passes over the data; 0: no such phase"));
  may_change(phase.number("steps", &PhaseConfig::steps, {0, kCount}, "Ends the phase after so many steps instead"));
  phase.choice("sampler", &PhaseConfig::sampler, {"shuffled", "classes", "chunks", "hard"},
               "shuffled: `batch` pictures; the others `classes` x `samples`: no class twice, the authors' sampler, "
               "classes that are near each other");
  phase.number("batch", &PhaseConfig::batch, {1, 1e6}, "Pictures of a shuffled batch");
  phase.number("classes", &PhaseConfig::classes, {1, 1e6}, "Classes of a batch");
  phase.number("samples", &PhaseConfig::samples, {1, 1e6}, "Pictures of each class");
  phase.number("hard_refresh", &PhaseConfig::hard_refresh, {1, kCount},
               "Epochs from one measurement of the classes' distances to the next");
  phase.add("augment", &PhaseConfig::augment, "Augment; else the pictures are prepared as for tests");
  phase.number("accumulate", &PhaseConfig::accumulate, {1, kCount}, "Batches whose gradients make one step");
  phase.choice("optimiser", &PhaseConfig::optimiser, {"radam", "adam", "adamw", "sgd"},
               "What makes steps of gradients");
  phase.add("fresh_optimiser", &PhaseConfig::fresh_optimiser, "Begin with moments of zero, else with those at hand");
  phase.number("learning_rate", &PhaseConfig::learning_rate, {0, 1e3}, "Size of a step, before warm-up and decay");
  phase.number(
      "backbone_rate", &PhaseConfig::backbone_rate, {0, 1e3},
      "Factor of it for the network before its pooling; below 1 new heads learn faster than pretrained weights; "
      "0: its weights stay, and a step costs little more than inference");
  phase.number("beta1", &PhaseConfig::beta1, {0, 0.999999}, "Decay of the first moment; the momentum of sgd");
  phase.number("beta2", &PhaseConfig::beta2, {0, 0.999999999}, "Decay of the second moment");
  phase.number("eps", &PhaseConfig::eps, {1e-30, 1e3}, "Added to the root of the second moment");
  phase.number("weight_decay", &PhaseConfig::weight_decay, {0, 1e3},
               "Pull of the weights towards 0; decoupled in radam and adamw");
  phase.add("nesterov", &PhaseConfig::nesterov, "sgd: look ahead along the momentum");
  phase.number("clip_norm", &PhaseConfig::clip_norm, {0, 1e9}, "Largest norm of the gradient; 0: any");
  phase.choice("decay", &PhaseConfig::decay, {"constant", "steps", "cosine", "linear"}, "How the learning rate falls");
  phase.number("warmup_epochs", &PhaseConfig::warmup_epochs, {0, kCount}, "Epochs over which the rate rises from 0");
  phase.number("decay_start", &PhaseConfig::decay_start, {0, 1}, "cosine, linear: share of the phase before it falls");
  phase.number("final_rate", &PhaseConfig::final_rate, {0, 1e3}, "cosine, linear: where the rate ends");
  phase.number("drops", &PhaseConfig::drops, {0, kCount}, "steps: epochs of the phase after which the rate falls");
  phase.number("drop_factor", &PhaseConfig::drop_factor, {1e-9, 1}, "steps: by this factor");
  phase.add("reload_best_at_drop", &PhaseConfig::reload_best_at_drop, "steps: go on from the best weights so far");
}

void add_evaluation(Table& table) {
  auto evaluation = table.part("evaluation", &TrainingConfig::evaluation);
  evaluation.choice("on", &EvaluationConfig::on, {"held_out", "test", "none"},
                    "Classes to evaluate on: training classes that are left out, or the test classes");
  evaluation.number("held_out", &EvaluationConfig::held_out, {0.001, 0.9},
                    "Share of the training classes that held_out leaves out");
  evaluation.number("every", &EvaluationConfig::every, {0, kCount},
                    "Epochs from one evaluation to the next; 0: at the end only");
  evaluation.choice("metric", &EvaluationConfig::metric, {"R@1", "mAP"}, "What best.gle is best at");
  evaluation.number("ks", &EvaluationConfig::ks, {1, 1e6}, "The K of Recall@K; those beyond the gallery are left out");
  evaluation.number("patience", &EvaluationConfig::patience, {0, kCount},
                    "Evaluations without a better one that end the phase; 0: any");
  evaluation.number("batch", &EvaluationConfig::batch, {1, 1e6}, "Pictures at a time in evaluations");
  evaluation.number("train_images", &EvaluationConfig::train_images, {0, kCount},
                    "Training pictures, whole classes, to evaluate on as well, for comparison; 0: none");
  evaluation.number("average", &EvaluationConfig::average, {0, 0.999999},
                    "Share that a moving average of the weights keeps each step; evaluated and kept as the best "
                    "instead of the weights; 0: none");
}

void add_distributed(Table& table) {
  auto distributed = table.part("distributed", &TrainingConfig::distributed);
  distributed.add("sync_batch_norm", &DistributedConfig::sync_batch_norm,
                  "Several ranks: batch-norm over the whole batch, else over what each rank has of it");
  may_change(distributed.number("bucket_kb", &DistributedConfig::bucket_kb, {1, kCount},
                                "Several ranks: KiB of gradients that are added up at once, beside backward"));
  may_change(distributed.add("shard_optimiser", &DistributedConfig::shard_optimiser,
                             "Several ranks: each keeps the moments of a part of the weights, and steps these"));
  may_change(distributed.number("timeout", &DistributedConfig::timeout, {2, 86400},
                                "Several ranks: seconds of silence after which one counts as dead and ends the run"));
}

}  // namespace

const std::vector<ConfigKey>& config_keys() {
  static const std::vector<ConfigKey> kKeys = [] {
    Table table;
    add_run(table);
    add_data(table);
    add_input(table);
    add_network(table);
    add_losses(table);
    add_phase(table, "phase1", &TrainingConfig::phase1);
    add_phase(table, "phase2", &TrainingConfig::phase2);
    add_evaluation(table);
    add_distributed(table);
    return std::move(table.keys);
  }();
  return kKeys;
}

std::string environment_name(const ConfigKey& key) {
  std::string name = "GLE_";
  for (const char c : key.name) {
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace gle
