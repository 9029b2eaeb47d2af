#include "training/dry_run.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "data/loader.h"
#include "engine/error.h"
#include "models/dry_backend.h"
#include "models/weights.h"
#include "training/batch_feed.h"
#include "training/epochs.h"
#include "training/learner.h"
#include "training/recipe.h"

namespace gle {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void try_phase(Learner& learner, data::Loader& loader, const PhaseConfig& phase, int steps, PhaseForecast& result) {
  learner.begin_phase(phase, Learner::Moments::reset);
  BatchFeed feed(learner.backend(), loader, phase.accumulate);
  std::chrono::steady_clock::time_point start;
  std::vector<data::Batch> batches;
  int done = 0;
  for (; done <= steps; ++done) {
    if (done == 1) {
      start = std::chrono::steady_clock::now();
    }
    if (!feed.next(batches)) {
      result.step_seconds = done > 1 ? seconds_since(start) / (done - 1) : 0;
      return;
    }
    learner.backend().run_step(result.phase, [&] {
      for (size_t part = 0; part < batches.size(); ++part) {
        learner.add(batches[part], batches[part].labels, part, phase.accumulate);
      }
    });
    feed.look_ahead();
    static_cast<void>(learner.measure());
    learner.step(0.0F);
  }
  result.step_seconds = seconds_since(start) / steps;
}

// What the feed keeps on the device.
std::vector<Pictures> room_for(Backend& backend, const TrainingConfig& config, const PhaseConfig& phase,
                               data::Pixels pixels) {
  const bool bytes = pixels == data::Pixels::bytes;
  const int64_t batch = batch_size(phase);
  std::vector<Pictures> places;
  for (int64_t i = 0; i < (bytes ? 2 * phase.accumulate : 1); ++i) {
    places.emplace_back(backend.new_tensor("images", {batch, config.input.height, config.input.width, 3},
                                           bytes ? DType::u8 : DType::f32));
    if (bytes && train_transform(config, phase).erase > 0) {
      places.back().erased = backend.new_tensor("images", {batch, 4}, DType::i32);
    }
  }
  return places;
}

}  // namespace

size_t planned_bytes(const TrainingConfig& config, const PhaseConfig& phase, int64_t classes, data::Pixels pixels,
                     size_t limit) {
  DryBackend backend;
  backend.allocator().set_limit(limit);
  Learner learner(backend, config, classes);
  learner.begin_phase(phase, Learner::Moments::reset);
  const int64_t batch = batch_size(phase);
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < batch; ++i) {
    labels.push_back(static_cast<int32_t>(i / phase.samples % classes));
  }
  const std::vector<Pictures> places = room_for(backend, config, phase, pixels);
  // The second step is the steady state.
  for (int step = 0; step < 2; ++step) {
    for (int64_t part = 0; part < phase.accumulate; ++part) {
      learner.add(places[0], labels, static_cast<uint64_t>(part), phase.accumulate);
    }
    learner.step(0.0F);
  }
  return backend.allocator().statistics().peak_reserved;
}

void require_trainable(const TrainingConfig& config, const data::Dataset& data, int ranks, const Checkpoint* from) {
  check(config);
  check_division(config, ranks);
  const data::ClassMembers members = data::train_members(data);
  for (int64_t i = 0; i < kPhases; ++i) {
    const PhaseConfig& phase = phase_of(config, i);
    if (!is_empty(phase)) {
      const PhaseLength length = length_of(config, i, data, members);
      static_cast<void>(schedule_of(phase, length.epoch_steps, length.steps));
      static_cast<void>(planned_bytes(config, phase, data.train_classes));
    }
  }
  DryBackend backend;
  Learner learner(backend, config, data.train_classes);
  if (from) {
    require_same_data(*from, data);
    learner.begin_phase(phase_of(config, from->state().position.phase), Learner::Moments::reset);
    from->restore(learner);
  } else if (!config.network.weights.empty()) {
    load_weights(backend, learner.network(), read_weights(config.network.weights),
                 config.network.strict ? Strictness::strict : Strictness::lenient);
  }
}

size_t require_memory(const TrainingConfig& config, int64_t classes, data::Pixels pixels, size_t limit) {
  const auto bytes_if_it_fits = [&](const PhaseConfig& phase) -> std::optional<size_t> {
    try {
      return planned_bytes(config, phase, classes, pixels, limit);
    } catch (const Error&) {
      return std::nullopt;  // a batch-norm may not take the smallest batches either
    }
  };
  size_t largest = 0;
  for (int64_t i = 0; i < kPhases; ++i) {
    PhaseConfig phase = phase_of(config, i);
    if (is_empty(phase)) {
      continue;
    }
    if (const std::optional<size_t> planned = bytes_if_it_fits(phase)) {
      largest = std::max(largest, *planned);
      continue;
    }
    const int64_t wanted = batch_size(phase);
    const bool shuffled = phase.sampler == "shuffled";
    int64_t& size = shuffled ? phase.batch : phase.classes;
    int64_t fits = 0;
    for (int64_t too_many = size; too_many - fits > 1;) {
      size = fits + (too_many - fits) / 2;
      (bytes_if_it_fits(phase) ? fits : too_many) = size;
    }
    const std::string name = "phase" + std::to_string(i + 1);
    fail(ErrorCode::memory, name, ": a batch of ", wanted, " does not fit in ", limit >> 20U, " MiB; ",
         fits == 0 ? "nor does the smallest"
                   : name + (shuffled ? ".batch = " : ".classes = ") + std::to_string(fits) + " does");
  }
  return largest;
}

Forecast forecast(Backend& backend, const TrainingConfig& config, const std::shared_ptr<const data::Dataset>& data,
                  int trial_steps) {
  Forecast result{.train_images = static_cast<int64_t>(data->train_items().size()),
                  .train_classes = data->train_classes,
                  .queries = static_cast<int64_t>(data->query_items().size()),
                  .gallery = static_cast<int64_t>(data->gallery_items().size()),
                  .parameters = 0,
                  .phases = {}};
  const data::ClassMembers members = data::train_members(*data);
  for (int64_t i = 0; i < kPhases; ++i) {
    const PhaseConfig& phase = phase_of(config, i);
    if (is_empty(phase)) {
      continue;
    }
    const PhaseLength length = length_of(config, i, *data, members);
    PhaseForecast& forecast = result.phases.emplace_back();
    forecast.phase = i;
    forecast.batch = batch_size(phase) * phase.accumulate;
    forecast.epoch_steps = length.epoch_steps;
    forecast.steps = length.steps;
    forecast.planned_bytes = planned_bytes(config, phase, data->train_classes, pixels_for(backend));
    if (phase.sampler != "shuffled") {
      forecast.small_classes = members.small_classes(*data, static_cast<int>(phase.samples));
    }
    backend.allocator().trim();
    backend.allocator().reset_peaks();
    data::LoaderOptions options = loader_options(config, phase);
    options.pixels = pixels_for(backend);
    data::Loader loader(data, options);
    Learner learner(backend, config, data->train_classes);
    learner.network().initialise(backend, static_cast<uint64_t>(config.run.seed));
    result.parameters = learner.network().parameters().parameter_count();
    loader.start(plan_plainly(config, phase, *data, members, 0), 0);
    try_phase(learner, loader, phase, trial_steps, forecast);
    forecast.measured_bytes = backend.allocator().statistics().peak_reserved;
  }
  return result;
}

}  // namespace gle
