#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "data/hold_out.h"
#include "tests/counting_new.h"
#include "tests/training/small_run.h"
#include "training/dry_run.h"
#include "training/timed_backend.h"

namespace gle::test {

namespace {

namespace fs = std::filesystem;
using data::test::error_of;

TEST_F(SmallTrainer, AStepAllocatesNothing) {
  config_.phase2.sampler = "classes";
  const auto backend = make_cpu_backend({.threads = 2, .library = false});  // oneDNN allocates handles of its own
  const auto data = training_data(config_);
  Learner learner(*backend, config_, data->train_classes);
  learner.network().initialise(*backend, 1);
  learner.begin_phase(config_.phase2, Learner::Moments::reset);
  const Tensor images = backend->new_tensor("images", {6, 32, 32, 3});
  backend->fill(0.5F, images);
  const std::vector<int32_t> labels = {0, 0, 1, 1, 2, 2};
  const auto step = [&](uint64_t number) {
    learner.add(images, labels, number, 1);
    static_cast<void>(learner.measure());
    learner.step(1e-3F);
  };
  step(0);
  const int64_t segments = backend->allocator().statistics().segments_taken;
  step(1);
  const int64_t calls = calls_of_new();
  for (uint64_t number = 2; number < 6; ++number) {
    step(number);
  }
  EXPECT_EQ(calls_of_new(), calls);
  EXPECT_EQ(backend->allocator().statistics().segments_taken, segments);
}

TEST_F(SmallTrainer, ABackboneOfRateZeroStaysAndOfHalfMovesHalf) {
  const auto backend = make_cpu_backend({.threads = 1});
  const std::vector<int32_t> labels = {0, 0, 1, 1, 2, 2};
  const auto moved_by = [&](double rate) {
    Learner learner(*backend, config_, 3);
    learner.network().initialise(*backend, 1);
    PhaseConfig phase = config_.phase1;
    phase.optimiser = "sgd";
    phase.backbone_rate = rate;
    learner.begin_phase(phase, Learner::Moments::reset);
    const auto value = [&](const char* name) { return learner.network().parameters().find(name)->value.data()[0]; };
    const float first = value("features.conv0.weight"), last = value("classifier.bias");
    const Tensor images = backend->new_tensor("images", {6, 32, 32, 3});
    for (int64_t i = 0; i < images.elements(); ++i) {
      images.data()[i] = std::sin(static_cast<float>(i));
    }
    learner.add(images, labels, 0, 1);
    static_cast<void>(learner.measure());
    const Tensor grad = learner.network().parameters().find("features.conv0.weight")->grad;
    EXPECT_EQ(backend->sum_of_squares(grad.reshaped({1, grad.elements()})) > 0, rate > 0);
    learner.step(0.5F);
    return std::pair(value("features.conv0.weight") - first, value("classifier.bias") - last);
  };
  const auto [all_first, all_last] = moved_by(1);
  const auto [half_first, half_last] = moved_by(0.5);
  const auto [no_first, no_last] = moved_by(0);
  EXPECT_NE(all_first, 0.0F);
  EXPECT_NEAR(half_first, 0.5F * all_first, 1e-3F * std::abs(all_first));
  EXPECT_EQ(no_first, 0.0F);
  EXPECT_NE(all_last, 0.0F);
  EXPECT_EQ(half_last, all_last);
  EXPECT_EQ(no_last, all_last);
}

TEST_F(SmallTrainer, TheForecastKnowsTheMemory) {
  const auto backend = make_cpu_backend({.threads = 1});
  // Large enough that the 32 MiB of a segment are no tenth of it.
  config_.input = {.height = 64, .width = 64, .colours = "imagenet"};
  config_.network.name = "densenet121";
  config_.phase1.batch = 24;
  const Forecast result = forecast(*backend, config_, training_data(config_), 1);
  ASSERT_EQ(result.phases.size(), 2U);
  EXPECT_EQ(result.train_images, 48);
  EXPECT_EQ(result.phases[0].epoch_steps, 2);
  EXPECT_EQ(result.phases[1].epoch_steps, 4);
  EXPECT_EQ(result.phases[1].steps, 30);
  for (const PhaseForecast& phase : result.phases) {
    const auto measured = static_cast<double>(phase.measured_bytes);
    EXPECT_NEAR(static_cast<double>(phase.planned_bytes), measured, 0.1 * measured) << phase.phase;
    EXPECT_GT(phase.step_seconds, 0);
  }
}

TEST_F(SmallTrainer, WhatIsNotFiniteStopsTheRunOrIsSkippedWithinABudget) {
  config_.phase1.optimiser = "sgd";
  config_.phase1.learning_rate = 1000;
  config_.phase1.steps = 60;
  config_.phase1.epochs = 1000;
  config_.run.checkpoint_epochs = 0;
  config_.evaluation = {.on = "none"};
  config_.phase2.reload_best_at_drop = false;
  std::string message = error_of(ErrorCode::not_finite, [&] { run_small(config_, folder_.path("stopped")); });
  EXPECT_NE(message.find("is not finite; first: "), std::string::npos) << message;
  EXPECT_NE(message.find(".bmp"), std::string::npos) << message;
  EXPECT_TRUE(checkpoints_in(folder_.path("stopped/checkpoints")).empty());
  EXPECT_FALSE(fs::is_empty(folder_.path("stopped/nonfinite")));

  config_.run.on_nonfinite = "skip";
  config_.run.nonfinite_budget = 3;
  message = error_of(ErrorCode::not_finite, [&] { run_small(config_, folder_.path("skipped")); });
  EXPECT_NE(message.find("the budget of 3 skipped steps is spent"), std::string::npos) << message;
}

TEST_F(SmallTrainer, ASkippedStepLeavesNoTrace) {
  config_.run.on_nonfinite = "skip";
  const auto backend = make_cpu_backend({.threads = 1});
  Learner learner(*backend, config_, 8);
  learner.network().initialise(*backend, 1);
  ParameterSet& parameters = learner.network().parameters();
  const auto values = [&](const Tensor& tensor) {
    std::vector<float> list(static_cast<size_t>(tensor.elements()));
    backend->download(tensor, list.data());
    return list;
  };
  const auto weights = values(parameters.values());
  const auto state = values(parameters.state_values());
  const Tensor images = backend->new_tensor("images", {4, 32, 32, 3});
  backend->fill(std::numeric_limits<float>::infinity(), images);
  const std::vector<int32_t> labels = {0, 1, 2, 3};
  learner.add(images, labels, 0, 1);
  EXPECT_FALSE(learner.measure().finite());
  EXPECT_NE(learner.first_not_finite(images, labels, 0), "");
  learner.skip();
  EXPECT_EQ(values(parameters.values()), weights);
  EXPECT_EQ(values(parameters.state_values()), state);
}

TEST_F(SmallTrainer, PatienceEndsAPhase) {
  config_.phase2.epochs = 0;
  config_.phase2.steps = 0;
  config_.phase1.steps = 400;
  config_.phase1.learning_rate = 0;
  EXPECT_NE(error_of(ErrorCode::usage, [&] { run_small(config_, folder_.path("zero")); }).find("must be positive"),
            std::string::npos);
  config_.phase1.learning_rate = 1e-12;
  config_.evaluation.patience = 2;
  const Outcome outcome = run_small(config_, folder_.path("patient"));
  EXPECT_FALSE(outcome.stopped);
  EXPECT_LT(outcome.position.step, 100);
  EXPECT_LT(outcome.position.best_step, outcome.position.step);
  config_.phase1.steps = 500;
  EXPECT_EQ(run_small(config_, folder_.path("patient"), {.resume = true}).position, outcome.position);
}

TEST_F(SmallTrainer, TheAverageBeginsWithTheWeights) {
  config_.evaluation.average = 0.999999;
  config_.phase1.steps = 1;
  config_.phase2 = {.epochs = 0};
  run_small(config_, folder_.path("run"));
  const auto backend = make_cpu_backend({.threads = 1});
  Learner began(*backend, config_, 8), ended(*backend, config_, 8);
  began.network().initialise(*backend, static_cast<uint64_t>(config_.run.seed));
  Checkpoint(folder_.path("run/checkpoints/last.gle")).restore_weights(ended);
  const Tensor before = began.network().parameters().values(), after = ended.network().parameters().values();
  for (int64_t i = 0; i < before.elements(); ++i) {
    ASSERT_NEAR(after.data()[i], before.data()[i], 1e-5F) << i;
  }
}

TEST_F(SmallTrainer, AccumulatedBatchesMakeTheirMeanGradient) {
  const auto backend = make_cpu_backend({.threads = 1});
  config_.network.batch_norm = "frozen";  // statistics of a batch are not those of its halves
  config_.phase1.loss = "cross_entropy";
  const auto gradients = [&](int64_t parts) {
    Learner learner(*backend, config_, 8);
    learner.network().initialise(*backend, 3);
    const Tensor images = backend->new_tensor("images", {4, 32, 32, 3});
    std::vector<float> pixels(static_cast<size_t>(images.elements()));
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = std::sin(static_cast<float>(i) * 0.37F);
    }
    backend->upload(pixels.data(), images);
    const std::vector<int32_t> labels = {0, 1, 2, 3};
    const int64_t rows = 4 / parts;
    for (int64_t part = 0; part < parts; ++part) {
      const Tensor some = backend->new_tensor("images", {rows, 32, 32, 3});
      backend->upload(pixels.data() + part * some.elements(), some);
      learner.add(some, std::span(labels).subspan(static_cast<size_t>(part * rows), static_cast<size_t>(rows)), 0,
                  parts);
    }
    const StepResult result = learner.measure();
    return std::pair(result.loss, result.gradient_norm);
  };
  const auto [whole_loss, whole_norm] = gradients(1);
  const auto [parts_loss, parts_norm] = gradients(2);
  EXPECT_NEAR(whole_loss, parts_loss, 1e-5 * whole_loss);
  EXPECT_NEAR(whole_norm, parts_norm, 1e-4 * whole_norm);
}

TEST_F(SmallTrainer, ReestimatedStatisticsAreThoseOfTheData) {
  config_.network.batch_norm = "reestimated";
  config_.network.reestimate_batches = 3;
  config_.phase2.steps = 6;
  const Outcome outcome = run_small(config_, folder_.path("run"));
  EXPECT_TRUE(outcome.last.has_value());
  run_small(config_, folder_.path("parts"), {.stop_after = 12});
  run_small(config_, folder_.path("parts"), {.resume = true});
  expect_same_end(folder_.path("run"), folder_.path("parts"));
}

TEST_F(SmallTrainer, EveryLossTrains) {
  config_.phase1.steps = 1;
  config_.phase2 = {.steps = 2, .classes = 3, .samples = 2, .learning_rate = 1e-3};
  config_.phase2.sampler = "classes";
  config_.evaluation = {.on = "held_out", .held_out = 0.25, .every = 0};
  for (const Loss& loss : all_losses()) {
    config_.phase2.loss = loss.name;
    const Outcome outcome = run_small(config_, folder_.path(std::string(loss.name)));
    EXPECT_EQ(outcome.position.step, 3) << loss.name;
    EXPECT_TRUE(outcome.last.has_value()) << loss.name;
  }
  const std::string lines = metrics("group_loss");
  EXPECT_NE(lines.find("\"group_loss\":"), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"MAP@R\":"), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"train R@1\":"), std::string::npos) << lines;
}

TEST_F(SmallTrainer, CrossEntropyBesideAnyLoss) {
  const auto backend = make_cpu_backend({.threads = 1});
  const std::vector<int32_t> labels = {0, 0, 1, 1, 2, 2};
  const Tensor images = backend->new_tensor("images", {6, 32, 32, 3});
  std::vector<float> pixels(static_cast<size_t>(images.elements()));
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = std::sin(static_cast<float>(i) * 0.37F);
  }
  backend->upload(pixels.data(), images);
  struct FirstStep {
    StepResult result;
    std::vector<float> gradients;
  };
  // The Group Loss has a weight of its own, and leaves that of the others alone.
  const auto first_step = [&](std::string_view name, double weight) {
    config_.phase2.loss = name;
    config_.group_loss.cross_entropy_weight = name == "group_loss" ? weight : 7;
    config_.loss.cross_entropy_weight = name == "group_loss" ? 7 : weight;
    Learner learner(*backend, config_, 4);
    learner.network().initialise(*backend, 3);
    learner.begin_phase(config_.phase2, Learner::Moments::reset);
    learner.add(images, labels, 0, 1);
    const StepResult result = learner.measure();
    const Tensor& gradients = learner.network().parameters().gradients();
    return FirstStep{result, {gradients.data(), gradients.data() + gradients.elements()}};
  };
  const FirstStep plain = first_step("cross_entropy", 0);
  EXPECT_EQ(first_step("cross_entropy", 2).gradients, plain.gradients);
  for (const Loss& loss : all_losses()) {
    if (loss.name == "cross_entropy") {
      continue;
    }
    SCOPED_TRACE(std::string(loss.name));
    const FirstStep alone = first_step(loss.name, 0), beside = first_step(loss.name, 2);
    EXPECT_FALSE(alone.result.terms);
    ASSERT_TRUE(beside.result.terms);
    EXPECT_NEAR(beside.result.terms->own, alone.result.loss, 1e-6 * alone.result.loss);
    EXPECT_NEAR(beside.result.terms->cross_entropy, plain.result.loss, 1e-6 * plain.result.loss);
    EXPECT_NEAR(beside.result.loss, alone.result.loss + 2 * plain.result.loss, 1e-5 * beside.result.loss);
    for (size_t i = 0; i < plain.gradients.size(); ++i) {
      ASSERT_NEAR(beside.gradients[i], alone.gradients[i] + 2 * plain.gradients[i], 1e-5 * beside.result.gradient_norm)
          << i;
    }
  }
}

TEST_F(SmallTrainer, TermsOfAStepAreMeansOverItsBatchesAndLogged) {
  config_.phase1 = {.loss = "triplet_hard",
                    .steps = 1,
                    .sampler = "classes",
                    .classes = 3,
                    .samples = 2,
                    .accumulate = 2,
                    .learning_rate = 1e-3};
  config_.phase2 = {.epochs = 0};
  config_.run.log_every = 1;
  config_.evaluation.on = "none";
  config_.loss.cross_entropy_weight = 0.5;
  run_small(config_, folder_.path("beside"));
  const auto logged = [&](const std::string& run, const char* key) {
    const std::string lines = metrics(run);
    const size_t at = lines.find("\"" + std::string(key) + "\":");
    return at == lines.npos ? std::nan("") : std::stod(lines.substr(lines.find(':', at) + 1));
  };
  EXPECT_NEAR(logged("beside", "loss"), logged("beside", "triplet_hard") + 0.5 * logged("beside", "cross_entropy"),
              1e-5);
  config_.loss.cross_entropy_weight = 0;
  run_small(config_, folder_.path("alone"));
  EXPECT_NEAR(logged("alone", "loss"), logged("beside", "triplet_hard"), 1e-6);
  EXPECT_TRUE(std::isnan(logged("alone", "triplet_hard")));
  EXPECT_TRUE(std::isnan(logged("alone", "cross_entropy")));
  config_.phase1.loss = "cross_entropy";
  run_small(config_, folder_.path("plain"));
  EXPECT_NEAR(logged("plain", "loss"), logged("beside", "cross_entropy"), 1e-6);
}

TEST_F(SmallTrainer, TrainingImagesAreEvaluatedForComparison) {
  config_.evaluation.on = "none";
  const auto data = training_data(config_);
  const data::ClassMembers members = data::train_members(*data);
  const std::vector<uint32_t> sample = training_sample(members, 20, 1);
  EXPECT_EQ(sample.size(), 18U);  // three classes of six
  EXPECT_EQ(training_sample(members, 20, 1), sample);
  EXPECT_NE(training_sample(members, 20, 2), sample);
  EXPECT_EQ(training_sample(members, 1, 1).size(), 12U);
  EXPECT_EQ(training_sample(members, 1000, 1), data->train_items());

  config_.evaluation = {.on = "test", .every = 0, .train_images = 0};
  config_.phase1.steps = 2;
  config_.phase2 = {.epochs = 0};
  run_small(config_, folder_.path("without"));
  EXPECT_EQ(metrics("without").find("train R@1"), std::string::npos);
}

TEST_F(SmallTrainer, TheClockChangesNothing) {
  config_.phase2.steps = 4;
  run_small(config_, folder_.path("plain"));
  const auto backend = make_cpu_backend({.threads = 1});
  TimedBackend timed(*backend);
  {
    const RunFolder folder(folder_.path("timed"), RunFolder::Begin::fresh);
    Trainer(timed, config_, training_data(config_), &folder, {.threads = 1}).run();
  }
  expect_same_end(folder_.path("plain"), folder_.path("timed"));
  const std::vector<TimedBackend::Kernel> kernels = timed.kernels();
  EXPECT_TRUE(std::ranges::is_sorted(kernels, std::greater(), &TimedBackend::Kernel::seconds));
  const auto steps = std::ranges::find(kernels, "adam_step", &TimedBackend::Kernel::name);
  ASSERT_NE(steps, kernels.end());
  EXPECT_EQ(steps->calls, 14);
  EXPECT_EQ(steps->operations, 0);
  EXPECT_EQ(std::fmod(steps->bytes, 14 * 4 * sizeof(float)), 0);
  const auto forward = std::ranges::find(kernels, "conv2d_forward", &TimedBackend::Kernel::name);
  ASSERT_NE(forward, kernels.end());
  EXPECT_GT(forward->operations, forward->bytes);
  EXPECT_GT(timed.seconds(), steps->seconds);
  timed.reset();
  EXPECT_TRUE(timed.kernels().empty());
}

TEST_F(SmallTrainer, ACheckpointOfAnotherNetworkIsRefused) {
  config_.phase2.steps = 0;
  config_.phase2.epochs = 0;
  config_.phase1.steps = 2;
  run_small(config_, folder_.path("run"));
  const Checkpoint checkpoint(folder_.path("run/checkpoints/last.gle"));
  config_.network.embedding = 16;
  const auto backend = make_cpu_backend({.threads = 1});
  Learner learner(*backend, config_, 8);
  const std::string message = error_of(ErrorCode::weights, [&] { checkpoint.restore(learner); });
  EXPECT_NE(message.find("a checkpoint of densenet_tiny with 8 classes; this run trains densenet_tiny with 8 classes, "
                         "embedding 16"),
            std::string::npos)
      << message;
}

TEST_F(SmallTrainer, HeldOutClassesAreThoseOfTheSeed) {
  config_.evaluation.on = "none";
  const auto data = training_data(config_);
  const data::Dataset a = data::hold_out(*data, 0.25, 1);
  EXPECT_EQ(a.train_classes, 6);
  EXPECT_EQ(a.class_names.size(), 8U);
  EXPECT_EQ(a.query_items().size(), 12U);
  EXPECT_EQ(a.query_items(), a.gallery_items());
  std::vector<std::string> names = a.class_names;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>(data->class_names.begin(), data->class_names.begin() + 8)));
  for (const data::Item& item : a.items) {
    EXPECT_EQ(item.train, item.label < 6);
    EXPECT_NE(item.path.find(a.class_names[static_cast<size_t>(item.label)] + "/"), std::string::npos) << item.path;
  }
  EXPECT_EQ(data::hold_out(*data, 0.25, 1).class_names, a.class_names);
  EXPECT_NE(data::hold_out(*data, 0.25, 2).class_names, a.class_names);
  EXPECT_NE(error_of(ErrorCode::data, [&] { data::hold_out(*data, 0.9, 1); }).find("would be held out"),
            std::string::npos);
}

}  // namespace

}  // namespace gle::test
