#include "training/inference_search.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "engine/error.h"
#include "training/epochs.h"

namespace gle {

namespace {

bool same(const ForwardOptions& a, const ForwardOptions& b) {
  return a.last_slope == b.last_slope && a.max_share == b.max_share && a.beta == b.beta && a.flip == b.flip;
}

// As it is written, not as a float is in a double.
ConfigValue shortest(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", static_cast<double>(value));
  return std::strtod(text, nullptr);
}

ConfigValue published_value(const std::string& key, const StrategyValues& values) {
  return key == "max_share" ? shortest(values.max_share)
         : key == "beta"    ? shortest(values.beta)
         : key == "slope"   ? shortest(values.slope)
         : key == "k1"      ? ConfigValue(values.rerank.k1)
         : key == "k2"      ? ConfigValue(values.rerank.k2)
         : key == "lambda"  ? shortest(values.rerank.lambda)
                            : ConfigValue(true);
}

int64_t most_of(const Range& range) {
  if (range.kind != Range::Kind::choice) {
    return std::llround(range.high);
  }
  int64_t most = 0;
  for (const ConfigValue& value : range.choices) {
    most = std::max(most, std::get<int64_t>(value));
  }
  return most;
}

// Images that one is compared with in re-ranking.
int64_t others_in(const data::Dataset& data) {
  const std::vector<uint32_t> queries = data.query_items();
  const std::vector<uint32_t> gallery = data.gallery_items();
  return std::ssize(gallery) + (queries == gallery ? 0 : std::ssize(queries)) - 1;
}

}  // namespace

void require_searchable(const SearchSpace& space, const data::Dataset& data) {
  require(!space.inference.empty(), "tune.inference",
          "is empty; say what to search for, as slope = ", "{ uniform = [0, 1] }");
  const int64_t others = others_in(data);
  for (const Range& range : space.inference) {
    if (range.name == "k1" || range.name == "k2") {
      require(most_of(range) <= others, "tune.inference", range.name, " may become ", most_of(range),
              ", but an image has ", others, " others to be compared with; lower it, or hold out more classes");
    }
  }
}

InferenceSearch::InferenceSearch(Backend& backend, Network& network, std::shared_ptr<const data::Dataset> data,
                                 const TrainingConfig& config, const SearchSpace& space, const SearchFolder& folder,
                                 const SearchOptions& options)
    : backend_(backend),
      network_(network),
      data_(std::move(data)),
      config_(config),
      space_(space),
      folder_(folder),
      options_(options),
      pool_(options.threads),
      queries_(data_->query_items()),
      gallery_(data_->gallery_items()),
      identities_(identities_of(*data_, queries_, gallery_)),
      published_(published_values(data_->name, Source::paper)),
      trials_(folder.results()) {
  require_searchable(space_, *data_);
  const int64_t others = others_in(*data_);
  published_.rerank.k1 = std::min(published_.rerank.k1, others);
  published_.rerank.k2 = std::min(published_.rerank.k2, others);
  for (Trial& trial : trials_) {
    trial.settings = settings_of(trial.number);
  }
}

Settings InferenceSearch::settings_of(int64_t number) const {
  if (number >= kFixed) {
    return draw_inference(space_, static_cast<uint64_t>(config_.run.seed), number - kFixed);
  }
  Settings settings;
  for (size_t i = 0; number == 1 && i < space_.inference.size(); ++i) {
    settings.emplace_back(space_.inference[i].name, published_value(space_.inference[i].name, published_));
  }
  return settings;
}

InferenceSettings InferenceSearch::settings_of(const Trial& trial) const { return with(published_, trial.settings); }

bool InferenceSearch::embed(const ForwardOptions& forward) {
  if (embedded_ && same(*embedded_, forward)) {
    return true;
  }
  embedded_.reset();
  const EvaluationOptions options = evaluation_options(config_, options_.threads);
  const EmbeddingModel model{.network = &network_, .transform = options.transform, .forward = forward};
  const EmbedOptions how{
      .decode = options.decode, .batch = static_cast<int>(options.batch), .workers = options.workers};
  const auto go_on = [this](int64_t) { return !(options_.stop && options_.stop()); };
  gallery_rows_ = embed_all(backend_, {&model, 1}, data_, gallery_, how, go_on);
  if (!identities_.same_set && gallery_rows_.view().rows == std::ssize(gallery_)) {
    query_rows_ = embed_all(backend_, {&model, 1}, data_, queries_, how, go_on);
  }
  const bool complete = gallery_rows_.view().rows == std::ssize(gallery_) &&
                        (identities_.same_set || query_rows_.view().rows == std::ssize(queries_));
  if (complete) {
    embedded_ = forward;
  }
  return complete;
}

bool InferenceSearch::run_trial(Trial& trial) {
  const InferenceSettings settings = settings_of(trial);
  if (!embed(forward_options(settings.used, settings.values))) {
    return false;
  }
  EvaluateOptions options{.ks = {1}};
  if (uses(settings.used, Strategy::rerank)) {
    options.rerank = settings.values.rerank;
  }
  const RankingMetrics metrics =
      evaluate(backend_, pool_, query_rows_.view(), gallery_rows_.view(), identities_, options).metrics;
  trial.evaluations = {{0, config_.evaluation.metric == "mAP" ? metrics.map : metrics.recall[0]}};
  return true;
}

bool InferenceSearch::run() {
  const int64_t all = space_.trials + kFixed;
  while (std::ssize(trials_) < all) {
    const int64_t number = std::ssize(trials_);
    Trial trial{.number = number,
                .ended = number == 0   ? "none"
                         : number == 1 ? "published"
                                       : "done",
                .settings = settings_of(number)};
    if (options_.on_begin) {
      options_.on_begin(trial);
    }
    if (!run_trial(trial)) {
      return false;
    }
    trials_.push_back(trial);
    folder_.keep_results(trials_, config_.evaluation.metric);
    if (options_.on_end) {
      options_.on_end(trial);
    }
    if (options_.stop && options_.stop() && std::ssize(trials_) < all) {
      return false;
    }
  }
  return true;
}

}  // namespace gle
