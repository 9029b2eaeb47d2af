#include "training/epochs.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "data/hold_out.h"
#include "engine/error.h"
#include "models/files/crc32c.h"
#include "training/recipe.h"

namespace gle {

namespace {

void check_queries(const TrainingConfig& config, data::Dataset& data) {
  const int64_t queries = std::ssize(data.query_items());
  if (queries == 0) {
    fail(ErrorCode::data, config.data.path, ": there are no test images; evaluation.on = \"held_out\" or \"none\"");
  }
  const int64_t without = queries_without_match(data);
  if (without == queries) {
    fail(ErrorCode::data, config.data.path, ": none of the ", queries,
         " queries has a match in the gallery, which leaves nothing to measure; evaluation.on = \"none\"");
  }
  if (without > 0) {
    data.warnings.push_back(std::to_string(without) + " of " + std::to_string(queries) +
                            " queries have no match in the gallery; evaluations leave them out");
  }
}

}  // namespace

std::shared_ptr<const data::Dataset> training_data(const TrainingConfig& config) {
  data::DatasetOptions options{
      .dataset = config.data.dataset,
      .outside = config.data.allow_outside_root ? data::Outside::allow : data::Outside::refuse};
  if (!config.data.train_classes.empty()) {
    options.train_classes = data::parse_class_range(config.data.train_classes);
    if (!options.train_classes) {
      fail(ErrorCode::usage, "data.train_classes is '", config.data.train_classes,
           "'; expected A:B with A below B, such as 0:100");
    }
  }
  data::Dataset data = data::load_dataset(config.data.path, options);
  if (data.train_classes < 2) {
    fail(ErrorCode::data, config.data.path, ": ", data.train_classes, " classes to train on; at least 2 are needed");
  }
  if (config.evaluation.on == "held_out") {
    data = data::hold_out(data, config.evaluation.held_out, static_cast<uint64_t>(config.run.seed));
  }
  if (config.evaluation.on != "none") {
    check_queries(config, data);
  }
  return std::make_shared<const data::Dataset>(std::move(data));
}

std::string summary_of(const data::Dataset& data) {
  std::vector<std::array<int64_t, 3>> of_class(data.class_names.size());
  for (const data::Item& item : data.items) {
    if (item.label >= 0) {
      std::array<int64_t, 3>& counts = of_class[static_cast<size_t>(item.label)];
      counts[0] += item.train ? 1 : 0;
      counts[1] += item.query ? 1 : 0;
      counts[2] += item.gallery ? 1 : 0;
    }
  }
  std::string classes;
  for (size_t c = 0; c < of_class.size(); ++c) {
    classes += data.class_names[c];
    for (const int64_t count : of_class[c]) {
      classes += ' ' + std::to_string(count);
    }
    classes += '\n';
  }
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, "%08x", crc32c(std::as_bytes(std::span(classes))));
  return std::to_string(data.train_items().size()) + " pictures of " + std::to_string(data.train_classes) +
         " classes, " + std::to_string(data.query_items().size()) + " queries, " +
         std::to_string(data.gallery_items().size()) + " in the gallery (classes " + checksum + ")";
}

void require_same_data(const Checkpoint& from, const data::Dataset& data) {
  const std::string& before = from.state().data;
  const std::string now = summary_of(data);
  if (!before.empty() && before != now) {
    fail(ErrorCode::data, from.path().string(), ": the run has ", before, ", and data.path names ", now,
         "; a resumed run keeps its data. Begin a new run with network.weights to change them");
  }
}

data::DecodeOptions decode_options(const TrainingConfig& config) {
  return {.exif = config.data.exif ? data::Exif::rotate : data::Exif::ignore};
}

EvaluationOptions evaluation_options(const TrainingConfig& config, int threads, Comm* comm,
                                     std::shared_ptr<data::BadImageList> bad_list) {
  EvaluationOptions options{.transform = test_transform(config),
                            .decode = decode_options(config),
                            .batch = config.evaluation.batch,
                            .workers = static_cast<int>(config.data.workers),
                            .threads = threads,
                            .ks = {1},
                            .comm = comm,
                            .bad_list = config.data.on_bad == "quarantine" ? std::move(bad_list) : nullptr};
  for (const double k : config.evaluation.ks) {
    if (k > 1) {
      options.ks.push_back(std::llround(k));
    }
  }
  return options;
}

data::LoaderOptions loader_options(const TrainingConfig& config, const PhaseConfig& phase,
                                   std::shared_ptr<data::BadImageList> bad_list, const Comm* comm) {
  return {.transform = train_transform(config, phase),
          .decode = decode_options(config),
          .seed = static_cast<uint64_t>(config.run.seed),
          .workers = static_cast<int>(config.data.workers),
          .prefetch = static_cast<int>(config.data.prefetch),
          .part = comm ? comm->rank() : 0,
          .parts = comm ? comm->size() : 1,
          .on_bad = config.data.on_bad == "error" ? data::OnBad::error : data::OnBad::quarantine,
          .max_bad = config.data.max_bad,
          .bad_list = std::move(bad_list),
          .cache_bytes = static_cast<size_t>(config.data.cache_mb) << 20U};
}

data::ClassBatch class_batch(const PhaseConfig& phase) {
  return {static_cast<int>(phase.classes), static_cast<int>(phase.samples)};
}

data::EpochPlan plan_plainly(const TrainingConfig& config, const PhaseConfig& phase, const data::Dataset& data,
                             const data::ClassMembers& members, uint64_t epoch) {
  const auto seed = static_cast<uint64_t>(config.run.seed);
  if (phase.sampler == "shuffled") {
    return data::plan_shuffled(data.train_items(), static_cast<int>(phase.batch), data::LastBatch::drop, seed, epoch);
  }
  return phase.sampler == "chunks" ? data::plan_chunks(members, class_batch(phase), seed, epoch)
                                   : data::plan_classes(members, class_batch(phase), seed, epoch);
}

PhaseLength length_of(const TrainingConfig& config, int64_t phase, const data::Dataset& data,
                      const data::ClassMembers& members) {
  const PhaseConfig& of = phase_of(config, phase);
  const int64_t batches = of.sampler == "hard" ? data::hard_batches(members, class_batch(of))
                                               : plan_plainly(config, of, data, members, 0).batches();
  const int64_t epoch_steps = batches / of.accumulate;
  if (epoch_steps == 0) {
    fail(ErrorCode::data, "phase ", phase + 1, ": the ", data.train_items().size(), " training images of ",
         data.train_classes, " classes make ", batches, " batches of ", batch_size(of), "; a step takes ",
         of.accumulate);
  }
  return {epoch_steps, of.steps > 0 ? of.steps : of.epochs * epoch_steps};
}

}  // namespace gle
