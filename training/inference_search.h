#pragma once

#include <memory>

#include "retrieval/embed.h"
#include "retrieval/evaluate.h"
#include "training/evaluation.h"
#include "training/inference_settings.h"
#include "training/search.h"

namespace gle {

// Throws ErrorCode::usage if there is nothing to search for, or re-ranking would look further than there are images.
void require_searchable(const SearchSpace& space, const data::Dataset& data);

// Random search for the settings of GL++ inference: ranks the data set's queries by a network that is trained already.
// Trial 0 uses no strategy, trial 1 those that have a range with their published values, the others are drawn.
class InferenceSearch {
 public:
  // Trials beside those that are drawn.
  static constexpr int64_t kFixed = 2;

  InferenceSearch(Backend& backend, Network& network, std::shared_ptr<const data::Dataset> data,
                  const TrainingConfig& config, const SearchSpace& space, const SearchFolder& folder,
                  const SearchOptions& options);

  // False if it was stopped.
  bool run();
  const std::vector<Trial>& trials() const { return trials_; }
  InferenceSettings settings_of(const Trial& trial) const;

 private:
  Settings settings_of(int64_t number) const;
  // False if it was stopped.
  bool embed(const ForwardOptions& forward);
  bool run_trial(Trial& trial);

  Backend& backend_;
  Network& network_;
  std::shared_ptr<const data::Dataset> data_;
  const TrainingConfig config_;
  const SearchSpace space_;
  const SearchFolder& folder_;
  SearchOptions options_;
  ThreadPool pool_;
  std::vector<uint32_t> queries_, gallery_;
  Identities identities_;
  StrategyValues published_;
  std::optional<ForwardOptions> embedded_;  // what the rows below were made with
  EmbeddedRows query_rows_, gallery_rows_;
  std::vector<Trial> trials_;
};

}  // namespace gle
