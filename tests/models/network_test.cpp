#include "models/network.h"

#include <cmath>

#include "engine/cpu/cpu.h"
#include "models/dry_backend.h"
#include "models/plan.h"
#include "tests/models/files_testing.h"
#include "tests/models/formula.h"

namespace gle {
namespace {

using test::contains;
using test::error_of;

struct Count {
  const char* name;
  int64_t pooled[3];
  int64_t channels;
};

// The figures of the published tables, for the classes of CUB, Cars and Stanford Online Products.
constexpr int64_t kClasses[] = {100, 98, 11318};
constexpr Count kCounts[] = {
    {"bn_inception", {10372740, 10370690, 21871190}, 1024}, {"densenet121", {7056356, 7054306, 18554806}, 1024},
    {"densenet161", {26692900, 26688482, 51473462}, 2208},  {"densenet169", {12650980, 12647650, 31328950}, 1664},
    {"densenet201", {18285028, 18281186, 39834806}, 1920},
};

int64_t count_of(const NetworkOptions& options) {
  DryBackend backend;
  return Network(backend, options).parameters().parameter_count();
}

TEST(Network, ParameterCountsAreThePublishedOnesToTheDigit) {
  for (const Count& count : kCounts) {
    for (size_t i = 0; i < 3; ++i) {
      const int64_t c = kClasses[i];
      EXPECT_EQ(count_of({.name = count.name, .head = {.classes = c}}), count.pooled[i]) << count.name << " " << c;
      const int64_t backbone = count.pooled[i] - (count.channels + 1) * c;
      EXPECT_EQ(count_of({.name = count.name, .head = {.classes = c, .embedding = 512}}),
                backbone + (count.channels + 1) * 512 + 512 * c)
          << count.name << " " << c;
      EXPECT_EQ(count_of({.name = count.name, .head = {.classes = c, .bnneck = true}}),
                backbone + 2 * count.channels + count.channels * c)
          << count.name << " " << c;
    }
  }
  // The paper's table for BN-Inception, whose cells for CUB and Cars are exchanged.
  EXPECT_EQ(count_of({.name = "bn_inception", .head = {.classes = 98, .embedding = 512}}), 10845216);
  EXPECT_EQ(count_of({.name = "bn_inception", .head = {.classes = 100, .embedding = 512}}), 10846240);
  EXPECT_EQ(count_of({.name = "bn_inception", .head = {.classes = 11318, .embedding = 512}}), 16589856);
  EXPECT_EQ(count_of({.name = "bn_inception"}), 10270240);
  EXPECT_EQ(count_of({.name = "inception_v3", .head = {.classes = 1000}}), 23834568);
}

TEST(Network, EveryUsualInputSizeIsTaken) {
  const std::pair<int64_t, int64_t> sizes[] = {{227, 227}, {224, 224}, {256, 128}, {128, 64}, {64, 64}};
  for (const std::string& name : network_names()) {
    DryBackend backend;
    Network network(backend, {.name = name, .head = {.classes = 5}});
    for (const auto& [h, w] : sizes) {
      Context ctx{.backend = backend};
      const Var images(backend.new_tensor("images", {2, h, w, 3}));
      if (name.starts_with("inception_v3") && w < 75) {
        const std::string message = error_of(ErrorCode::usage, [&] { network.forward(ctx, images); });
        EXPECT_TRUE(contains(message, name + ": images of " + std::to_string(h) + "x" + std::to_string(w) +
                                          " are too small; the least square is 75x75"))
            << message;
        continue;
      }
      const NetworkOutput output = network.forward(ctx, images);
      EXPECT_EQ(output.embedding.shape(), (Shape{2, network.feature_channels()})) << name;
      EXPECT_EQ(output.logits.shape(), (Shape{2, 5})) << name;
    }
  }
}

TEST(Network, MistakesAreNamed) {
  DryBackend backend;
  EXPECT_TRUE(contains(error_of(ErrorCode::usage, [&] { Network(backend, {.name = "resnet50"}); }),
                       "there is no 'resnet50'; there are: bn_inception, densenet121"));
  Network network(backend, {.name = "densenet121"});
  Context ctx{.backend = backend};
  const Var grey(backend.new_tensor("images", {2, 64, 64, 1}));
  EXPECT_TRUE(contains(error_of(ErrorCode::usage, [&] { network.forward(ctx, grey); }), "takes images [N,H,W,3]"));
  Tape tape(backend);
  Context training{.backend = backend, .tape = &tape, .mode = Mode::training};
  const Var images(backend.new_tensor("images", {2, 64, 64, 3}));
  EXPECT_TRUE(contains(error_of(ErrorCode::usage, [&] { network.forward(training, images, {.flip = true}); }),
                       "flip is for inference"));
  Network inception(backend, {.name = "bn_inception"});
  const Var odd(backend.new_tensor("images", {2, 144, 144, 3}));
  EXPECT_TRUE(contains(error_of(ErrorCode::usage, [&] { inception.forward(ctx, odd); }),
                       "bn_inception: does not take images of 144x144"));
}

TEST(Network, TrainingTakesBackTheMemoryOfInferencesWeights) {
  const auto backend = make_cpu_backend({.threads = 1});
  for (const char* name : {"bn_inception", "densenet121"}) {
    Network network(*backend, {.name = name});
    network.initialise(*backend, 1);
    const Var images(test::formula_images(*backend, "images", 1, 64, 64));
    const auto run = [&](Mode mode) {
      Context ctx{.backend = *backend, .mode = mode};
      static_cast<void>(network.forward(ctx, images));
      return backend->allocator().statistics().live;
    };
    const size_t before = run(Mode::training);
    EXPECT_GT(run(Mode::inference), before + before / 4) << name;
    EXPECT_EQ(run(Mode::training), before) << name;
  }
}

TEST(Network, InitialisationFollowsSeedAndNameAlone) {
  const auto backend = make_cpu_backend({.threads = 1});
  Network a(*backend, {.name = "densenet121", .head = {.classes = 10}});
  Network b(*backend, {.name = "densenet121", .head = {.classes = 20, .bnneck = true}});
  a.initialise(*backend, 5);
  b.initialise(*backend, 5);
  const auto values = [&](Network& network, const char* name) {
    return test::values_of(*backend, network.parameters().find(name)->value);
  };
  const char* conv = "features.denseblock2.denselayer3.conv2.weight";
  EXPECT_EQ(values(a, conv), values(b, conv));
  b.initialise(*backend, 6);
  EXPECT_NE(values(a, conv), values(b, conv));
  double square = 0;
  const std::vector<float> weights = values(a, conv);
  for (const float w : weights) {
    square += static_cast<double>(w) * w;
  }
  // He's rule for 128 * 9 inputs.
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(weights.size())), std::sqrt(2.0 / 1152), 1e-3);
  square = 0;
  const std::vector<float> classifier = values(b, "classifier.weight");
  for (const float w : classifier) {
    square += static_cast<double>(w) * w;
  }
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(classifier.size())), 0.001, 2e-5);
  EXPECT_EQ(values(a, "features.norm0.running_var"), std::vector<float>(64, 1.0F));
  EXPECT_EQ(values(a, "classifier.bias"), std::vector<float>(10, 0.0F));
  EXPECT_FALSE(b.parameters().find("bottleneck.bias")->trainable);
  for (const float w : values(a, "classifier.weight")) {
    EXPECT_LT(std::abs(w), 1 / std::sqrt(1024.0F) + 1e-6F);
  }
}

TEST(Network, AMirrorImageIsTheOtherWayRound) {
  const auto backend = make_cpu_backend({.threads = 1});
  const Tensor images = test::formula_images(*backend, "mirror", 2, 3, 5);
  const std::vector<float> from = test::values_of(*backend, images);
  const std::vector<float> to = test::values_of(*backend, mirrored(*backend, images));
  for (size_t row = 0; row < 6; ++row) {
    for (size_t w = 0; w < 5; ++w) {
      for (size_t c = 0; c < 3; ++c) {
        EXPECT_EQ(to[(row * 5 + w) * 3 + c], from[(row * 5 + 4 - w) * 3 + c]);
      }
    }
  }
}

// What a step really takes, with the optimiser left out.
size_t measured_training_peak(const NetworkOptions& options, const Shape& images) {
  const auto backend = make_cpu_backend({.threads = 2});
  Network network(*backend, options);
  network.initialise(*backend, 1);
  Tape tape(*backend);
  for (int step = 0; step < 2; ++step) {
    tape.clear();
    network.parameters().clear_gradients();
    Context ctx{.backend = *backend, .tape = &tape, .mode = Mode::training};
    const Var x(test::formula_images(*backend, "images", images[0], images[1], images[2]));
    const NetworkOutput output = network.forward(ctx, x);
    tape.backward(output.logits, output.logits.value());
  }
  return backend->allocator().statistics().peak_live;
}

TEST(Plan, ThePeakOfAStepIsKnownBeforehand) {
  for (const char* name : {"bn_inception", "densenet121"}) {
    for (const bool recompute : {false, true}) {
      const NetworkOptions options{.name = name, .head = {.classes = 10}, .recompute = recompute};
      const Shape images{2, 96, 64, 3};
      const MemoryPlan plan = plan_memory(options, images, Mode::training);
      const auto measured = static_cast<double>(measured_training_peak(options, images));
      // Kernels' scratch is not planned.
      EXPECT_LE(static_cast<double>(plan.peak), measured) << name;
      EXPECT_GE(static_cast<double>(plan.peak), 0.9 * measured) << name;
    }
  }
}

TEST(Plan, RecomputationHalvesADenseNet) {
  const Shape images{16, 256, 128, 3};
  const auto peak = [&](bool recompute) {
    return plan_memory({.name = "densenet161", .head = {.classes = 751}, .recompute = recompute}, images,
                       Mode::training)
        .peak;
  };
  EXPECT_LT(peak(true) * 2, peak(false));
  EXPECT_LT(plan_memory({.name = "densenet161"}, images, Mode::inference).peak, peak(true));
}

}  // namespace
}  // namespace gle
