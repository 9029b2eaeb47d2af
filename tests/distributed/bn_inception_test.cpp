// The network of the paper with its loss, over any number of ranks.
#include "tests/distributed/training.h"

namespace gle::test {
namespace {

TEST_F(DistributedTraining, BnInceptionWithGroupLossIsThatOfOneProcess) {
  Training training;
  training.config.network.name = "bn_inception";
  training.config.input = {.height = 64, .width = 64, .colours = "bgr255"};
  training.config.phase1.loss = "group_loss";
  training.config.group_loss.temperature = 10;
  training.side = 64;
  training.learning_rate = 2e-6F;
  expect_same(together(training), alone(training), 1e-4);
}

}  // namespace
}  // namespace gle::test
