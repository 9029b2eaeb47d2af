#include "training/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "engine/error.h"
#include "training/epochs.h"
#include "training/rank_texts.h"
#include "training/recipe.h"

namespace gle {

// A phase and what its length comes to.
struct Trainer::Phase {
  const PhaseConfig& config;
  int64_t epoch_steps;
  int64_t steps;
  Schedule schedule;
};

Trainer::Trainer(Backend& backend, const TrainingConfig& config, std::shared_ptr<const data::Dataset> data,
                 const RunFolder* folder, const TrainerOptions& options)
    : backend_(backend),
      config_(config),
      data_(std::move(data)),
      folder_(folder),
      options_(options),
      comm_(options.comm && options.comm->size() > 1 ? options.comm : nullptr),
      members_(data::train_members(*data_)),
      bad_list_(std::make_shared<data::BadImageList>(
          *data_, config_.data.max_bad, folder_ ? folder_->path() / "bad_images.csv" : std::filesystem::path())),
      learner_(backend, config_, data_->train_classes, comm_),
      evaluator_(backend, data_, evaluation_options(config_, options.threads, comm_, bad_list_)) {
  check(config_);
  invariant((folder_ != nullptr) == (!comm_ || comm_->rank() == 0), "the first rank has the folder of the run");
  if (comm_) {
    check_division(config_, comm_->size());
    slow_rank_.emplace(*comm_);
  }
  if (config_.evaluation.train_images > 0) {
    train_sample_ = training_sample(members_, config_.evaluation.train_images, static_cast<uint64_t>(config_.run.seed));
  }
  state_.data = summary_of(*data_);
}

Trainer::~Trainer() = default;

void Trainer::start_weights() {
  learner_.network().initialise(backend_, static_cast<uint64_t>(config_.run.seed));
  if (!config_.network.weights.empty() && folder_) {
    const LoadReport report = load_weights(backend_, learner_.network(), read_weights(config_.network.weights),
                                           config_.network.strict ? Strictness::strict : Strictness::lenient);
    if (options_.warn && !(report.complete() && report.skipped.empty())) {
      options_.warn(config_.network.weights + ": " + report.text());
    }
  }
  learner_.broadcast_weights();
  learner_.optimiser().restart(optimiser_options(config_, config_.phase1), false);
  learner_.optimiser().begin_average();
}

void Trainer::resume(const Checkpoint& checkpoint) {
  require_same_data(checkpoint, *data_);
  state_ = checkpoint.state();
  state_.data = summary_of(*data_);
  learner_.begin_phase(phase_of(config_, state_.position.phase), Learner::Moments::reset);
  checkpoint.restore(learner_);
  if (folder_) {
    folder_->mend_names(state_.position);
    bad_list_->read_back(decode_options(config_));
  }
  resumed_ = true;
  // The lengths may have changed since it was.
  state_.position.done = state_.position.done && is_last_phase() && is_over(plan_phase());
  config_changed_ = checkpoint.config() != toml_of(config_, Comments::none);
}

Outcome Trainer::run() {
  Position& at = state_.position;
  if (!resumed_) {
    start_weights();
  }
  if (folder_) {
    log_ = std::make_unique<MetricsLog>(folder_->path() / "metrics.jsonl", at.step, !at.evaluation_due);
    events_ = std::make_unique<EventFile>(folder_->path(), at.step + 1);
  }
  if (at.done) {
    if (at.step_of_phase < plan_phase().steps && folder_ && options_.warn) {
      options_.warn("evaluation.patience ended this run at step " + std::to_string(at.step) + "; it does not go on");
    }
    return {at, last_, false};
  }
  if (config_changed_) {
    save(Saving::on_the_way);  // so that the next resumption knows
  }
  while (!at.done) {
    if (!run_phase()) {
      save(Saving::at_the_end);
      return {at, last_, true};
    }
    at.done = is_last_phase();
    if (!at.done) {
      ++at.phase;
      at.epoch_of_phase = at.step_of_phase = at.since_best = 0;
    }
  }
  save(Saving::at_the_end);
  return {at, last_, false};
}

Trainer::Phase Trainer::plan_phase() const {
  const PhaseConfig& config = phase_of(config_, state_.position.phase);
  if (is_empty(config)) {
    return {config, 0, 0, {}};
  }
  const PhaseLength length = length_of(config_, state_.position.phase, *data_, members_);
  return {config, length.epoch_steps, length.steps, schedule_of(config, length.epoch_steps, length.steps)};
}

data::EpochPlan Trainer::plan_epoch(const Phase& phase) const {
  const Position& at = state_.position;
  const auto epoch = static_cast<uint64_t>(at.epoch);
  if (phase.config.sampler != "hard") {
    return plan_plainly(config_, phase.config, *data_, members_, epoch);
  }
  const int64_t epochs = (phase.steps + phase.epoch_steps - 1) / phase.epoch_steps;
  const double share = data::hard_class_share(static_cast<uint64_t>(at.epoch_of_phase), static_cast<uint64_t>(epochs));
  return data::plan_hard_classes(members_, class_batch(phase.config), state_.class_distances, share,
                                 static_cast<uint64_t>(config_.run.seed), epoch);
}

bool Trainer::run_phase() {
  Position& at = state_.position;
  const Phase phase = plan_phase();
  // Where it was made shorter since.
  if (at.batch_of_epoch > 0 && at.step_of_phase >= phase.steps) {
    end_epoch(phase);
  } else if (config_changed_ && ends_run(phase)) {
    at.evaluation_due = config_.evaluation.on != "none";
  }
  if (is_empty(phase.config) && !at.evaluation_due) {
    return true;
  }
  const bool begins = at.step_of_phase == 0 && at.batch_of_epoch == 0 && !at.evaluation_due;
  const bool fresh = begins && (at.phase == 0 || is_empty(config_.phase1) || phase.config.fresh_optimiser);
  learner_.begin_phase(phase.config, fresh ? Learner::Moments::reset : Learner::Moments::keep);
  data::LoaderOptions options = loader_options(config_, phase.config, bad_list_, comm_);
  options.pixels = pixels_for(backend_);
  loader_ = std::make_unique<data::Loader>(data_, options);
  while (!is_over(phase)) {
    if (!(at.evaluation_due ? evaluate(phase) : run_epoch(phase))) {
      return false;
    }
  }
  return true;
}

bool Trainer::is_last_phase() const { return state_.position.phase + 1 == kPhases || is_empty(config_.phase2); }

bool Trainer::ends_run(const Phase& phase) const {
  return is_last_phase() && state_.position.step_of_phase >= phase.steps;
}

bool Trainer::is_over(const Phase& phase) const {
  const Position& at = state_.position;
  const bool hopeless = config_.evaluation.patience > 0 && at.since_best >= config_.evaluation.patience;
  return !at.evaluation_due && (at.step_of_phase >= phase.steps || hopeless);
}

// Whether the epoch or the phase is over `ahead` steps from here.
bool Trainer::ends_epoch(const Phase& phase, int64_t ahead) const {
  const Position& at = state_.position;
  return at.batch_of_epoch / phase.config.accumulate + ahead >= phase.epoch_steps ||
         at.step_of_phase + ahead >= phase.steps;
}

bool Trainer::run_epoch(const Phase& phase) {
  Position& at = state_.position;
  if (at.batch_of_epoch == 0 && !prepare_epoch(phase)) {
    return false;
  }
  loader_->start(plan_epoch(phase), static_cast<uint64_t>(at.epoch), at.batch_of_epoch);
  BatchFeed feed(backend_, *loader_, phase.config.accumulate);
  Batches batches;
  while (at.step_of_phase < phase.steps && take_batches(feed, batches)) {
    one_step(phase, batches, feed);
    if (ends_epoch(phase, 0)) {
      break;
    }
    if (interrupted()) {
      return false;
    }
    if (config_.run.checkpoint_steps > 0 && at.step % config_.run.checkpoint_steps == 0) {
      save(Saving::on_the_way);
    }
  }
  warn_of_bad_images();
  end_epoch(phase);
  if (interrupted()) {
    return false;
  }
  // Before an evaluation too: it may find what ends the run.
  const int64_t epochs = config_.run.checkpoint_epochs;
  if (at.evaluation_due ? epochs > 0 || ends_run(phase) : epochs > 0 && at.epoch % epochs == 0) {
    save(Saving::on_the_way);
  }
  return true;
}

void Trainer::end_epoch(const Phase& phase) {
  Position& at = state_.position;
  ++at.epoch;
  ++at.epoch_of_phase;
  at.batch_of_epoch = 0;
  const int64_t every = config_.evaluation.every;
  at.evaluation_due =
      config_.evaluation.on != "none" && (ends_run(phase) || (every > 0 && at.epoch_of_phase % every == 0));
}

bool Trainer::take_batches(BatchFeed& feed, Batches& batches) {
  const auto start = std::chrono::steady_clock::now();
  const bool more = feed.next(batches);
  loading_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return more;
}

void Trainer::one_step(const Phase& phase, const Batches& batches, BatchFeed& feed) {
  Position& at = state_.position;
  StepReport report;
  const auto add_batches = [&] {
    for (size_t i = 0; i < batches.size(); ++i) {
      learner_.add(batches[i], batches[i].all_labels, static_cast<uint64_t>(at.batches) + i, phase.config.accumulate);
    }
  };
  if (comm_) {
    add_batches();  // a collective cannot be held back
  } else {
    backend_.run_step(at.phase, add_batches);
  }
  for (const data::Batch& batch : batches) {
    report.images += static_cast<int64_t>(batch.all_labels.size());
  }
  if (!ends_epoch(phase, 1)) {
    feed.look_ahead();
  }
  report.result = learner_.measure();
  report.learning_rate = learning_rate(phase.schedule, at.step_of_phase);
  if (report.result.finite()) {
    learner_.step(report.learning_rate);
  } else {
    handle_not_finite(batches, report.result);
  }
  ++at.step;
  ++at.step_of_phase;
  at.batch_of_epoch += static_cast<int64_t>(batches.size());
  at.batches += static_cast<int64_t>(batches.size());
  report.position = at;
  report.loading_seconds = loading_seconds_;
  report.total_steps = at.step - at.step_of_phase + phase.steps;
  log_step(phase, report);
  if (slow_rank_) {
    const std::string slow = slow_rank_->after_step(at.epoch);
    if (!slow.empty() && folder_ && options_.warn) {
      options_.warn(slow);
    }
  }
}

void Trainer::log_step(const Phase& phase, const StepReport& report) {
  const Position& at = report.position;
  if (options_.on_step) {
    options_.on_step(report);
  }
  if (!log_ || (at.step % config_.run.log_every != 0 && at.step_of_phase != 1)) {
    return;
  }
  std::vector<std::pair<std::string, double>> numbers = {{"phase", static_cast<double>(at.phase + 1)},
                                                         {"epoch", static_cast<double>(at.epoch)},
                                                         {"loss", report.result.loss}};
  if (const auto& terms = report.result.terms) {
    numbers.emplace_back(phase.config.loss, terms->own);
    numbers.emplace_back("cross_entropy", terms->cross_entropy);
  }
  numbers.emplace_back("gradient_norm", report.result.gradient_norm);
  numbers.emplace_back("learning_rate", report.learning_rate);
  log_->add(at.step, LogKind::training, numbers);
  events_->add(at.step, numbers);
}

void Trainer::handle_not_finite(const Batches& batches, const StepResult& result) {
  Position& at = state_.position;
  std::string first;
  std::vector<std::string> files;
  for (size_t i = 0; i < batches.size(); ++i) {
    if (first.empty()) {
      first = learner_.first_not_finite(batches[i], batches[i].all_labels, static_cast<uint64_t>(at.batches) + i);
    }
    for (const uint32_t item : batches[i].items) {
      files.push_back(data_->name_of(data_->items[item]));
    }
  }
  if (comm_) {
    first = first_said(*comm_, first);
    files = all_lines(*comm_, files);
  }
  const std::string folder = "nonfinite/step_" + std::to_string(at.step + 1);
  std::string what = "step " + std::to_string(at.step + 1) + ": the " +
                     (std::isfinite(result.loss) ? "gradient" : "loss") +
                     " is not finite; first: " + (first.empty() ? "nothing in a second run of the batch" : first);
  if (folder_) {
    std::string list;
    std::string shown;
    for (size_t i = 0; i < files.size(); ++i) {
      list += (i == 0 ? "" : ",\n    ") + json_text(files[i]);
      shown += i < 3 ? (i == 0 ? "" : ", ") + files[i] : std::string();
    }
    std::filesystem::create_directories(folder_->path() / folder);
    folder_->write_text(folder + "/batch.json",
                        "{\n  \"step\": " + std::to_string(at.step + 1) + ",\n  \"loss\": " + json_number(result.loss) +
                            ",\n  \"first\": " + json_text(first) + ",\n  \"files\": [\n    " + list + "\n  ]\n}\n");
    what += "; the batch: " + shown + " ... (all in " + (folder_->path() / folder / "batch.json").string() + ")";
  }
  if (config_.run.on_nonfinite == "stop" || at.skipped >= config_.run.nonfinite_budget) {
    fail(ErrorCode::not_finite, what,
         at.skipped > 0 ? "; the budget of " + std::to_string(config_.run.nonfinite_budget) + " skipped steps is spent"
                        : "; a lower learning rate or clip_norm may help");
  }
  ++at.skipped;
  learner_.skip();
  if (folder_ && options_.warn) {
    options_.warn(what + "; the step is left out");
  }
}

bool Trainer::prepare_epoch(const Phase& phase) {
  const Position& at = state_.position;
  const std::vector<double>& drops = phase.config.drops;
  const bool drop = std::count(drops.begin(), drops.end(), static_cast<double>(at.epoch_of_phase)) > 0;
  if (drop && phase.config.reload_best_at_drop && at.best_step >= 0) {
    reload_best();
  }
  if (phase.config.sampler == "hard" && at.epoch_of_phase % phase.config.hard_refresh == 0) {
    return refresh_distances();
  }
  return true;
}

void Trainer::reload_best() {
  const Position& at = state_.position;
  std::unique_ptr<Checkpoint> best = folder_ ? folder_->checkpoint_of(at.best_step) : nullptr;
  if (comm_) {
    best = checkpoint_for_all(*comm_, std::move(best));
  }
  if (best) {
    best->restore_weights(learner_);
    learner_.optimiser().begin_average();
  } else if (folder_ && options_.warn) {
    options_.warn(folder_->checkpoints().string() + " has no whole checkpoint of step " + std::to_string(at.best_step) +
                  ", the best one; the run goes on from the weights of step " + std::to_string(at.step));
  }
}

bool Trainer::refresh_distances() {
  const auto embedded = evaluator_.embed(learner_.network(), data_->train_items(), [this] { return stop_requested(); });
  if (!embedded) {
    return false;
  }
  state_.class_distances =
      data::class_distances(embedded->values, embedded->dimensions, embedded->labels, data_->train_classes);
  return true;
}

bool Trainer::reestimate(const Phase& phase) {
  data::LoaderOptions options = loader_options(config_, phase.config, bad_list_, comm_);
  options.pixels = pixels_for(backend_);
  data::Loader loader(data_, options);
  // Of a number that no training epoch has, so that the pictures are none that were just trained on.
  constexpr uint64_t kEpoch = 0xFFFFFFFF;
  loader.start(plan_plainly(config_, phase.config, *data_, members_, kEpoch), kEpoch);
  data::Batch batch;
  for (int64_t i = 0; i < config_.network.reestimate_batches && loader.next(batch); ++i) {
    if (!comm_ && stop_requested()) {
      return false;
    }
    learner_.move_statistics(batch, 1.0F / static_cast<float>(i + 1));
  }
  return true;
}

bool Trainer::evaluate(const Phase& phase) {
  if (slow_rank_) {
    slow_rank_->leave_out_step();
  }
  Position& at = state_.position;
  const auto stop = [this] { return stop_requested(); };
  std::optional<RankingMetrics> metrics;
  std::optional<RankingMetrics> on_training;
  {
    const AveragedWeights averaged(learner_.optimiser());
    if (config_.network.batch_norm == "reestimated" && !reestimate(phase)) {
      return false;
    }
    learner_.agree_on_statistics();
    try {
      metrics = evaluator_.run(learner_.network(), stop);
      if (metrics && !train_sample_.empty()) {
        on_training = evaluator_.rank(learner_.network(), train_sample_, train_sample_, stop);
      }
    } catch (const Error& e) {
      if (e.code() != ErrorCode::not_finite) {
        throw;
      }
      fail(e.code(), "evaluation after step ", at.step, ": ", e.what(),
           ": the training has diverged. A lower learning rate or clip_norm may help; --resume with a checkpoint of an "
           "earlier step goes back to it");
    }
  }
  if (!metrics || (!on_training && !train_sample_.empty())) {
    return false;
  }
  warn_of_bad_images();
  at.evaluation_due = false;
  const double value = config_.evaluation.metric == "mAP" ? metrics->map : metrics->recall[0];
  const bool better = value > at.best;
  at.since_best = better ? 0 : at.since_best + 1;
  if (better) {
    at.best = value;
    at.best_step = at.step;
  }
  std::vector<std::pair<std::string, double>> numbers = {{"epoch", static_cast<double>(at.epoch)}};
  for (size_t i = 0; i < metrics->ks.size(); ++i) {
    numbers.emplace_back("R@" + std::to_string(metrics->ks[i]), metrics->recall[i]);
  }
  numbers.emplace_back("mAP", metrics->map);
  numbers.emplace_back("MAP@R", metrics->map_at_r);
  if (on_training) {
    numbers.emplace_back("train R@1", on_training->recall[0]);
    numbers.emplace_back("train mAP", on_training->map);
  }
  if (log_) {
    log_->add(at.step, LogKind::evaluation, numbers);
    events_->add(at.step, numbers);
  }
  last_ = metrics;
  if (options_.on_evaluation) {
    options_.on_evaluation({at, *metrics, better});
  }
  if (ends_run(phase)) {
    return true;  // it is saved as complete, even if it is to stop
  }
  if (better || config_.run.checkpoint_epochs > 0) {
    save(Saving::on_the_way);
  }
  return !interrupted();
}

void Trainer::save(Saving when) {
  if (slow_rank_) {
    slow_rank_->leave_out_step();
  }
  learner_.agree_on_statistics();
  const std::vector<Optimiser::State> moments = learner_.optimiser().whole_state();
  if (folder_) {
    write_checkpoint(moments, when);
  }
}

void Trainer::write_checkpoint(const std::vector<Optimiser::State>& moments, Saving when) {
  log_->sync();
  events_->flush();
  try {
    folder_->keep_checkpoint(state_.position, config_.run.keep_last, [&](const std::filesystem::path& path) {
      save_checkpoint(path, learner_, moments, input_description(config_), toml_of(config_, Comments::none), state_);
    });
  } catch (const Error& e) {
    if (e.code() != ErrorCode::io || config_.run.on_save_error == "stop" || when == Saving::at_the_end) {
      throw;
    }
    if (options_.warn) {
      options_.warn(std::string(e.what()) + "; the run goes on without this checkpoint");
    }
  }
}

void Trainer::warn_of_bad_images() {
  for (const data::BadImage& bad : bad_list_->images()) {
    if (bad_told_.insert(bad.item).second && options_.warn) {
      options_.warn("left out: " + bad.reason);
    }
  }
}

bool Trainer::stop_requested() const { return options_.stop && options_.stop(); }

bool Trainer::interrupted() {
  double requests[2] = {options_.checkpoint && options_.checkpoint() ? 1.0 : 0.0, stop_requested() ? 1.0 : 0.0};
  if (comm_) {
    comm_->all_reduce(requests);
  }
  if (requests[0] > 0) {
    save(Saving::on_the_way);
  }
  return requests[1] > 0;
}

}  // namespace gle
