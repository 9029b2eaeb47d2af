// How a config cuts data into epochs, and which data a run goes on with.
#include "training/epochs.h"

#include <algorithm>

#include "tests/training/small_run.h"

namespace gle::test {

namespace {

namespace fs = std::filesystem;
using data::test::error_of;

using Epochs = SmallTrainer;

TEST_F(Epochs, HardOnesAreAsLongAsTheScheduleBelieves) {
  config_.phase2.classes = 2;
  config_.phase2.samples = 4;  // of classes of six: plain chunks would be filled up
  config_.phase2.accumulate = 1;
  const auto data = training_data(config_);
  const data::ClassMembers members = data::train_members(*data);
  const PhaseLength length = length_of(config_, 1, *data, members);
  const std::vector<float> distances(64, 1.0F);
  EXPECT_EQ(length.epoch_steps, 6);
  EXPECT_EQ(data::plan_hard_classes(members, {2, 4}, distances, 1.0, 7, 0).batches(), length.epoch_steps);

  config_.phase1 = {.epochs = 0};
  config_.phase2.steps = 0;
  config_.phase2.epochs = 3;
  config_.phase2.drops = {1};
  const Outcome outcome = run_small(config_, folder_.path("run"));
  EXPECT_EQ(outcome.position.epoch, 3);
  EXPECT_EQ(outcome.position.step, 18);
}

TEST_F(Epochs, ARunWhoseBestWeightsAreGoneGoesOnFromThoseItHas) {
  // Evaluations at steps 8, 18 and 26; the rate falls at 22.
  config_.evaluation.every = 2;
  config_.phase2.drops = {3};
  run_small(config_, folder_.path("run"), {.stop_after = 20});
  const fs::path best = folder_.path("run/checkpoints/best.gle");
  const int64_t step = Checkpoint(best).state().position.best_step;
  for (const CheckpointEntry& entry : checkpoints_in(best.parent_path())) {
    if (entry.step == step) {
      fs::remove(entry.path);
    }
  }
  fs::remove(best);
  const auto backend = make_cpu_backend({.threads = 1});
  const RunFolder folder(folder_.path("run"), RunFolder::Begin::resume);
  std::string warnings;
  Trainer trainer(*backend, config_, training_data(config_), &folder,
                  {.threads = 1, .warn = [&](const std::string& text) { warnings += text + "\n"; }});
  trainer.resume(*folder.newest([](const std::string&) {}));
  EXPECT_EQ(trainer.run().position.step, 40);
  EXPECT_NE(warnings.find("no whole checkpoint of step " + std::to_string(step)), std::string::npos) << warnings;
}

TEST_F(Epochs, AnotherRunTakesTheBestAlongFromAnyOfItsNames) {
  config_.run.checkpoint_steps = 1;
  config_.run.keep_last = 100;
  run_small(config_, folder_.path("old"));
  const auto entries = checkpoints_in(folder_.path("old/checkpoints"));
  const auto early = std::ranges::find_if(entries, [](const CheckpointEntry& entry) {
    const Position at = Checkpoint(entry.path).state().position;
    return at.best_step >= 0 && at.best_step < at.step;
  });
  ASSERT_NE(early, entries.end());
  const Checkpoint checkpoint(early->path);
  fs::remove(folder_.path("old/checkpoints/best.gle"));
  const RunFolder folder(folder_.path("new"), RunFolder::Begin::fresh);
  folder.go_back_to(checkpoint, [](const std::string&) {});
  EXPECT_EQ(Checkpoint(folder.best()).state().position.step, checkpoint.state().position.best_step);
}

TEST_F(Epochs, ARunThatCannotBeSavedAtItsEndHasFailed) {
  config_.phase1.steps = 2;
  config_.phase2 = {.epochs = 0};
  config_.run.on_save_error = "warn";
  const auto backend = make_cpu_backend({.threads = 1});
  const RunFolder folder(folder_.path("run"), RunFolder::Begin::fresh);
  fs::remove(folder.checkpoints());
  std::ofstream(folder.checkpoints()) << "no folder";
  int warnings = 0;
  Trainer trainer(*backend, config_, training_data(config_), &folder,
                  {.threads = 1, .warn = [&](const std::string&) { ++warnings; }});
  EXPECT_NE(error_of(ErrorCode::io, [&] { trainer.run(); }), "");
  EXPECT_EQ(warnings, 1);  // of the one before the evaluation
}

TEST_F(Epochs, OtherDataAreRefusedWhenARunGoesOn) {
  run_small(config_, folder_.path("run"), {.stop_after = 3});
  const Checkpoint checkpoint(folder_.path("run/checkpoints/last.gle"));
  fs::rename(folder_.path("data"), folder_.path("moved"));
  config_.data.path = folder_.path("moved").string();
  EXPECT_NO_THROW(require_same_data(checkpoint, *training_data(config_)));
  fs::rename(folder_.path("moved/train/c3"), folder_.path("moved/train/c33"));
  EXPECT_NE(error_of(ErrorCode::data, [&] { require_same_data(checkpoint, *training_data(config_)); })
                .find("a resumed run keeps its data"),
            std::string::npos);
  fs::rename(folder_.path("moved/train/c33"), folder_.path("moved/train/c3"));
  fs::remove(folder_.path("moved/train/c3/0.bmp"));
  EXPECT_NE(error_of(ErrorCode::data, [&] { run_small(config_, folder_.path("run"), {.resume = true}); })
                .find("48 pictures of 8 classes"),
            std::string::npos);
}

TEST_F(Epochs, QueriesWithoutAMatchAreToldBeforeTraining) {
  for (int i = 1; i < 6; ++i) {
    fs::remove(folder_.path("data/test/c9/" + std::to_string(i) + ".bmp"));
  }
  const auto data = training_data(config_);
  ASSERT_EQ(data->warnings.size(), 1U);
  EXPECT_NE(data->warnings[0].find("1 of 19 queries have no match"), std::string::npos) << data->warnings[0];
  for (const char* name : {"c8", "c10", "c11"}) {
    for (int i = 1; i < 6; ++i) {
      fs::remove(folder_.path(std::string("data/test/") + name + "/" + std::to_string(i) + ".bmp"));
    }
  }
  EXPECT_NE(error_of(ErrorCode::data, [&] { training_data(config_); }).find("none of the 4 queries has a match"),
            std::string::npos);
}

}  // namespace

}  // namespace gle::test
