#include "training/search.h"

#include <algorithm>

#include "engine/error.h"
#include "training/dry_run.h"
#include "training/epochs.h"
#include "training/recipe.h"

namespace gle {

namespace {

namespace fs = std::filesystem;

double best_of(const std::vector<LoggedValue>& evaluations, size_t count) {
  return std::max_element(evaluations.begin(), evaluations.begin() + static_cast<std::ptrdiff_t>(count),
                          [](const LoggedValue& a, const LoggedValue& b) { return a.value < b.value; })
      ->value;
}

// Steps of a run that nothing cuts short.
int64_t steps_of(const TrainingConfig& config, const data::Dataset& data) {
  const data::ClassMembers members = data::train_members(data);
  int64_t steps = 0;
  for (int64_t phase = 0; phase < kPhases; ++phase) {
    steps += is_empty(phase_of(config, phase)) ? 0 : length_of(config, phase, data, members).steps;
  }
  return steps;
}

void check_space(const TrainingConfig& base, const SearchSpace& space) {
  require(!space.training.empty(), "tune.ranges",
          "is empty; say what to search for, as phase2.learning_rate = ", "{ log_uniform = [1e-5, 1e-1] }");
  require(base.evaluation.on != "none", "evaluation.on", "is \"none\"; a search needs \"held_out\" or \"test\"");
  for (int64_t number = 0; number < space.trials; ++number) {
    check(with(base, draw(space, base, number)));
  }
}

bool draws(const SearchSpace& space, std::string_view section) {
  return std::ranges::any_of(space.training, [&](const Range& range) { return range.name.starts_with(section); });
}

}  // namespace

void require_searchable(const TrainingConfig& base, const SearchSpace& space, int64_t first) {
  check_space(base, space);
  const bool same_data = !draws(space, "data.") && !draws(space, "evaluation.") && !draws(space, "run.");
  const auto data = same_data && first < space.trials ? training_data(base) : nullptr;
  for (int64_t number = first; number < space.trials; ++number) {
    TrainingConfig config = with(base, draw(space, base, number));
    if (number > first && !draws(space, "network.")) {
      config.network.weights.clear();  // the first trial has tried them
    }
    try {
      require_trainable(config, data ? *data : *training_data(config));
    } catch (const Error& e) {
      fail(e.code(), "trial ", number, ": ", e.what());
    }
  }
}

std::optional<double> Trial::best() const {
  return evaluations.empty() ? std::nullopt : std::optional(best_of(evaluations, evaluations.size()));
}

bool hopeless(const SearchSpace& space, const std::vector<Trial>& earlier,
              const std::vector<LoggedValue>& evaluations) {
  const size_t count = evaluations.size();
  if (space.peers == 0 || count == 0 || std::ssize(evaluations) < space.grace) {
    return false;
  }
  std::vector<double> others;
  for (const Trial& trial : earlier) {
    if (trial.evaluations.size() >= count) {
      others.push_back(best_of(trial.evaluations, count));
    }
  }
  if (std::ssize(others) < space.peers) {
    return false;
  }
  std::sort(others.begin(), others.end());
  const double median = (others[(others.size() - 1) / 2] + others[others.size() / 2]) / 2;
  return best_of(evaluations, count) < median;
}

const Trial* best_of(const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (trial.best() && (!best || *trial.best() > *best->best())) {
      best = &trial;
    }
  }
  return best;
}

Search::Search(Backend& backend, const TrainingConfig& base, const SearchSpace& space, const SearchFolder& folder,
               const SearchOptions& options)
    : backend_(backend), base_(base), space_(space), folder_(folder), options_(options), trials_(folder.results()) {
  check_space(base_, space_);
  for (Trial& trial : trials_) {
    trial.settings = draw(space_, base_, trial.number);
  }
}

bool Search::run() {
  tidy();
  while (std::ssize(trials_) < space_.trials) {
    const int64_t number = std::ssize(trials_);
    Trial trial{.number = number, .ended = "done", .settings = draw(space_, base_, number)};
    if (options_.on_begin) {
      options_.on_begin(trial);
    }
    try {
      if (!run_trial(trial)) {
        return false;
      }
    } catch (const Error& e) {
      fail(e.code(), "trial ", number, ": ", e.what());
    }
    keep(trial);
    if (options_.on_end) {
      options_.on_end(trial);
    }
    if (options_.stop && options_.stop() && std::ssize(trials_) < space_.trials) {
      return false;
    }
  }
  return true;
}

bool Search::run_trial(Trial& trial) {
  const TrainingConfig config = with(base_, trial.settings);
  const RunFolder folder(folder_.of_trial(trial.number), RunFolder::Begin::resume);
  folder.write_text("config.toml", toml_of(config, Comments::none));
  try {
    if (!train(trial, config, folder)) {
      return false;
    }
  } catch (const Error& e) {
    if (e.code() != ErrorCode::not_finite && e.code() != ErrorCode::memory) {
      throw;
    }
    trial.ended = e.code() == ErrorCode::memory ? "out of memory" : "not finite";
    if (options_.warn) {
      options_.warn("trial " + std::to_string(trial.number) + ": " + e.what());
    }
  }
  backend_.allocator().trim();
  trial.evaluations = logged_evaluations(folder.path() / "metrics.jsonl", config.evaluation.metric);
  return true;
}

bool Search::train(Trial& trial, const TrainingConfig& config, const RunFolder& folder) {
  const auto data = training_data(config);
  const int64_t steps = steps_of(config, *data);
  // What the log says is all that the decision rests on, so that a trial that was interrupted after it gives up again.
  const auto given_up = [&] {
    const auto evaluations = logged_evaluations(folder.path() / "metrics.jsonl", config.evaluation.metric);
    return hopeless(space_, trials_, evaluations) && evaluations.back().step < steps;
  };
  bool gives_up = given_up();
  if (!gives_up) {
    const auto warn = [this](const std::string& text) {
      if (options_.warn) {
        options_.warn(text);
      }
    };
    Trainer trainer(backend_, config, data, &folder,
                    {.threads = options_.threads,
                     .stop = [&] { return gives_up || (options_.stop && options_.stop()); },
                     .on_step = options_.on_step,
                     .on_evaluation = [&](const EvaluationReport&) { gives_up = given_up(); },
                     .warn = warn});
    if (const auto before = folder.newest(warn)) {
      trainer.resume(*before);
    }
    const Outcome outcome = trainer.run();
    if (outcome.stopped && !gives_up) {
      return false;
    }
  }
  trial.ended = gives_up ? "given up" : "done";
  return true;
}

void Search::keep(const Trial& trial) {
  trials_.push_back(trial);
  folder_.keep_results(trials_, base_.evaluation.metric);
  if (const Trial* best = best_of(trials_)) {
    folder_.write_text("best.toml", toml_of(with(base_, best->settings), Comments::none));
  }
  tidy();
}

void Search::tidy() const {
  const Trial* best = best_of(trials_);
  for (const Trial& trial : trials_) {
    if (&trial != best) {
      std::error_code ignored;  // they take room, and do no other harm
      fs::remove_all(folder_.of_trial(trial.number) / "checkpoints", ignored);
    }
  }
}

}  // namespace gle
