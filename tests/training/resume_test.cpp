// A run that was stopped, at any step, ends in the same bits as one that was not.
#include <array>

#include "tests/machines.h"
#include "tests/training/small_run.h"

namespace gle::test {

namespace {

namespace fs = std::filesystem;
using data::test::TempFolder;

constexpr int64_t kSteps = 40;

class Resume : public testing::Test {
 protected:
  void SetUp() override {
    write_small_data(folder_);
    config_ = small_config(folder_);
    const Outcome outcome = run_small(config_, whole());
    ASSERT_FALSE(outcome.stopped);
    ASSERT_EQ(outcome.position.step, kSteps);
    ASSERT_GT(outcome.position.best_step, 0);
  }
  fs::path whole() const { return folder_.path("whole"); }

  TempFolder folder_;
  TrainingConfig config_;
};

TEST_F(Resume, AfterEveryStepIsBitwiseTheSame) {
  // oneDNN promises the same bits for the same number of threads only.
  const std::array<int, 3> threads = machines().back().library() ? std::array{1, 1, 1} : std::array{1, 2, 4};
  constexpr int64_t kWorkers[] = {0, 1, 3};
  for (int64_t stop = 1; stop < kSteps; ++stop) {
    const fs::path path = folder_.path("stopped");
    fs::remove_all(path);
    config_.data.workers = kWorkers[stop % 3];
    const Outcome first =
        run_small(config_, path, {.stop_after = stop, .threads = threads[static_cast<size_t>(stop % 3)]});
    ASSERT_TRUE(first.stopped) << stop;
    ASSERT_EQ(first.position.step, stop);
    config_.data.workers = kWorkers[(stop + 1) % 3];
    const Outcome second =
        run_small(config_, path, {.threads = threads[static_cast<size_t>((stop + 1) % 3)], .resume = true});
    ASSERT_FALSE(second.stopped);
    expect_same_end(whole(), path);
    if (HasFailure()) {
      FAIL() << "stopped after step " << stop;
    }
  }
}

TEST_F(Resume, StoppedAfterEachStepInTurn) {
  const fs::path path = folder_.path("often");
  run_small(config_, path, {.stop_after = 1});
  for (int64_t stop = 2; stop < kSteps; ++stop) {
    run_small(config_, path, {.stop_after = stop, .resume = true});
  }
  run_small(config_, path, {.resume = true});
  expect_same_end(whole(), path);
}

TEST_F(Resume, FromTheEndThereIsNothingToDo) {
  const std::string before = text_of(whole() / "checkpoints" / "last.gle");
  const Outcome outcome = run_small(config_, whole(), {.resume = true});
  EXPECT_EQ(outcome.position.step, kSteps);
  EXPECT_EQ(text_of(whole() / "checkpoints" / "last.gle"), before);
}

TEST_F(Resume, FromTheEndALongerRunGoesOn) {
  config_.phase2.sampler = "classes";  // what the hard sampler takes depends on the length
  const fs::path at_once = folder_.path("at_once");
  run_small(config_, at_once);
  const fs::path path = folder_.path("longer");
  const PhaseConfig phase2 = config_.phase2;
  config_.phase2.epochs = config_.phase2.steps = 0;
  EXPECT_EQ(run_small(config_, path).position.step, 10);
  config_.phase2 = phase2;
  config_.phase2.steps = 16;
  EXPECT_EQ(run_small(config_, path, {.resume = true}).position.step, 26);
  config_.phase2.steps = phase2.steps;
  EXPECT_EQ(run_small(config_, path, {.resume = true}).position.step, kSteps);
  expect_same_end(at_once, path);
}

// As if it had been so short from the beginning.
TEST_F(Resume, AShorterPhaseEndsWhereItIs) {
  config_.phase2.sampler = "classes";
  const TrainingConfig longer = config_;
  const auto compare = [&](const std::string& name, int64_t stop) {
    run_small(config_, folder_.path("at_once_" + name));
    const fs::path path = folder_.path("shorter_" + name);
    ASSERT_TRUE(run_small(longer, path, {.stop_after = stop}).stopped);
    ASSERT_FALSE(run_small(config_, path, {.resume = true}).stopped);
    expect_same_end(folder_.path("at_once_" + name), path);
  };
  config_.phase1.steps = 6;
  compare("first", 6);
  config_.phase1.steps = 10;
  config_.phase2.steps = 17;
  compare("second", 27);
}

TEST_F(Resume, ADamagedNewestCheckpointFallsBackToTheOneBefore) {
  const fs::path path = folder_.path("stopped");
  config_.run.checkpoint_steps = 1;
  run_small(config_, path, {.stop_after = 20});
  {
    std::fstream file(path / "checkpoints" / "last.gle", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5000);
    file.put('x');
  }
  std::string warning;
  {
    const RunFolder run(path, RunFolder::Begin::resume);
    const auto checkpoint = run.newest([&](const std::string& text) { warning += text; });
    ASSERT_TRUE(checkpoint);
    EXPECT_EQ(checkpoint->state().position.step, 19);
  }
  EXPECT_NE(warning.find("step=000020.gle"), std::string::npos) << warning;
  EXPECT_NE(warning.find("section 'weights' is damaged; trying the one before"), std::string::npos) << warning;
  run_small(config_, path, {.resume = true});
  expect_same_end(whole(), path);
}

TEST_F(Resume, SameSeedSameBytesOtherSeedOtherWeights) {
  run_small(config_, folder_.path("again"));
  for (const char* name : {"checkpoints/last.gle", "checkpoints/best.gle", "metrics.jsonl"}) {
    EXPECT_EQ(text_of(whole() / name), text_of(folder_.path("again") / name)) << name;
  }
  config_.run.seed = 8;
  run_small(config_, folder_.path("other"));
  EXPECT_NE(text_of(whole() / "metrics.jsonl"), text_of(folder_.path("other") / "metrics.jsonl"));
}

}  // namespace

}  // namespace gle::test
