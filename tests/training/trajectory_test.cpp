// Ten steps of BN-Inception with the Group Loss beside PyTorch's, from the same weights, batches and anchors.
#include <gtest/gtest.h>

#include "engine/cpu/cpu.h"
#include "models/files/npy.h"
#include "tests/models/formula.h"
#include "training/learner.h"

namespace gle::test {

namespace {

TEST(Trajectory, FollowsPyTorch) {
  const Npz oracle = Npz::read(std::string(GLE_FIXTURES) + "/trajectory.npz");
  const std::vector<double> rows = oracle.at("rows").doubles();
  const std::vector<int64_t> numbers = oracle.at("labels").integers();
  const std::vector<int32_t> labels(numbers.begin(), numbers.end());
  const auto size = static_cast<int64_t>(oracle.at("size").scalar());

  TrainingConfig config;
  config.group_loss = {.temperature = oracle.at("temperature").scalar(),
                       .steps = static_cast<int64_t>(oracle.at("refinements").scalar()),
                       .anchors = 1,
                       .anchor_choice = "first",
                       .diagonal = "one",
                       .mean_over = "all"};
  config.phase2.weight_decay = oracle.at("decay").scalar();
  const auto backend = make_cpu_backend();
  Learner learner(*backend, config, static_cast<int64_t>(oracle.at("classes").scalar()));
  load_weights(*backend, learner.network(), formula_weights(*backend, learner.network()));
  learner.begin_phase(config.phase2, Learner::Moments::reset);
  ASSERT_EQ(rows.size(), 40U);
  for (size_t step = 0; step < rows.size() / 4; ++step) {
    const Tensor images =
        formula_images(*backend, "batch " + std::to_string(step + 1), static_cast<int64_t>(labels.size()), size, size);
    learner.add(images, labels, step, 1);
    const StepResult found = learner.measure();
    learner.step(static_cast<float>(oracle.at("rate").scalar()));
    const double* expected = rows.data() + 4 * step;
    EXPECT_NEAR(found.loss, expected[0], 1e-3 * expected[0]) << "step " << step + 1;
    ASSERT_TRUE(found.terms) << "step " << step + 1;
    EXPECT_NEAR(found.terms->own, expected[1], 1e-3 * expected[1]) << "step " << step + 1;
    EXPECT_NEAR(found.terms->cross_entropy, expected[2], 1e-3 * expected[2]) << "step " << step + 1;
    EXPECT_NEAR(found.gradient_norm, expected[3], 1e-2 * expected[3]) << "step " << step + 1;
  }
}

}  // namespace

}  // namespace gle::test
