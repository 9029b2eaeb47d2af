#pragma once

#include "data/transform.h"
#include "losses/registry.h"
#include "models/model_file.h"
#include "models/network.h"
#include "training/config.h"
#include "training/optimiser.h"
#include "training/schedule.h"

namespace gle {

// What a config means to the parts of the engine. All throw ErrorCode::usage for keys that contradict each other.
InputDescription input_description(const TrainingConfig& config);
data::TransformOptions test_transform(const TrainingConfig& config);
data::TransformOptions train_transform(const TrainingConfig& config, const PhaseConfig& phase);
NetworkOptions network_options(const TrainingConfig& config, int64_t classes);
// Of each loss alone, without cross-entropy beside it.
LossSettings loss_settings(const TrainingConfig& config);
// Of cross-entropy beside the phase's own loss.
float cross_entropy_weight(const TrainingConfig& config, const PhaseConfig& phase);
OptimiserOptions optimiser_options(const TrainingConfig& config, const PhaseConfig& phase);
// Of a phase of `total_steps`; epochs have `epoch_steps`.
Schedule schedule_of(const PhaseConfig& phase, int64_t epoch_steps, int64_t total_steps);

// The phases in their order, those without epochs and steps included.
inline constexpr int kPhases = 2;
const PhaseConfig& phase_of(const TrainingConfig& config, int64_t phase);
bool is_empty(const PhaseConfig& phase);
// Pictures of one batch.
int64_t batch_size(const PhaseConfig& phase);
// Whether the Group Loss would have no picture left to learn from.
bool has_anchors_alone(const TrainingConfig& config, const PhaseConfig& phase);

// Throws unless all of the above hold together.
void check(const TrainingConfig& config);
// Throws ErrorCode::usage if the ranks cannot have equal parts of every batch.
void check_division(const TrainingConfig& config, int ranks);

}  // namespace gle
