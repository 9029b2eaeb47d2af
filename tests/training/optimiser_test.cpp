#include "training/optimiser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/cpu/cpu.h"
#include "engine/error.h"
#include "models/files/npy.h"
#include "training/schedule.h"

namespace gle::test {
namespace {

std::vector<float> row(const std::vector<double>& values, int64_t index, int64_t width) {
  return {values.begin() + index * width, values.begin() + (index + 1) * width};
}

class RAdamOracle : public testing::TestWithParam<const char*> {};

TEST_P(RAdamOracle, FortySteps) {
  const Npz oracle = Npz::read(std::string(GLE_FIXTURES) + "/" + GetParam());
  const std::vector<double> gradients = oracle.at("gradients").doubles();
  const std::vector<double> parameters = oracle.at("parameters").doubles();
  const int64_t steps = oracle.at("gradients").shape.at(0);
  const int64_t width = oracle.at("gradients").shape.at(1);
  const auto backend = make_cpu_backend();
  ParameterSet set;
  Parameter& p = set.add("p", {width});
  set.allocate(*backend);
  backend->upload(row(parameters, 0, width).data(), p.value);
  Optimiser optimiser(*backend, set,
                      {.beta1 = static_cast<float>(oracle.at("beta1").scalar()),
                       .beta2 = static_cast<float>(oracle.at("beta2").scalar()),
                       .eps = static_cast<float>(oracle.at("eps").scalar()),
                       .weight_decay = static_cast<float>(oracle.at("weight_decay").scalar())});
  std::vector<float> found(static_cast<size_t>(width));
  for (int64_t step = 0; step < steps; ++step) {
    backend->upload(row(gradients, step, width).data(), p.grad);
    optimiser.step(static_cast<float>(oracle.at("lr").scalar()));
    backend->download(p.value, found.data());
    for (int64_t i = 0; i < width; ++i) {
      const double expected = parameters[static_cast<size_t>((step + 1) * width + i)];
      EXPECT_NEAR(found[static_cast<size_t>(i)], expected, 1e-6 * std::max(1.0, std::abs(expected)))
          << "step " << step << " parameter " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, RAdamOracle, testing::Values("radam_default.npz", "radam_pretrain.npz"));

// Two parameters of one element, so that formulas can be written down.
struct Pair {
  explicit Pair(const OptimiserOptions& options, float start = 1.0F) : a(set.add("a", {1})), b(set.add("b", {1})) {
    set.allocate(*backend);
    backend->upload(&start, a.value);
    backend->upload(&start, b.value);
    optimiser.emplace(*backend, set, options);
  }
  void step(float lr, float ga, float gb) {
    backend->upload(&ga, a.grad);
    backend->upload(&gb, b.grad);
    norm = optimiser->gradient_norm();
    optimiser->step(lr);
  }
  float value(const Parameter& p) const {
    float v = 0;
    backend->download(p.value, &v);
    return v;
  }

  std::unique_ptr<Backend> backend = make_cpu_backend();
  ParameterSet set;
  Parameter& a;
  Parameter& b;
  std::optional<Optimiser> optimiser;
  double norm = 0;
};

TEST(Optimiser, AdamAndAdamWDifferInWhereTheDecayGoes) {
  Pair adam({.kind = OptimiserKind::adam, .eps = 1e-8F, .weight_decay = 0.1F});
  Pair adamw({.kind = OptimiserKind::adamw, .eps = 1e-8F, .weight_decay = 0.1F});
  adam.step(0.01F, 0.5F, -0.2F);
  adamw.step(0.01F, 0.5F, -0.2F);
  // The first step of Adam has length lr, whatever the gradient.
  EXPECT_NEAR(adam.value(adam.a), 1 - 0.01, 1e-6);
  EXPECT_NEAR(adam.value(adam.b), 1 + 0.01, 1e-6);
  EXPECT_NEAR(adamw.value(adamw.a), 1 - 0.01 * 0.1 - 0.01, 1e-6);
  EXPECT_NEAR(adamw.value(adamw.b), 1 - 0.01 * 0.1 + 0.01, 1e-6);
}

TEST(Optimiser, SgdWithMomentum) {
  Pair sgd({.kind = OptimiserKind::sgd, .beta1 = 0.9F});
  sgd.step(0.1F, 1.0F, 0.0F);
  sgd.step(0.1F, 1.0F, 0.0F);
  EXPECT_NEAR(sgd.value(sgd.a), 1 - 0.1 - 0.1 * 1.9, 1e-6);
  EXPECT_EQ(sgd.value(sgd.b), 1.0F);
}

TEST(Optimiser, ClipsTheNormOverAllParameters) {
  Pair sgd({.kind = OptimiserKind::sgd, .beta1 = 0, .clip_norm = 1});
  sgd.step(1.0F, 3.0F, 4.0F);
  EXPECT_NEAR(sgd.norm, 5, 1e-6);
  EXPECT_NEAR(sgd.value(sgd.a), 1 - 0.6, 1e-6);
  EXPECT_NEAR(sgd.value(sgd.b), 1 - 0.8, 1e-6);
  sgd.step(1.0F, 0.3F, 0.4F);
  EXPECT_NEAR(sgd.value(sgd.a), 0.4 - 0.3, 1e-6);
}

TEST(Optimiser, FrozenParametersStayAndFactorsCount) {
  Pair sgd({.kind = OptimiserKind::sgd, .beta1 = 0});
  sgd.a.trainable = false;
  sgd.b.lr_scale = 0.5F;
  sgd.step(0.1F, 1.0F, 1.0F);
  EXPECT_EQ(sgd.value(sgd.a), 1.0F);
  EXPECT_NEAR(sgd.value(sgd.b), 1 - 0.05, 1e-6);
}

TEST(Optimiser, AverageOfTheWeights) {
  Pair sgd({.kind = OptimiserKind::sgd, .beta1 = 0, .average = 0.75F});
  sgd.step(1.0F, 0.5F, 0.0F);
  sgd.optimiser->swap_average();
  EXPECT_NEAR(sgd.value(sgd.a), 0.75 * 1 + 0.25 * 0.5, 1e-6);
  sgd.optimiser->swap_average();
  EXPECT_NEAR(sgd.value(sgd.a), 0.5, 1e-6);
}

TEST(Optimiser, RefusesNonsense) {
  EXPECT_THROW(Pair({.beta1 = 1.0F}), Error);
  EXPECT_THROW(Pair({.eps = 0.0F}), Error);
  EXPECT_THROW(Pair({.weight_decay = -1.0F}), Error);
  EXPECT_THROW(optimiser_kind("lion"), Error);
  EXPECT_EQ(optimiser_kind("adamw"), OptimiserKind::adamw);
  Pair fine({});
  EXPECT_THROW(fine.optimiser->step(NAN), Error);
  EXPECT_THROW(fine.optimiser->swap_average(), Error);
}

TEST(Schedule, Shapes) {
  const Schedule steps{.rate = 1, .decay = Decay::steps, .total_steps = 100, .drops = {30, 60}, .drop_factor = 0.1F};
  EXPECT_FLOAT_EQ(learning_rate(steps, 29), 1);
  EXPECT_FLOAT_EQ(learning_rate(steps, 30), 0.1F);
  EXPECT_FLOAT_EQ(learning_rate(steps, 99), 0.01F);
  const Schedule cosine{.rate = 2, .decay = Decay::cosine, .total_steps = 110, .warmup_steps = 10, .drops = {}};
  EXPECT_FLOAT_EQ(learning_rate(cosine, 0), 0.2F);
  EXPECT_FLOAT_EQ(learning_rate(cosine, 10), 2);
  EXPECT_FLOAT_EQ(learning_rate(cosine, 60), 1);
  EXPECT_NEAR(learning_rate(cosine, 110), 0, 1e-6);
  const Schedule linear{.rate = 1, .decay = Decay::linear, .total_steps = 100, .decay_start = 60, .drops = {}};
  EXPECT_FLOAT_EQ(learning_rate(linear, 60), 1);
  EXPECT_FLOAT_EQ(learning_rate(linear, 80), 0.5F);
  EXPECT_THROW(check(Schedule{.rate = 0, .drops = {}}), Error);
  EXPECT_THROW(check(Schedule{.decay = Decay::steps, .total_steps = 9, .drops = {5, 3}}), Error);
}

}  // namespace
}  // namespace gle::test
