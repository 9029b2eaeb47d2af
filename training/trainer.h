#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "data/loader.h"
#include "data/quarantine.h"
#include "training/batch_feed.h"
#include "training/checkpoint.h"
#include "training/config.h"
#include "training/evaluation.h"
#include "training/event_file.h"
#include "training/learner.h"
#include "training/metrics_log.h"
#include "training/run_folder.h"
#include "training/schedule.h"
#include "training/slow_rank.h"

namespace gle {

struct StepReport {
  Position position;
  int64_t total_steps = 0;  // of the run, as far as is known
  int64_t images = 0;       // of this step
  float learning_rate = 0;
  double loading_seconds = 0;  // that it waited for its batches
  StepResult result;
};

struct EvaluationReport {
  Position position;
  RankingMetrics metrics;
  bool best = false;
};

struct TrainerOptions {
  int threads = 0;
  // The ranks of the run, each with a trainer of the same config and data; null: one process. Requests of any rank are
  // answered by all.
  Comm* comm = nullptr;
  // Asked between steps: to write a checkpoint and leave; to write one and go on (each true is one request).
  std::function<bool()> stop = {};
  std::function<bool()> checkpoint = {};
  std::function<void(const StepReport&)> on_step = {};
  std::function<void(const EvaluationReport&)> on_evaluation = {};
  std::function<void(const std::string&)> warn = {};
};

struct Outcome {
  Position position;
  std::optional<RankingMetrics> last;  // of the last evaluation in this process
  bool stopped = false;                // by request; a checkpoint is written
};

// Runs the phases of a config in a run folder, from the beginning or from a checkpoint. What it computes is a function
// of config, data and the starting weights: not of threads, workers, or where it was interrupted.
class Trainer {
 public:
  // `folder`: null for all ranks but the first, which alone reads and writes it.
  Trainer(Backend& backend, const TrainingConfig& config, std::shared_ptr<const data::Dataset> data,
          const RunFolder* folder, const TrainerOptions& options);
  ~Trainer();

  // Throws ErrorCode::weights if the checkpoint is of another network, ErrorCode::data if it is of other data.
  void resume(const Checkpoint& checkpoint);
  Outcome run();

  Learner& learner() { return learner_; }
  const Position& position() const { return state_.position; }

 private:
  struct Phase;
  // A run goes on without a checkpoint on the way, if its config says so, but never ends without one.
  enum class Saving { on_the_way, at_the_end };
  // Batches that have been taken for one step.
  using Batches = std::vector<data::Batch>;

  void start_weights();
  Phase plan_phase() const;
  data::EpochPlan plan_epoch(const Phase& phase) const;
  bool is_last_phase() const;
  bool ends_run(const Phase& phase) const;
  bool is_over(const Phase& phase) const;
  bool run_phase();
  bool run_epoch(const Phase& phase);
  void end_epoch(const Phase& phase);
  bool ends_epoch(const Phase& phase, int64_t ahead) const;
  bool take_batches(BatchFeed& feed, Batches& batches);
  void one_step(const Phase& phase, const Batches& batches, BatchFeed& feed);
  void handle_not_finite(const Batches& batches, const StepResult& result);
  void log_step(const Phase& phase, const StepReport& report);
  bool evaluate(const Phase& phase);
  bool prepare_epoch(const Phase& phase);
  void reload_best();
  bool refresh_distances();
  bool reestimate(const Phase& phase);
  void save(Saving when);
  void write_checkpoint(const std::vector<Optimiser::State>& moments, Saving when);
  void warn_of_bad_images();
  // Answers requests; true: stop now.
  bool interrupted();
  bool stop_requested() const;

  Backend& backend_;
  const TrainingConfig config_;
  std::shared_ptr<const data::Dataset> data_;
  const RunFolder* folder_;
  TrainerOptions options_;
  Comm* comm_;  // null: one process
  data::ClassMembers members_;
  std::shared_ptr<data::BadImageList> bad_list_;  // of all loaders
  std::unique_ptr<data::Loader> loader_;  // of the phase; what the learner still holds after an error is its memory
  std::optional<SlowRank> slow_rank_;
  Learner learner_;
  Evaluator evaluator_;
  std::vector<uint32_t> train_sample_;  // evaluated for comparison
  RunState state_;
  bool resumed_ = false;
  bool config_changed_ = false;  // from that of the checkpoint it resumed from
  std::unique_ptr<MetricsLog> log_;
  std::unique_ptr<EventFile> events_;
  std::optional<RankingMetrics> last_;
  double loading_seconds_ = 0;   // of the step under way
  std::set<uint32_t> bad_told_;  // bad images that were told
};

}  // namespace gle
