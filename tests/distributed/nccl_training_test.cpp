// Training by NCCL on emulated GPUs, which are slow: few steps.
#include "tests/distributed/training.h"

namespace gle::test {
namespace {

TEST_F(DistributedTraining, GroupLossIsThatOfOneProcess) {
  Training training = small_training();
  training.steps = 2;
  const Trained many = together(training);
  EXPECT_EQ(many, together(training));
  expect_same(many, alone(training), 1e-4);
}

TEST_F(DistributedTraining, BnInceptionWithGroupLossIsThatOfOneProcess) {
  Training training = bn_inception_training();
  training.config.phase1.optimiser = "sgd";
  training.rows = 4;
  training.steps = 0;
  const Trained start = alone(training);
  training.steps = 1;
  training.learning_rate = 1e-5F;
  const Trained many = together(training), one = alone(training);
  expect_same(many, one, 1e-4);
  expect_same_way(many, one, start, 0.03);
}

TEST_F(DistributedTraining, ShardsOfTheOptimiserMakeTheSameSteps) {
  Training training = small_training();
  training.steps = 2;
  training.config.group_loss.batch_classes_only = true;
  const Trained plain = together(training);
  training.config.distributed.shard_optimiser = true;
  training.config.distributed.bucket_kb = 16;
  expect_same(plain, together(training), 1e-5);
}

}  // namespace
}  // namespace gle::test
