// The network of the paper with its loss, over any number of ranks.
#include "tests/distributed/training.h"

namespace gle::test {
namespace {

// At random weights 1e-6 on a picture is 1e-1 on a loss some steps later, so ranks and one process begin with weights
// that have learnt a little. RAdam would make whole steps of the rounding that is all the gradient of a bias before a
// batch-norm; SGD does not.
TEST_F(DistributedTraining, BnInceptionWithGroupLossIsThatOfOneProcess) {
  Training training = bn_inception_training();
  training.steps = 60;
  training.learning_rate = 2e-3F;
  const Trained start = alone(training);

  training.start = &start;
  training.config.phase1.optimiser = "sgd";
  training.steps = 10;  // each makes what rounding did before it larger by a sixth
  training.learning_rate = 1e-4F;
  const Trained many = together(training), one = alone(training);
  EXPECT_EQ(many, together(training));
  expect_same(many, one, 1e-4);
  expect_same_way(many, one, start, 0.03);
}

}  // namespace
}  // namespace gle::test
