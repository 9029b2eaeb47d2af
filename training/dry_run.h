#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/loader.h"
#include "engine/backend.h"
#include "training/checkpoint.h"
#include "training/config.h"

namespace gle {

struct PhaseForecast {
  int64_t phase = 0;
  int64_t batch = 0;  // pictures of a step
  int64_t epoch_steps = 0;
  int64_t steps = 0;
  size_t planned_bytes = 0;                // of the backend's memory at the worst moment, by a run without kernels
  size_t measured_bytes = 0;               // the same by the trial steps
  double step_seconds = 0;                 // of the trial steps, loading included
  std::vector<std::string> small_classes;  // that repeat their pictures
};

struct Forecast {
  int64_t train_images = 0;
  int32_t train_classes = 0;
  int64_t queries = 0;
  int64_t gallery = 0;
  int64_t parameters = 0;
  std::vector<PhaseForecast> phases;
};

// Throws what a run would throw before its first step, without memory and without a folder: keys that contradict each
// other, a batch that the ranks cannot divide, data that make no step, a network that there is not, an input that it
// does not take, a file of weights that cannot be read or does not fit. `from`: the checkpoint that it goes on from, if
// there is one; the file of weights is not needed then.
void require_trainable(const TrainingConfig& config, const data::Dataset& data, int ranks = 1,
                       const Checkpoint* from = nullptr);

// What a run would take: plans every phase, then trains `trial_steps` of each on its own data after one to warm up, and
// keeps nothing.
Forecast forecast(Backend& backend, const TrainingConfig& config, const std::shared_ptr<const data::Dataset>& data,
                  int trial_steps = 3);

// The bytes that a phase's steps take of the backend's memory, if batches come as `pixels`. ErrorCode::memory if they
// do not fit in `limit`.
size_t planned_bytes(const TrainingConfig& config, const PhaseConfig& phase, int64_t classes,
                     data::Pixels pixels = data::Pixels::floats, size_t limit = CachingAllocator::kNoLimit);

// The largest of the phases' planned bytes. ErrorCode::memory if that is more than `limit`, and a batch that would fit.
size_t require_memory(const TrainingConfig& config, int64_t classes, data::Pixels pixels, size_t limit);

}  // namespace gle
