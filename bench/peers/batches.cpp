// What a network is shown by a run of gle-train, for a peer to train on the same: bench/peers/learning_curve.py.
//   gle-peer-batches CONFIG [KEY=VALUE ...]
// A line "N H W", then for every step of both phases N labels (int32) and N x H x W x 3 numbers (float32) on stdout.
#include <cstdio>
#include <string>
#include <vector>

#include "engine/error.h"
#include "tools/cli/config_file.h"
#include "training/epochs.h"
#include "training/recipe.h"

namespace gle::bench {

namespace {

template <class T>
void write(const T* values, size_t count) {
  if (std::fwrite(values, sizeof(T), count, stdout) != count) {
    fail(ErrorCode::io, "gle-peer-batches: stdout is closed");
  }
}

void write_batches(const TrainingConfig& config) {
  check(config);
  const auto data = training_data(config);
  const data::ClassMembers members = train_members(*data);
  uint64_t epoch = 0;
  for (int64_t number = 0; number < kPhases; ++number) {
    const PhaseConfig& phase = phase_of(config, number);
    require(phase.accumulate == 1 && phase.sampler != "hard", "gle-peer-batches",
            "a step is one batch that no network chooses; phase ", number + 1, " accumulates ", phase.accumulate,
            " and its sampler is ", phase.sampler);
    if (is_empty(phase)) {
      continue;
    }
    const PhaseLength length = length_of(config, number, *data, members);
    data::Loader loader(data, loader_options(config, phase));
    for (int64_t step = 0; step < length.steps; ++epoch) {
      loader.start(plan_plainly(config, phase, *data, members, epoch), epoch);
      data::Batch batch;
      for (int64_t i = 0; i < length.epoch_steps && step < length.steps && loader.next(batch); ++i, ++step) {
        write(batch.labels.data(), batch.labels.size());
        write(batch.images.data(), static_cast<size_t>(batch.images.elements()));
      }
    }
  }
}

}  // namespace

}  // namespace gle::bench

int main(int argc, char** argv) {
  try {
    gle::require(argc >= 2, "gle-peer-batches", "expected CONFIG [KEY=VALUE ...]");
    gle::TrainingConfig config;
    gle::tools::read_config_file(config, argv[1]);
    gle::tools::read_config_settings(config, {argv + 2, argv + argc});
    std::printf("%ld %ld %ld\n", static_cast<long>(gle::batch_size(config.phase2)),
                static_cast<long>(config.input.height), static_cast<long>(config.input.width));
    gle::bench::write_batches(config);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gle-peer-batches: %s\n", e.what());
    return 2;
  }
}
