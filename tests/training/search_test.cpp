#include "training/search.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/training/small_run.h"
#include "tools/cli/config_file.h"
#include "training/inference_search.h"
#include "training/recipe.h"

namespace gle::test {

namespace {

using data::test::error_of;
using data::test::TempFolder;

SearchSpace space_of(const std::string& toml) {
  TrainingConfig config;
  SearchSpace space;
  tools::read_search(config, space, toml, "ranges.toml");
  return space;
}

void expect_refused(const std::string& toml, const std::string& part) {
  const std::string message = error_of(ErrorCode::usage, [&] { space_of(toml); });
  EXPECT_NE(message.find(part), std::string::npos) << "'" << message << "' does not say '" << part << "'";
}

TEST(SearchSpace, DrawsLieInTheirRangesAndReachTheEnds) {
  const SearchSpace space = space_of(R"([tune.ranges]
phase2.learning_rate = { log_uniform = [1e-5, 1e-1] }
phase2.samples = { uniform = [3, 5] }
phase2.clip_norm = { uniform = [1, 2] }
phase2.batch = { log_uniform = [1, 100] }
phase2.decay = { choice = ["constant", "cosine"] }
phase2.drops = { choice = [[], [1, 2.5]] }
phase2.nesterov = { choice = [true, false] }
)");
  std::set<int64_t> samples;
  std::set<std::string> decays;
  int low_rates = 0;
  int small_batches = 0;
  constexpr int kDraws = 1000;
  for (int64_t trial = 0; trial < kDraws; ++trial) {
    const TrainingConfig config = with(TrainingConfig(), draw(space, {}, trial));
    const PhaseConfig& phase = config.phase2;
    EXPECT_TRUE(phase.learning_rate >= 1e-5 && phase.learning_rate <= 1e-1) << phase.learning_rate;
    EXPECT_TRUE(phase.clip_norm >= 1 && phase.clip_norm <= 2) << phase.clip_norm;
    EXPECT_TRUE(phase.batch >= 1 && phase.batch <= 100) << phase.batch;
    low_rates += phase.learning_rate < 1e-3 ? 1 : 0;
    small_batches += phase.batch <= 10 ? 1 : 0;
    samples.insert(phase.samples);
    decays.insert(phase.decay);
  }
  EXPECT_EQ(samples, (std::set<int64_t>{3, 4, 5}));
  EXPECT_EQ(decays, (std::set<std::string>{"constant", "cosine"}));
  EXPECT_NEAR(low_rates, kDraws / 2, 60);
  EXPECT_NEAR(small_batches, kDraws * std::log(21.0) / std::log(201.0), 60);
}

TEST(SearchSpace, ADrawIsAFunctionOfSeedAndTrial) {
  const SearchSpace space = space_of("[tune.ranges]\nphase2.learning_rate = { log_uniform = [1e-5, 1e-1] }\n");
  TrainingConfig base;
  const Settings first = draw(space, base, 3);
  EXPECT_EQ(draw(space, base, 3), first);
  EXPECT_NE(draw(space, base, 4), first);
  base.run.seed = 2;
  EXPECT_NE(draw(space, base, 3), first);
}

TEST(SearchSpace, BatchesKeepToTheirLimits) {
  const std::string ranges =
      "[tune.ranges]\nphase2.classes = { uniform = [2, 20] }\nphase2.samples = { uniform = [2, 20] }\n";
  const SearchSpace space = space_of("[tune]\nbatch = [30, 40]\n" + ranges);
  for (int64_t trial = 0; trial < 100; ++trial) {
    const int64_t batch = batch_size(with(TrainingConfig(), draw(space, {}, trial)).phase2);
    EXPECT_TRUE(batch >= 30 && batch <= 40) << batch;
  }
  const SearchSpace impossible = space_of("[tune]\nbatch = [1, 2]\n" + ranges);
  EXPECT_NE(error_of(ErrorCode::usage, [&] { draw(impossible, {}, 0); }).find("tune.batch"), std::string::npos);
}

TEST(SearchSpace, DrawsLeavePicturesToLearnFrom) {
  const std::string ranges = "[tune.ranges]\ngroup_loss.anchors = { uniform = [1, 4] }\n";
  const SearchSpace space = space_of(ranges + "phase2.samples = { uniform = [2, 6] }\n");
  for (int64_t trial = 0; trial < 100; ++trial) {
    const TrainingConfig config = with(TrainingConfig(), draw(space, {}, trial));
    EXPECT_LT(config.group_loss.anchors, config.phase2.samples);
  }
  const SearchSpace impossible = space_of(ranges + "phase2.samples = { choice = [1] }\n");
  EXPECT_NE(error_of(ErrorCode::usage, [&] { draw(impossible, {}, 0); }).find("fewer group_loss.anchors than samples"),
            std::string::npos);
}

TEST(SearchSpace, MistakesAreNamedWithTheirPlace) {
  expect_refused("[phase1]\nsteps = 3", "has no table [tune]");
  expect_refused("tune = 3", "expected a table");
  expect_refused("[tune]\ntrials = \"many\"", "ranges.toml:2: tune.trials: expected a whole number");
  expect_refused("[tune]\ntrials = 0", "expected a whole number from 1");
  expect_refused("[tune]\ntrails = 3", "did you mean 'tune.trials'?");
  expect_refused("[tune]\nbatch = [9, 3]", "expected [LEAST, MOST]");
  const auto range = [](const std::string& text) { return "[tune.ranges]\n" + text + "\n"; };
  expect_refused(range("phase2.learning_rat = { uniform = [0, 1] }"), "did you mean 'phase2.learning_rate'?");
  expect_refused(range("phase2.learning_rate = [0, 1]"), "ranges.toml:2: phase2.learning_rate: expected { uniform");
  expect_refused(range("phase2.learning_rate = 0.1"), "expected { uniform");
  expect_refused(range("phase2.learning_rate = { uniform = [0, 1], choice = [1] }"), "expected { uniform");
  expect_refused(range("phase2.learning_rate = { normal = [0, 1] }"), "'normal' is no range");
  expect_refused(range("phase2.learning_rate = { uniform = [1] }"), "has 1 values; expected two");
  expect_refused(range("phase2.learning_rate = { uniform = [1, 1] }"), "the range is empty: 1 is not below 1");
  expect_refused(range("phase2.learning_rate = { log_uniform = [0, 1] }"), "log_uniform begins at 0");
  expect_refused(range("phase2.learning_rate = { choice = [] }"), "the range is empty: choice has no values");
  expect_refused(range("phase2.learning_rate = { uniform = [\"a\", \"b\"] }"), "is no number");
  expect_refused(range("phase2.samples = { uniform = [1.5, 3] }"), "expected a whole number");
  expect_refused(range("phase2.samples = { choice = [\"two\"] }"), "expected a whole number");
  expect_refused(range("phase2.loss = { uniform = [1, 2] }"), "uniform is for numbers; expected choice");
  expect_refused(range("phase2.loss = { choice = [\"grup_loss\"] }"), "did you mean 'group_loss'?");
  expect_refused(range("network.max_share = { uniform = [0, 2] }"), "network.max_share is 2; expected 0 to 1");
  const auto inference = [](const std::string& text) { return "[tune.inference]\n" + text + "\n"; };
  expect_refused(inference("slop = { uniform = [0, 1] }"), "did you mean 'slope'?");
  expect_refused(inference("flip = { uniform = [0, 1] }"), "uniform is for numbers; expected choice");
  expect_refused(inference("flip = { choice = [1] }"), "flip is 1; expected true or false");
  expect_refused(inference("k1 = { uniform = [0.5, 3] }"), "expected a whole number");
  expect_refused(inference("lambda = { uniform = [0, 1.5] }"), "lambda is 1.5; expected 0 to 1");
}

TEST(SearchSpace, GoesThroughAFile) {
  const SearchSpace space = space_of(R"([tune]
trials = 7
grace = 0
peers = 2
per_embedding = 3
batch = [30, 100]
[tune.ranges]
phase2.learning_rate = { log_uniform = [1e-5, 1e-1] }
phase2.samples = { uniform = [3, 5] }
phase2.loss = { choice = ["group_loss", "proxy_nca"] }
[tune.inference]
flip = { choice = [true, false] }
k1 = { uniform = [2, 9] }
)");
  EXPECT_EQ(space_of(toml_of(space)), space);
}

TEST(SearchSpace, TheFilesOfThisProjectAreRight) {
  int files = 0;
  for (const auto& [base, ranges] : {std::pair("cub-paper", "tune-paper"), std::pair("cars-official", "tune-paper"),
                                     std::pair("sop-official", "tune-paper"), std::pair("demo", "tune-demo")}) {
    const auto path = [](const std::string& name) { return std::string(GLE_CONFIGS) + "/" + name + ".toml"; };
    TrainingConfig config;
    SearchSpace space;
    tools::read_config_file(config, path(base));
    tools::read_search_file(config, space, path(ranges));
    config.data.path = "x";
    for (int64_t trial = 0; trial < space.trials; ++trial) {
      EXPECT_NO_THROW(check(with(config, draw(space, config, trial)))) << base;
    }
    EXPECT_EQ(space.inference.size(), 7U);
    ++files;
  }
  EXPECT_EQ(files, 4);
}

Trial trial_of(const std::vector<double>& values) {
  Trial trial;
  for (const double value : values) {
    trial.evaluations.push_back({std::ssize(trial.evaluations) + 1, value});
  }
  return trial;
}

TEST(Search, TheHopelessAreThoseBelowTheMedian) {
  SearchSpace space;
  space.grace = 2;
  space.peers = 3;
  std::vector<Trial> earlier = {trial_of({0.1, 0.5, 0.9}), trial_of({0.9, 0.2}), trial_of({0.3, 0.4})};
  const auto verdict = [&](const std::vector<double>& values) {
    return hopeless(space, earlier, trial_of(values).evaluations);
  };
  EXPECT_FALSE(verdict({}));
  EXPECT_FALSE(verdict({0.0}));       // the grace
  EXPECT_TRUE(verdict({0.0, 0.45}));  // bests at the second: 0.5, 0.9, 0.4
  EXPECT_TRUE(verdict({0.49, 0.0}));  // its own best counts
  EXPECT_FALSE(verdict({0.0, 0.5}));  // not below
  EXPECT_FALSE(verdict({0, 0, 0}));   // one peer has come as far
  earlier.push_back(trial_of({0.0, 0.1}));
  EXPECT_TRUE(verdict({0.0, 0.44}));  // the median is 0.45
  EXPECT_FALSE(verdict({0.0, 0.46}));
  space.peers = 0;
  EXPECT_FALSE(verdict({0.0, 0.0}));
}

class SmallSearch : public testing::Test {
 protected:
  SmallSearch() {
    write_small_data(folder_);
    base_ = small_config(folder_);
    base_.phase1.steps = 4;
    base_.phase2.steps = 8;
    base_.phase2.drops = {1};
    base_.evaluation.train_images = 0;
    base_.run.checkpoint_steps = 2;
    space_ = space_of(R"([tune]
trials = 4
peers = 1
[tune.ranges]
phase2.learning_rate = { log_uniform = [1e-4, 1e-1] }
group_loss.temperature = { uniform = [1, 10] }
[tune.inference]
max_share = { uniform = [0, 1] }
beta = { log_uniform = [1e-4, 1e-1] }
slope = { uniform = [0, 1] }
flip = { choice = [false, true] }
k1 = { choice = [2, 4] }
k2 = { choice = [1, 2] }
lambda = { uniform = [0.3, 1] }
)");
    space_.per_embedding = 2;
  }

  // Stops after this many steps; -1: never. The trials there are then.
  size_t search(const std::string& name, int64_t stop_after, RunFolder::Begin begin) {
    const auto backend = make_cpu_backend({.threads = 1});
    const SearchFolder folder(folder_.path(name), begin);
    int64_t steps = 0;
    Search search(*backend, base_, space_, folder,
                  {.threads = 1,
                   .stop = [&] { return stop_after >= 0 && steps >= stop_after; },
                   .on_step = [&](const StepReport&) { ++steps; }});
    const bool complete = search.run();
    EXPECT_EQ(complete, search.trials().size() == static_cast<size_t>(space_.trials));
    return search.trials().size();
  }

  TempFolder folder_;
  TrainingConfig base_;
  SearchSpace space_;
};

TEST_F(SmallSearch, AnInterruptedSearchEndsAsOneThatWasNot) {
  EXPECT_EQ(search("whole", -1, RunFolder::Begin::fresh), 4U);
  for (const int64_t every : {1, 5, 13}) {
    const std::string name = "every " + std::to_string(every);
    int parts = 0;
    while (search(name, every, RunFolder::Begin::resume) < 4) {
      ASSERT_LT(++parts, 100);
    }
    EXPECT_GT(parts, 1);
    EXPECT_EQ(text_of(folder_.path(name) / "results.json"), text_of(folder_.path("whole") / "results.json"));
    EXPECT_EQ(text_of(folder_.path(name) / "best.toml"), text_of(folder_.path("whole") / "best.toml"));
    for (const char* trial : {"trial-000", "trial-001", "trial-002", "trial-003"}) {
      EXPECT_EQ(text_of(folder_.path(name) / trial / "metrics.jsonl"),
                text_of(folder_.path("whole") / trial / "metrics.jsonl"));
    }
  }
}

TEST_F(SmallSearch, KeepsTheCheckpointsOfTheBestAlone) {
  search("run", -1, RunFolder::Begin::fresh);
  const SearchFolder folder(folder_.path("run"), RunFolder::Begin::resume);
  const std::vector<Trial> trials = folder.results();
  ASSERT_EQ(trials.size(), 4U);
  const Trial* best = best_of(trials);
  ASSERT_NE(best, nullptr);
  for (const Trial& trial : trials) {
    EXPECT_TRUE(trial.ended == "done" || trial.ended == "given up") << trial.ended;
    EXPECT_EQ(std::filesystem::exists(folder.of_trial(trial.number) / "checkpoints"), &trial == best) << trial.number;
  }
}

TEST_F(SmallSearch, ATrialThatIsNotFiniteIsOneOfTheResults) {
  space_ = space_of(R"([tune]
trials = 2
[tune.ranges]
phase1.learning_rate = { choice = [1000] }
)");
  base_.phase1.steps = 60;
  base_.phase1.optimiser = "sgd";
  base_.phase2.reload_best_at_drop = false;
  base_.evaluation.every = 0;
  EXPECT_EQ(search("run", -1, RunFolder::Begin::fresh), 2U);
  const SearchFolder folder(folder_.path("run"), RunFolder::Begin::resume);
  for (const Trial& trial : folder.results()) {
    EXPECT_EQ(trial.ended, "not finite");
    EXPECT_FALSE(trial.best().has_value());
  }
}

TEST_F(SmallSearch, DamagedResultsAreRefused) {
  const SearchFolder folder(folder_.path("run"), RunFolder::Begin::fresh);
  for (const char* text : {"{", "{}", "{\"trials\":[{\"trial\":\"x\"}]}", "[]"}) {
    folder.write_text("results.json", text);
    EXPECT_NE(error_of(ErrorCode::data, [&] { folder.results(); }).find("results.json: is damaged"), std::string::npos);
  }
  folder.write_text("results.json", R"({"trials":[{"trial":3,"ended":"done","evaluations":[]}]})");
  EXPECT_NE(error_of(ErrorCode::data, [&] { folder.results(); }).find("trial 3 stands where trial 0 should"),
            std::string::npos);
}

TEST_F(SmallSearch, InferenceSettingsAreSearchedAndTheSearchGoesOn) {
  space_.trials = 5;
  base_.evaluation.on = "test";
  const auto backend = make_cpu_backend({.threads = 1});
  const auto data = training_data(base_);
  Learner learner(*backend, base_, data->train_classes);
  learner.network().initialise(*backend, 3);
  const auto infer = [&](const std::string& name, int stop_after) {
    const SearchFolder folder(folder_.path(name), RunFolder::Begin::resume);
    int ended = 0;
    InferenceSearch search(*backend, learner.network(), data, base_, space_, folder,
                           {.threads = 1,
                            .stop = [&] { return stop_after >= 0 && ended >= stop_after; },
                            .on_end = [&](const Trial&) { ++ended; }});
    const bool complete = search.run();
    EXPECT_EQ(complete, search.trials().size() == 7U);
    return search.trials();
  };
  const std::vector<Trial> whole = infer("whole", -1);
  ASSERT_EQ(whole.size(), 7U);
  EXPECT_EQ(whole[0].ended, "none");
  EXPECT_TRUE(whole[0].settings.empty());
  EXPECT_EQ(whole[1].ended, "published");
  const auto value = [&](size_t trial, const std::string& name) {
    const Settings& settings = whole[trial].settings;
    return std::ranges::find(settings, name, &Settings::value_type::first)->second;
  };
  EXPECT_EQ(value(1, "max_share"), ConfigValue(0.5));
  EXPECT_EQ(value(1, "flip"), ConfigValue(true));
  // Two trials share their embeddings and differ in the re-ranking.
  for (const char* name : {"max_share", "beta", "slope"}) {
    EXPECT_EQ(value(2, name), value(3, name));
    EXPECT_NE(value(3, name), value(4, name));
  }
  EXPECT_NE(value(2, "lambda"), value(3, "lambda"));
  while (infer("parts", 1).size() < 7) {
  }
  EXPECT_EQ(text_of(folder_.path("parts") / "results.json"), text_of(folder_.path("whole") / "results.json"));

  // What the search says is what the strategies give.
  const InferenceSettings settings = with(published_values(data->name, Source::paper), whole[4].settings);
  const EmbeddingModel model{.network = &learner.network(),
                             .transform = test_transform(base_),
                             .forward = forward_options(settings.used, settings.values)};
  const std::vector<uint32_t> items = data->gallery_items();
  const EmbeddedRows rows = embed_all(*backend, {&model, 1}, data, items, {.batch = 5, .workers = 0});
  ThreadPool pool(1);
  const Evaluation evaluation = evaluate(*backend, pool, {}, rows.view(), identities_of(*data, items, items),
                                         {.ks = {1}, .rerank = settings.values.rerank});
  EXPECT_EQ(whole[4].evaluations[0].value, evaluation.metrics.recall[0]);
}

TEST_F(SmallSearch, ReRankingCannotReachBeyondTheImages) {
  space_ = space_of("[tune.inference]\nk1 = { uniform = [2, 99] }\n");
  base_.evaluation.on = "test";
  const auto backend = make_cpu_backend({.threads = 1});
  const auto data = training_data(base_);
  Learner learner(*backend, base_, data->train_classes);
  const SearchFolder folder(folder_.path("run"), RunFolder::Begin::fresh);
  const std::string message = error_of(
      ErrorCode::usage, [&] { InferenceSearch(*backend, learner.network(), data, base_, space_, folder, {}); });
  EXPECT_NE(message.find("k1 may become 99, but an image has 23 others"), std::string::npos) << message;
}

}  // namespace

}  // namespace gle::test
