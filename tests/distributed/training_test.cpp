// Ranks that share every batch train as one process with the whole of it does.
#include <gtest/gtest.h>

#include "losses/registry.h"
#include "tests/distributed/training.h"

namespace gle::test {
namespace {

TEST_F(DistributedTraining, ASecondRunHasTheSameBits) {
  const Training training = small_training();
  EXPECT_EQ(together(training), together(training));
}

TEST_F(DistributedTraining, EveryLossHasTheGradientOfOneProcess) {
  for (const Loss& loss : all_losses()) {
    for (const double beside : {0.0, 0.5}) {
      SCOPED_TRACE(std::string(loss.name) + ", and cross-entropy times " + std::to_string(beside));
      Training training = small_training();
      training.config.phase1.loss = loss.name;
      training.config.loss.smoothing = 0.1;
      training.config.loss.cross_entropy_weight = training.config.group_loss.cross_entropy_weight = beside;
      // Of its own rows alone, a picture's embedding is the same with any number of ranks.
      training.config.network.batch_norm = "frozen";
      training.steps = 1;
      const Trained one = alone(training);
      const Trained many = together(training);
      EXPECT_NEAR(many.losses[0], one.losses[0], 1e-6 * (1 + one.losses[0]));
      EXPECT_NEAR(many.norms[0], one.norms[0], 1e-5 * one.norms[0]);
      EXPECT_LT(largest_difference(many.weights, one.weights), 1e-5);
    }
  }
}

TEST_F(DistributedTraining, OnlyTheColumnsOfTheBatchAreExchanged) {
  Training training = small_training();
  training.config.group_loss.batch_classes_only = true;
  const int64_t before = comm_.statistics().bytes;
  const Trained many = together(training);
  const int64_t narrow = comm_.statistics().bytes - before;
  training.config.group_loss.batch_classes_only = false;
  together(training);
  const int64_t wide = comm_.statistics().bytes - before - narrow;
  if (comm_.size() > 1) {
    // Three of the six classes, in every step, for the rows of a rank.
    EXPECT_EQ(wide - narrow, training.steps * training.rows / comm_.size() * 3 * 4);
  }
  training.config.group_loss.batch_classes_only = true;
  expect_same(many, alone(training), 1e-4);
}

TEST_F(DistributedTraining, AccumulatedBatchesAreExchangedOnce) {
  Training training = small_training();
  training.config.phase1.accumulate = 2;
  training.steps = 3;
  expect_same(together(training), alone(training), 1e-4);
}

TEST_F(DistributedTraining, RecomputedBatchNormIsSynchronisedToo) {
  Training training = small_training();
  training.config.network.recompute = true;
  expect_same(together(training), alone(training), 1e-4);
}

TEST_F(DistributedTraining, SizesOfBucketsChangeNothing) {
  Training training = small_training();
  const Trained plain = together(training);
  training.config.distributed.bucket_kb = 1;
  expect_same(plain, together(training), 1e-5);
}

TEST_F(DistributedTraining, ShardsOfTheOptimiserMakeTheSameSteps) {
  for (const char* optimiser : {"radam", "sgd"}) {
    Training training = small_training();
    training.config.phase1.optimiser = optimiser;
    training.config.phase1.clip_norm = 0.5;
    training.config.phase1.weight_decay = 0.01;
    training.config.evaluation.average = 0.9;
    const Trained plain = together(training);
    training.config.distributed.shard_optimiser = true;
    expect_same(plain, together(training), 1e-5);
    training.config.distributed.bucket_kb = 1;  // many that ranks do not divide
    expect_same(plain, together(training), 1e-5);
  }
}

TEST_F(DistributedTraining, WithoutSynchronisationRanksHaveStatisticsOfTheirOwn) {
  Training training = small_training();
  training.config.distributed.sync_batch_norm = false;
  const Trained first = together(training);
  EXPECT_EQ(first, together(training));
  training.config.distributed.sync_batch_norm = true;
  const Trained synchronised = together(training);
  if (comm_.size() > 1) {
    EXPECT_NE(first.losses.back(), synchronised.losses.back());
  }
}

TEST_F(DistributedTraining, StatisticsOfRanksAreAveragedToAgree) {
  Training training = small_training();
  training.config.distributed.sync_batch_norm = false;
  Backend& backend = rank_backend();
  Learner learner(backend, training.config, kClasses, &comm_);
  ParameterSet& parameters = learner.network().parameters();
  learner.network().initialise(backend, 5);
  learner.begin_phase(training.config.phase1, Learner::Moments::reset);
  const TestBatch batch(training.rows, training.side, 0);
  learner.add(batch.part(backend, &comm_), batch.labels, 0, 1);
  const std::vector<float> own = read(backend, parameters.state_values());
  std::vector<double> mean(own.begin(), own.end());
  comm_.all_reduce(mean);
  learner.agree_on_statistics();
  const std::vector<float> agreed = read(backend, parameters.state_values());
  for (size_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(agreed[i], mean[i] / comm_.size(), 1e-6 * (1 + std::abs(agreed[i])));
  }
  if (comm_.size() > 1) {
    EXPECT_NE(own, agreed);
  }
}

TEST_F(DistributedTraining, AStepThatIsNotFiniteOnOneRankIsSkippedByAll) {
  Training training = small_training();
  training.config.run.on_nonfinite = "skip";
  Backend& backend = rank_backend();
  Learner learner(backend, training.config, kClasses, &comm_);
  learner.network().initialise(backend, 5);
  learner.begin_phase(training.config.phase1, Learner::Moments::reset);
  TestBatch batch(training.rows, training.side, 0);
  if (comm_.rank() == comm_.size() - 1) {
    std::fill(batch.pixels.begin(), batch.pixels.end(), INFINITY);
  }
  const Tensor images = batch.part(backend, &comm_);
  learner.add(images, batch.labels, 0, 1);
  EXPECT_FALSE(learner.measure().finite());
  const std::string found = learner.first_not_finite(images, batch.labels, 0);
  EXPECT_EQ(found.empty(), comm_.rank() != comm_.size() - 1) << found;
  learner.skip();
}

}  // namespace
}  // namespace gle::test
