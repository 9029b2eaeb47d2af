// The trainer on the emulated GPU: batches as bytes, copied beside the step, and the step as a graph. Whatever the
// schedule of the streams, a run ends with the bits of one where every call runs at once.
#include "engine/cuda/cuda.h"
#include "fake_cuda/fake_cuda.h"
#include "simt/simt.h"
#include "tests/device_watch.h"
#include "tests/training/small_run.h"

namespace gle::test {

namespace {

// Of a backend, in the order in which it makes them.
constexpr int kComputeStream = 0;

class CudaTrainerTest : public testing::Test {
 protected:
  CudaTrainerTest() {
    watch_device();
    simt::set_options({.order = simt::Order::random, .check = false});
    write_small_data(folder_);
    config_ = small_config(folder_);
    config_.augment.erase = 0.5;
    config_.phase1.steps = 3;
    config_.phase1.batch = 6;
    config_.phase2.steps = 4;
    config_.phase2.decay = "cosine";
    config_.phase2.drops = {};
    config_.phase2.reload_best_at_drop = false;
    config_.evaluation.every = 0;
  }
  ~CudaTrainerTest() override {
    simt::set_options({.order = simt::Order::random});
    fake_cuda::reset({});
  }

  // Trains in the folder of this name.
  std::filesystem::path train(const std::string& name, const fake_cuda::Options& options, bool graphs,
                              int64_t stop_after = -1, bool resume = false) {
    fake_cuda::reset(options);
    run_small(config_, folder_.path(name),
              {.stop_after = stop_after,
               .resume = resume,
               .device = {.device = "cuda", .deterministic = true, .graphs = graphs}});
    return folder_.path(name);
  }

  data::test::TempFolder folder_;
  TrainingConfig config_;
};

TEST_F(CudaTrainerTest, WhatRunsBesideTheStepChangesNoBit) {
  const std::filesystem::path expected = train("at once", {.lazy = false}, false);
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    const uint64_t graphs = fake_cuda::statistics().graph_launches;
    expect_same_end(train("streams " + std::to_string(seed), {.seed = seed}, false), expected);
    EXPECT_EQ(fake_cuda::statistics().graph_launches, graphs);
    expect_same_end(train("graphs " + std::to_string(seed), {.seed = seed}, true), expected);
    EXPECT_EQ(fake_cuda::statistics().graph_launches - graphs, 5U) << "all steps but the first of each phase";
  }
  train("resumed", {.seed = 4}, true, 5);
  expect_same_end(train("resumed", {.seed = 5}, true, -1, true), expected);
}

// A test of the test: a compute stream that does not wait for the batch gives other weights.
TEST_F(CudaTrainerTest, AForgottenWaitForTheBatchIsFound) {
  config_.phase2.epochs = config_.phase2.steps = 0;
  config_.evaluation = {.on = "none", .average = 0.9};
  const auto weights = [](const std::filesystem::path& run) { return text_of(run / "checkpoints" / "last.gle"); };
  const std::string expected = weights(train("at once", {.lazy = false}, false));
  EXPECT_EQ(weights(train("waits", {.seed = 1}, false)), expected);
  int found = 0;
  constexpr int kSchedules = 4;
  for (int seed = 1; seed <= kSchedules; ++seed) {
    const fake_cuda::Options deaf{.seed = static_cast<uint64_t>(seed), .deaf_stream = kComputeStream};
    try {
      found += weights(train("deaf " + std::to_string(seed), deaf, false)) == expected ? 0 : 1;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::not_finite) << e.what();
      ++found;
    }
  }
  EXPECT_GE(found, kSchedules / 2);
  (void)simt::take_reports();  // of reading what nobody wrote
}

}  // namespace

}  // namespace gle::test
