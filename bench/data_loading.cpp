// How fast images become batches, and what training loses to it. By hand:
//   gle-bench-data load DIR WORKERS IMAGES     decode + RandomResizedCrop 227 + mirror + normalise: images a
//                                            second, and processor time an image in ms
//   gle-bench-data train DIR WORKERS BATCHES   training steps of BN-Inception, in turns on one batch that is there and
//                                            on batches of the loader
// bench/peers/run.sh runs the first beside torchvision.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <vector>

#include "data/loader.h"
#include "engine/cpu/cpu.h"
#include "engine/error.h"
#include "training/learner.h"

namespace gle::data {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBatch = 32;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::unique_ptr<Loader> loader_of(const std::shared_ptr<const Dataset>& data, int workers) {
  LoaderOptions options;
  options.workers = workers;
  options.transform.geometry = Geometry::random_resized_crop;
  options.transform.size = {227, 227};
  options.transform.mirror = 0.5;
  options.transform.colours = kImageNetColours;
  return std::make_unique<Loader>(data, options);
}

EpochPlan plan_of(const Dataset& data, uint64_t epoch) {
  return plan_shuffled(data.train_items(), kBatch, LastBatch::drop, 1, epoch);
}

void load(const std::shared_ptr<const Dataset>& data, int workers, int64_t images) {
  const auto loader = loader_of(data, workers);
  int64_t done = 0;
  const Clock::time_point start = Clock::now();
  const std::clock_t cpu = std::clock();
  for (uint64_t epoch = 0; done < images; ++epoch) {
    loader->start(plan_of(*data, epoch), epoch);
    for (Batch batch; done < images && loader->next(batch);) {
      done += static_cast<int64_t>(batch.items.size());
    }
  }
  const auto count = static_cast<double>(done);
  std::printf("%.1f %.4f\n", count / seconds_since(start),
              static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC * 1e3 / count);
}

void train(const std::shared_ptr<const Dataset>& data, int workers, int64_t batches) {
  const auto backend = make_cpu_backend();
  TrainingConfig config;
  config.network.name = "bn_inception";
  Learner learner(*backend, config, data->train_classes);
  learner.network().initialise(*backend, 1);
  learner.begin_phase(config.phase1, Learner::Moments::reset);
  uint64_t steps = 0;
  const auto step = [&](const Batch& batch) {
    learner.add(batch.images, batch.labels, steps++, 1);
    learner.measure();
    learner.step(1e-4F);
  };

  const auto loader = loader_of(data, workers);
  const auto idle = loader_of(data, 0);
  idle->start(plan_of(*data, 0), 0);
  Batch always;
  idle->next(always);
  step(always);
  double alone = 0;
  double loaded = 0;
  // In turns, so that whatever else the machine does hits both alike; the loader stands still meanwhile.
  constexpr int64_t kTurn = 8;
  for (int64_t done = 0; done < batches; done += kTurn) {
    Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < kTurn; ++i) {
      step(always);
    }
    alone += seconds_since(start);
    EpochPlan turn = plan_of(*data, static_cast<uint64_t>(done));
    turn.items.resize(static_cast<size_t>(kTurn * kBatch));
    loader->start(std::move(turn), static_cast<uint64_t>(done));
    start = Clock::now();
    for (Batch batch; loader->next(batch);) {
      step(batch);
    }
    loaded += seconds_since(start);
  }
  const double count = static_cast<double>((batches + kTurn - 1) / kTurn * kTurn);
  std::printf("step alone %.1f ms, with loading by %d workers %.1f ms: %+.1f%%\n", alone * 1e3 / count, workers,
              loaded * 1e3 / count, (loaded / alone - 1) * 100);
}

int main(int argc, char** argv) {
  if (argc != 5 || (std::strcmp(argv[1], "load") != 0 && std::strcmp(argv[1], "train") != 0)) {
    fail(ErrorCode::usage, "expected load|train DIR WORKERS COUNT");
  }
  const auto data = std::make_shared<const Dataset>(load_dataset(argv[2]));
  const int workers = std::atoi(argv[3]);
  const long count = std::atol(argv[4]);
  std::strcmp(argv[1], "load") == 0 ? load(data, workers, count) : train(data, workers, count);
  return 0;
}

}  // namespace

}  // namespace gle::data

int main(int argc, char** argv) {
  try {
    return gle::data::main(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-bench-data: %s\n", e.what());
    return 1;
  }
}
