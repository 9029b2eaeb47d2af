#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "models/files/checkpoint_file.h"
#include "models/model_file.h"
#include "training/learner.h"

namespace gle {

// Where a run stands, between two steps.
struct Position {
  int64_t phase = 0;
  int64_t epoch = 0;  // from the beginning of the run, as are step and batches
  int64_t step = 0;
  int64_t batches = 0;
  int64_t epoch_of_phase = 0;
  int64_t step_of_phase = 0;
  int64_t batch_of_epoch = 0;   // the next one
  bool evaluation_due = false;  // the epoch is over and its evaluation is not
  double best = -1;             // of the evaluations so far, and the step it was at
  int64_t best_step = -1;
  int64_t since_best = 0;  // evaluations
  int64_t skipped = 0;     // steps that were not finite
  bool done = false;

  bool operator==(const Position&) const = default;
};

// Everything that a run needs to go on as if nothing had happened.
struct RunState {
  Position position;
  std::vector<float> class_distances;  // of the hard-class sampler; else empty
  std::string data;                    // what it learns from, by summary_of(); empty: unknown
};

// Writes the file as a whole or not at all. Throws ErrorCode::not_finite instead of keeping weights that are not.
// `moments` is the whole state of the learner's optimiser.
void save_checkpoint(const std::filesystem::path& path, Learner& learner, const std::vector<Optimiser::State>& moments,
                     const InputDescription& input, const std::string& config, const RunState& state);

// A checkpoint in memory, checked in every byte. Throws ErrorCode::weights for anything wrong with it.
class Checkpoint {
 public:
  explicit Checkpoint(const std::filesystem::path& path) : Checkpoint(CheckpointFile(path)) {}
  explicit Checkpoint(CheckpointFile file);

  const std::filesystem::path& path() const { return file_.path(); }
  const RunState& state() const { return state_; }
  std::string config() const;
  const CheckpointFile& file() const { return file_; }

  // All of it: weights, running statistics, moments. Throws ErrorCode::weights if it is of another network.
  void restore(Learner& learner) const;
  // The weights and running statistics alone.
  void restore_weights(Learner& learner) const;

 private:
  CheckpointFile file_;
  RunState state_;
};

// "epoch=007-step=001234.gle"
std::string checkpoint_name(const Position& position);
// Those in a folder, the newest first.
struct CheckpointEntry {
  int64_t step = 0;
  std::filesystem::path path;
};
std::vector<CheckpointEntry> checkpoints_in(const std::filesystem::path& folder);

}  // namespace gle
