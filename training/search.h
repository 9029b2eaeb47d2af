#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/files/folder_lock.h"
#include "training/search_space.h"
#include "training/trainer.h"

namespace gle {

// One draw of a search and what came of it.
struct Trial {
  int64_t number = 0;
  std::string ended;  // "done", "given up", "not finite", "out of memory"; "none", "published" where nothing was drawn
  Settings settings = {};
  std::vector<LoggedValue> evaluations = {};  // the metric by step

  std::optional<double> best() const;
};

// Whether a trial whose evaluations so far are these is given up: after the grace, once `peers` of the earlier trials
// have had as many evaluations, if its best so far is below the median of theirs.
bool hopeless(const SearchSpace& space, const std::vector<Trial>& earlier, const std::vector<LoggedValue>& evaluations);

// The first among equals; null if no trial was evaluated.
const Trial* best_of(const std::vector<Trial>& trials);

// The folder of a search: search.toml (config and ranges), results.json, best.toml, a folder for each trial. One
// process at a time may hold it.
class SearchFolder {
 public:
  // As for RunFolder.
  SearchFolder(std::filesystem::path path, RunFolder::Begin begin);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path of_trial(int64_t number) const;
  std::string plan() const;  // search.toml, empty if there is none
  void write_text(const std::string& name, const std::string& text) const;

  // Numbers, ends and evaluations; settings are not read back. ErrorCode::data if the file is damaged.
  std::vector<Trial> results() const;
  void keep_results(const std::vector<Trial>& trials, const std::string& metric) const;

 private:
  std::filesystem::path path_;
  FolderLock lock_;
};

std::string json_of(const std::vector<Trial>& trials, const std::string& metric);

struct SearchOptions {
  int threads = 0;
  std::function<bool()> stop = {};  // asked between steps: everything so far is kept
  std::function<void(const Trial&)> on_begin = {};
  std::function<void(const StepReport&)> on_step = {};
  std::function<void(const Trial&)> on_end = {};
  std::function<void(const std::string&)> warn = {};
};

// Throws what a search would throw before its first step: ranges that are empty, and what require_trainable() says of
// the trials from `first` on.
void require_searchable(const TrainingConfig& base, const SearchSpace& space, int64_t first = 0);

// Random search: trains as many draws as the space says, one after the other, each in a run folder of its own. What it
// finds is a function of base, space and data, wherever it was interrupted. Checkpoints are kept of the best trial
// alone.
class Search {
 public:
  Search(Backend& backend, const TrainingConfig& base, const SearchSpace& space, const SearchFolder& folder,
         const SearchOptions& options);

  // False if it was stopped.
  bool run();
  const std::vector<Trial>& trials() const { return trials_; }

 private:
  bool run_trial(Trial& trial);
  // False if it was stopped.
  bool train(Trial& trial, const TrainingConfig& config, const RunFolder& folder);
  void keep(const Trial& trial);
  void tidy() const;

  Backend& backend_;
  const TrainingConfig base_;
  const SearchSpace space_;
  const SearchFolder& folder_;
  SearchOptions options_;
  std::vector<Trial> trials_;
};

}  // namespace gle
