// What a run may begin with, and from which checkpoint it goes on.
#include <algorithm>
#include <functional>

#include "tests/training/small_run.h"
#include "training/dry_run.h"

namespace gle::test {

namespace {

namespace fs = std::filesystem;
using data::test::error_of;

using Beginnings = SmallTrainer;

TEST_F(Beginnings, MistakesAreToldBeforeAnythingIsMade) {
  const auto data = training_data(config_);
  const auto error = [&](ErrorCode code, const std::function<void(TrainingConfig&)>& change) {
    TrainingConfig config = config_;
    change(config);
    return error_of(code, [&] { require_trainable(config, *data); });
  };
  for (const Loss& loss : all_losses()) {
    config_.phase2.loss = loss.name;
    EXPECT_NO_THROW(require_trainable(config_, *data)) << loss.name;
  }
  EXPECT_NE(error(ErrorCode::usage, [](auto& c) { c.network.name = "vgg"; }).find("there is no 'vgg'"),
            std::string::npos);
  EXPECT_NE(error(ErrorCode::io, [](auto& c) { c.network.weights = "nosuch.pth"; }).find("nosuch.pth"),
            std::string::npos);
  EXPECT_NE(error(ErrorCode::data, [](auto& c) { c.phase1.batch = 1000; }).find("make 0 batches of 1000"),
            std::string::npos);
  EXPECT_NE(error(ErrorCode::usage, [](auto& c) { c.phase2.warmup_epochs = 9; }).find("warm-up takes 36 of 30 steps"),
            std::string::npos);
  EXPECT_NO_THROW(require_trainable(config_, *data, 3));
  EXPECT_NE(error_of(ErrorCode::usage, [&] { require_trainable(config_, *data, 5); }).find("among 5 ranks"),
            std::string::npos);

  config_.phase1.steps = 1;
  config_.phase2 = {.epochs = 0};
  run_small(config_, folder_.path("run"));
  const std::string weights = folder_.path("run/checkpoints/last.gle");
  const Checkpoint checkpoint(weights);
  EXPECT_NO_THROW(require_trainable(config_, *data, 1, &checkpoint));
  config_.network.weights = weights;
  EXPECT_NO_THROW(require_trainable(config_, *data));
  config_.network.embedding = 16;
  EXPECT_NE(error(ErrorCode::weights, [](auto&) {}).find("does not fit densenet_tiny"), std::string::npos);
  EXPECT_NE(error_of(ErrorCode::weights, [&] { require_trainable(config_, *data, 1, &checkpoint); })
                .find("a checkpoint of densenet_tiny"),
            std::string::npos);
  config_.network.strict = false;
  EXPECT_NO_THROW(require_trainable(config_, *data));
}

TEST_F(Beginnings, GoingBackToACheckpointLeavesNoLaterOnes) {
  config_.phase2.steps = 8;
  config_.run.checkpoint_steps = 1;
  config_.run.keep_last = 100;
  const Outcome outcome = run_small(config_, folder_.path("whole"));
  const int64_t best_step = outcome.position.best_step;
  const int64_t early = 3;  // before the first evaluation: there is no best of then
  ASSERT_GT(best_step, early);
  ASSERT_LT(best_step, 17);
  for (const char* name : {"run", "of best"}) {
    fs::copy(folder_.path("whole"), folder_.path(name), fs::copy_options::recursive);
  }
  const auto path_of = [&](const std::string& run, int64_t step) {
    for (const CheckpointEntry& entry : checkpoints_in(folder_.path(run + "/checkpoints"))) {
      if (entry.step == step) {
        return entry.path;
      }
    }
    return fs::path();
  };
  const auto step_in = [&](const std::string& run, const char* name) {
    return Checkpoint(folder_.path(run) / "checkpoints" / name).state().position.step;
  };
  std::string warnings;
  const auto warn = [&](const std::string& text) { warnings += text + "\n"; };
  const auto go_back = [&](const std::string& run, const fs::path& file) {
    const RunFolder folder(folder_.path(run), RunFolder::Begin::resume);
    folder.go_back_to(Checkpoint(file), warn);
    return folder.newest(warn)->state().position.step;
  };

  EXPECT_TRUE(is_of_run(Checkpoint(path_of("run", early)), folder_.path("run")));
  EXPECT_TRUE(is_of_run(Checkpoint(path_of("whole", early)), folder_.path("run"))) << "a copy";
  EXPECT_EQ(go_back("run", path_of("run", early)), early);
  EXPECT_NE(warnings.find("step=000018.gle"), std::string::npos) << warnings;
  EXPECT_NE(warnings.find("best.gle is of step " + std::to_string(best_step)), std::string::npos) << warnings;
  EXPECT_EQ(std::ssize(checkpoints_in(folder_.path("run/checkpoints"))), early);
  EXPECT_EQ(step_in("run", "last.gle"), early);
  EXPECT_FALSE(is_of_run(Checkpoint(path_of("whole", best_step)), folder_.path("run")));
  run_small(config_, folder_.path("run"), {.resume = true});
  expect_same_end(folder_.path("whole"), folder_.path("run"));

  // The best has no other name any more, and keeps its own.
  fs::remove(path_of("of best", best_step));
  EXPECT_EQ(go_back("of best", folder_.path("of best/checkpoints/best.gle")), best_step);
  EXPECT_EQ(step_in("of best", "best.gle"), best_step);
  EXPECT_EQ(step_in("of best", "last.gle"), best_step);
  run_small(config_, folder_.path("of best"), {.resume = true});
  expect_same_end(folder_.path("whole"), folder_.path("of best"));

  // Another run from there, with the best so far.
  EXPECT_EQ(go_back("branch", path_of("whole", 17)), 17);
  EXPECT_EQ(step_in("branch", "best.gle"), best_step);
}

}  // namespace

}  // namespace gle::test
