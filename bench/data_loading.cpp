// How fast images become batches, and what training loses to it. By hand:
//   gle-bench-data load DIR WORKERS IMAGES     decode + RandomResizedCrop 227 + mirror + normalise: images a
//                                            second, and processor time an image in ms
//   gle-bench-data train DIR WORKERS BATCHES   matrix products as a training step's stand-in, with and without loading
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

// About the arithmetic of BN-Inception's training step on a batch of 32: 120 GFLOP of matrix products on all cores.
class Step {
 public:
  explicit Step(Backend& backend)
      : backend_(backend),
        a_(backend.new_tensor("bench", {kRows, kDepth})),
        b_(backend.new_tensor("bench", {kDepth, kColumns})),
        c_(backend.new_tensor("bench", {kRows, kColumns})) {
    backend.fill(1.0F, a_);
    backend.fill(0.5F, b_);
  }
  void run() {
    constexpr int kTimes = 112;
    for (int i = 0; i < kTimes; ++i) {
      backend_.gemm(a_, Transpose::no, b_, Transpose::no, {}, {c_});
    }
    backend_.synchronise();
  }

 private:
  static constexpr int64_t kRows = 1024;
  static constexpr int64_t kDepth = 512;
  static constexpr int64_t kColumns = 1024;
  Backend& backend_;
  Tensor a_;
  Tensor b_;
  Tensor c_;
};

void train(const std::shared_ptr<const Dataset>& data, int workers, int64_t batches) {
  const auto backend = make_cpu_backend();
  Step step(*backend);
  const Tensor input = backend->new_tensor("bench", {kBatch, 227, 227, 3});
  const auto loader = loader_of(data, workers);
  step.run();
  double alone = 0;
  double loaded = 0;
  // In turns, so that whatever else the machine does hits both alike.
  constexpr int64_t kTurn = 4;
  uint64_t epoch = 0;
  for (int64_t done = 0; done < batches; done += kTurn) {
    Clock::time_point start = Clock::now();
    for (int64_t i = 0; i < kTurn; ++i) {
      step.run();
    }
    alone += seconds_since(start);
    loader->start(plan_of(*data, epoch), epoch);
    ++epoch;
    start = Clock::now();
    Batch batch;
    for (int64_t i = 0; i < kTurn && loader->next(batch); ++i) {
      backend->upload(batch.images.data(), input);
      step.run();
    }
    loaded += seconds_since(start);
  }
  std::printf("step alone %.1f ms, with loading by %d workers %.1f ms: %+.1f%%\n",
              alone * 1e3 / static_cast<double>(batches), workers, loaded * 1e3 / static_cast<double>(batches),
              (loaded / alone - 1) * 100);
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
