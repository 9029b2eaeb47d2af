#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/backends.h"
#include "engine/cpu/cpu.h"
#include "tests/data/support.h"
#include "training/epochs.h"
#include "training/rank_texts.h"
#include "training/trainer.h"

namespace gle::test {

// A data set of eight classes to train on and four to test on, six pictures each, and a config that trains a tiny
// network on it in 40 steps with everything that has a state: two phases, the hard-class sampler, augmentation, a
// moving average, a reload of the best weights, accumulated gradients.
inline void write_small_data(const data::test::TempFolder& folder) {
  for (int c = 0; c < 12; ++c) {
    for (int i = 0; i < 6; ++i) {
      const std::string split = c < 8 ? "train/" : "test/";
      folder.write("data/" + split + "c" + std::to_string(c) + "/" + std::to_string(i) + ".bmp",
                   data::test::bmp_picture(40, 36, static_cast<uint32_t>(c * 1000 + i)));
    }
  }
}

inline TrainingConfig small_config(const data::test::TempFolder& folder) {
  TrainingConfig config;
  config.run.seed = 7;
  config.run.log_every = 1;
  config.data.path = folder.path("data").string();
  config.data.workers = 1;
  config.network.name = "densenet_tiny";
  config.input = {.height = 32, .width = 32, .resize = "stretch", .resize_to = 36, .colours = "imagenet"};
  config.augment.turn = 5;
  config.augment.erase = 0.3;
  config.phase1.steps = 10;
  config.phase1.batch = 12;
  config.phase1.learning_rate = 1e-2;
  config.phase2.steps = 30;
  config.phase2.sampler = "hard";
  config.phase2.classes = 3;
  config.phase2.samples = 2;
  config.phase2.accumulate = 2;
  config.phase2.hard_refresh = 2;
  config.phase2.learning_rate = 1e-2;
  config.phase2.decay = "steps";
  config.phase2.drops = {3, 6};
  config.phase2.reload_best_at_drop = true;
  config.evaluation.on = "test";
  config.evaluation.average = 0.9;
  config.evaluation.batch = 8;
  return config;
}

struct RunSettings {
  int64_t stop_after = -1;  // step; -1: never
  int threads = 1;
  bool resume = false;
  Comm* comm = nullptr;
  DeviceRequest device = {.device = "cpu"};
};

inline Outcome run_small(const TrainingConfig& config, const std::filesystem::path& path,
                         const RunSettings& settings = {}) {
  DeviceRequest device = settings.device;
  device.threads = settings.threads;
  const auto backend = make_backend(device);
  std::optional<RunFolder> folder;
  if (!settings.comm || settings.comm->rank() == 0) {
    folder.emplace(path, settings.resume ? RunFolder::Begin::resume : RunFolder::Begin::fresh);
  }
  int64_t step = 0;
  Trainer trainer(*backend, config, training_data(config), folder ? &*folder : nullptr,
                  {.threads = settings.threads,
                   .comm = settings.comm,
                   .stop = [&] { return settings.stop_after >= 0 && step >= settings.stop_after; },
                   .on_step = [&](const StepReport& report) { step = report.position.step; }});
  if (settings.resume) {
    auto checkpoint = folder ? folder->newest([](const std::string&) {}) : nullptr;
    if (settings.comm) {
      checkpoint = checkpoint_for_all(*settings.comm, std::move(checkpoint));
    }
    trainer.resume(*checkpoint);
    step = trainer.position().step;
  }
  return trainer.run();
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// All that a run ended in must be the same to the bit; the config may differ in keys without influence.
inline void expect_same_end(const std::filesystem::path& a, const std::filesystem::path& b) {
  EXPECT_EQ(text_of(a / "metrics.jsonl"), text_of(b / "metrics.jsonl"));
  for (const char* name : {"last.gle", "best.gle"}) {
    const CheckpointFile left(a / "checkpoints" / name);
    const CheckpointFile right(b / "checkpoints" / name);
    ASSERT_EQ(left.sections().size(), right.sections().size());
    for (size_t i = 0; i < left.sections().size(); ++i) {
      const auto& x = left.sections()[i];
      const auto& y = right.sections()[i];
      EXPECT_EQ(x.name, y.name);
      EXPECT_TRUE(x.name == "config" || std::ranges::equal(x.bytes, y.bytes)) << name << ", section " << x.name;
    }
  }
}

// A test with such data and such a config.
class SmallTrainer : public testing::Test {
 protected:
  void SetUp() override {
    write_small_data(folder_);
    config_ = small_config(folder_);
  }
  std::string metrics(const std::string& run) const { return text_of(folder_.path(run) / "metrics.jsonl"); }

  data::test::TempFolder folder_;
  TrainingConfig config_;
};

}  // namespace gle::test
