// Whole runs of several ranks: both phases, the hard-class sampler, evaluations, a moving average, a reload of the best
// weights, accumulated gradients, shards.
#include "tests/distributed/ranks.h"
#include "tests/training/small_run.h"

namespace gle::test {
namespace {

class RanksOfATrainer : public testing::Test {
 protected:
  void SetUp() override {
    if (comm_.rank() == 0) {
      own_ = std::make_unique<data::test::TempFolder>();
      write_small_data(*own_);
      config_ = small_config(*own_);
      path_ = own_->path("").string();
    }
    comm_.broadcast(path_, 0);
    comm_.broadcast(config_.data.path, 0);
    if (comm_.rank() != 0) {
      const std::string data = config_.data.path;
      config_ = small_config(data::test::TempFolder());
      config_.data.path = data;
    }
    config_.distributed.shard_optimiser = true;
  }
  void TearDown() override { comm_.barrier(); }
  std::filesystem::path run(const char* name) const { return std::filesystem::path(path_) / name; }

  Comm& comm_ = all_ranks();
  std::unique_ptr<data::test::TempFolder> own_;
  std::string path_;
  TrainingConfig config_;
};

TEST_F(RanksOfATrainer, EndAlikeHoweverTheyAreInterrupted) {
  const Outcome whole = run_small(config_, run("whole"), {.comm = &comm_});
  EXPECT_EQ(whole.position.step, 40);
  run_small(config_, run("parts"), {.stop_after = 7, .comm = &comm_});
  EXPECT_TRUE(run_small(config_, run("parts"), {.stop_after = 23, .resume = true, .comm = &comm_}).stopped);
  EXPECT_FALSE(run_small(config_, run("parts"), {.resume = true, .comm = &comm_}).stopped);
  if (comm_.rank() == 0) {
    expect_same_end(run("whole"), run("parts"));
  }
}

}  // namespace
}  // namespace gle::test
