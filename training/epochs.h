#pragma once

#include <memory>

#include "data/loader.h"
#include "training/checkpoint.h"
#include "training/config.h"
#include "training/evaluation.h"

namespace gle {

// The data of a run, and how a config cuts it into batches, epochs and phases.

// What the data set's reader gives, with classes held out if the config says so.
std::shared_ptr<const data::Dataset> training_data(const TrainingConfig& config);
// Numbers for the reader, and a checksum of the classes' names and sizes.
std::string summary_of(const data::Dataset& data);
// Throws ErrorCode::data if the checkpoint's run has learned from other data.
void require_same_data(const Checkpoint& from, const data::Dataset& data);

data::DecodeOptions decode_options(const TrainingConfig& config);
// A rank's loader has its part of every batch. `bad_list`: of the run; null: the loader's own.
data::LoaderOptions loader_options(const TrainingConfig& config, const PhaseConfig& phase,
                                   std::shared_ptr<data::BadImageList> bad_list = nullptr, const Comm* comm = nullptr);
// Without a list, images that cannot be read are an error, whatever the config says.
EvaluationOptions evaluation_options(const TrainingConfig& config, int threads, Comm* comm = nullptr,
                                     std::shared_ptr<data::BadImageList> bad_list = nullptr);

data::ClassBatch class_batch(const PhaseConfig& phase);
// The batches of an epoch; for the hard-class sampler those of plain classes, until distances are known.
data::EpochPlan plan_plainly(const TrainingConfig& config, const PhaseConfig& phase, const data::Dataset& data,
                             const data::ClassMembers& members, uint64_t epoch);

struct PhaseLength {
  int64_t epoch_steps = 0;
  int64_t steps = 0;
};
// Throws ErrorCode::data if the data do not make a single step.
PhaseLength length_of(const TrainingConfig& config, int64_t phase, const data::Dataset& data,
                      const data::ClassMembers& members);

}  // namespace gle
