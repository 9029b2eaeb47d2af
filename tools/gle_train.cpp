// Trains a network as a config says, in a folder of its own.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "engine/error.h"
#include "tools/cli/config_file.h"
#include "tools/cli/device.h"
#include "tools/cli/own_folder.h"
#include "tools/cli/program.h"
#include "tools/cli/progress.h"
#include "tools/cli/stop_signals.h"
#include "tools/step_profile.h"
#include "tools/training_options.h"
#include "tools/training_screen.h"
#include "training/dry_run.h"
#include "training/epochs.h"
#include "training/rank_texts.h"
#include "training/recipe.h"
#include "training/trainer.h"

namespace gle::tools {

namespace {

namespace fs = std::filesystem;

struct Arguments {
  ConfigArguments config;
  std::string out;
  std::string resume;
  std::string verify;
  bool force = false;
  bool print_config = false;
  bool print_config_reference = false;
  bool dry_run = false;
  bool profile = false;
  DeviceOptions device;
  Verbosity verbosity;
  std::string command;
};

void add_options(CLI::App& app, Arguments& a) {
  add_config_options(app, a.config);
  app.add_option("--out", a.out, "folder of the run; default: runs/<data set>-<number>")->option_text("DIR");
  app.add_option("--resume", a.resume, "auto: from the newest whole checkpoint of --out, or the beginning; or a file")
      ->option_text("auto|FILE");
  app.add_flag("--force", a.force, "begin anew where there is a run");
  app.add_flag("--print-config", a.print_config, "print the config that the run would have, and end");
  app.add_flag("--print-config-reference", a.print_config_reference,
               "print all keys as docs/configuration.md, and end");
  app.add_flag("--dry-run", a.dry_run, "check data, memory and speed, and end");
  app.add_flag("--profile", a.profile, "tell at the end where the time of the steps went; for CPUs");
  app.add_option("--verify", a.verify, "check every byte of a checkpoint, and end")->option_text("FILE");
  add_training_device_options(app, a.device);
  add_verbosity_options(app, a.verbosity);
}

// What a run that goes on was begun with: its checkpoint says it, or its folder if there is no checkpoint yet.
std::optional<TrainingConfig> begun_with(const Arguments& a, const Checkpoint* before, const fs::path& run) {
  TrainingConfig config;
  if (before) {
    read_config(config, before->config(), before->path().string());
  } else if (a.resume == "auto" && fs::exists(run / "config.toml")) {
    read_config_file(config, (run / "config.toml").string());
  } else {
    return std::nullopt;
  }
  return config;
}

// Flags before --set before the environment before files before defaults.
TrainingConfig resolve(const Arguments& a, const Checkpoint* before, const fs::path& run) {
  const std::optional<TrainingConfig> of_run = begun_with(a, before, run);
  TrainingConfig config = of_run && a.config.config.empty() ? *of_run : TrainingConfig{};
  if (!a.config.config.empty()) {
    read_config_file(config, a.config.config);
  }
  override_config(config, a.config);
  if (of_run) {
    require_resumable(config, *of_run, before ? before->state().position.phase : 0);
  }
  return config;
}

int verify(const std::string& path) {
  const Checkpoint checkpoint(path);
  std::printf("%s: whole\n", path.c_str());
  const Position& at = checkpoint.state().position;
  std::printf("epoch %ld, step %ld%s\n", static_cast<long>(at.epoch), static_cast<long>(at.step),
              at.done ? ", the end of its run" : "");
  for (const auto& section : checkpoint.file().sections()) {
    std::printf("  %-24s %12zu bytes\n", section.name.c_str(), section.bytes.size());
  }
  return 0;
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// time.json: what the steps from `from_step` to `steps` took, over all processes that ended in order.
struct Cost {
  int64_t steps = 0;
  int64_t from_step = 0;
  double seconds = 0;
  double processor_seconds = 0;  // of all threads
};

Cost cost_until(int64_t step, const RunFolder& folder) {
  std::ifstream file(folder.path() / "time.json");
  const auto json = nlohmann::json::parse(file, nullptr, false);
  const auto is_number = [&](const char* name) { return json.contains(name) && json[name].is_number(); };
  const char* const names[] = {"steps", "from_step", "seconds", "processor_seconds"};
  if (!std::ranges::all_of(names, is_number) || json["steps"] != step) {
    return {.steps = step, .from_step = step};
  }
  return {step, json["from_step"], json["seconds"], json["processor_seconds"]};
}

void write_cost(const RunFolder& folder, const Cost& cost) {
  folder.write_text("time.json", "{\"steps\": " + std::to_string(cost.steps) + ", \"from_step\": " +
                                     std::to_string(cost.from_step) + ", \"seconds\": " + json_number(cost.seconds) +
                                     ", \"processor_seconds\": " + json_number(cost.processor_seconds) + "}\n");
}

// Of the pictures that a run's own evaluations are of.
const char* evaluated_on(const TrainingConfig& config) {
  return config.evaluation.on == "held_out" ? "training classes held out" : "test classes";
}

void summarise(const RunFolder& folder, const TrainingConfig& config, const Outcome& outcome, bool was_complete,
               const Cost& cost) {
  const Position& at = outcome.position;
  std::string json = "{\"steps\": " + std::to_string(at.step) + ", \"epochs\": " + std::to_string(at.epoch) +
                     ", \"skipped\": " + std::to_string(at.skipped) + ", \"best\": " + json_number(at.best) +
                     ", \"best_step\": " + std::to_string(at.best_step) +
                     ", \"on\": " + json_text(config.evaluation.on);
  if (outcome.last) {
    for (size_t i = 0; i < outcome.last->ks.size(); ++i) {
      json += ", \"R@" + std::to_string(outcome.last->ks[i]) + "\": " + json_number(outcome.last->recall[i]);
    }
    json += ", \"mAP\": " + json_number(outcome.last->map);
  }
  if (!was_complete || !fs::exists(folder.path() / "summary.json")) {
    folder.write_text("summary.json", json + "}\n");
  }
  std::printf("run        %s\nsteps      %ld in %ld epochs, %s, of the processor %s\n", folder.path().c_str(),
              static_cast<long>(at.step), static_cast<long>(at.epoch), clock_text(cost.seconds).c_str(),
              clock_text(cost.processor_seconds).c_str());
  if (outcome.last) {
    std::printf("last       %s, on %s\n", text_of(*outcome.last).c_str(), evaluated_on(config));
  }
  if (at.best_step >= 0) {
    std::printf("best       %s %.1f at step %ld: %s\n", config.evaluation.metric.c_str(), at.best * 100,
                static_cast<long>(at.best_step),
                fs::exists(folder.best()) ? folder.best().c_str() : "its checkpoint could not be written");
  }
}

void warn(const std::string& text) { std::fprintf(stderr, "gle-train: warning: %s\n", text.c_str()); }

double megabytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

bool resumes_file(const Arguments& a) { return !a.resume.empty() && a.resume != "auto"; }

// --out, or the run that the file of --resume is of; empty: a new one.
fs::path run_path(const Arguments& a) {
  if (a.resume == "auto" && a.out.empty()) {
    fail(ErrorCode::usage, "--resume auto: which run? say --out DIR");
  }
  if (a.resume == "auto" && a.force) {
    fail(ErrorCode::usage, "--resume auto goes on and --force begins anew: say one of them");
  }
  if (!resumes_file(a) || !a.out.empty()) {
    return a.out;
  }
  if (!fs::exists(a.resume)) {
    fail(ErrorCode::io, "--resume ", a.resume, ": there is no such checkpoint; expected auto, or a file");
  }
  const fs::path folder = fs::absolute(a.resume).lexically_normal().parent_path();
  if (folder.filename() != kCheckpoints) {
    fail(ErrorCode::usage, "--resume ", a.resume, ": is not in the folder checkpoints of a run; say --out DIR");
  }
  return folder.parent_path();
}

// What --resume names; null if there is nothing yet.
std::unique_ptr<Checkpoint> checkpoint_in(const Arguments& a, const fs::path& run) {
  return resumes_file(a)      ? std::make_unique<Checkpoint>(a.resume)
         : a.resume == "auto" ? newest_checkpoint(run, warn)
                              : nullptr;
}

// Whether it goes on in a run that is there, instead of beginning one.
bool goes_on(const Arguments& a, const fs::path& run) {
  if (a.resume.empty() || !has_run(run)) {
    return false;
  }
  if (!resumes_file(a) || is_of_run(Checkpoint(a.resume), run)) {
    return true;
  }
  if (!a.force) {
    fail(ErrorCode::usage, run.string(), ": there is a run already, and ", a.resume,
         " is none of its checkpoints; leave --out away to go on in the run of the file, or begin a new one from it "
         "in another folder. --force begins it here, in the place of what is there");
  }
  return false;
}

// The phase that asks most of its classes tells.
void warn_of_small_classes(const TrainingConfig& config, const data::Dataset& data) {
  int64_t samples = 0;
  for (int64_t i = 0; i < kPhases; ++i) {
    const PhaseConfig& phase = phase_of(config, i);
    samples = is_empty(phase) || phase.sampler == "shuffled" ? samples : std::max(samples, phase.samples);
  }
  const auto small = data::train_members(data).small_classes(data, static_cast<int>(samples));
  if (!small.empty()) {
    warn(std::to_string(small.size()) + " classes have too few images, such as " + small.front());
  }
}

// What a run begins with. The first rank finds it out and tells the others.
struct Beginning {
  fs::path path;
  std::unique_ptr<RunFolder> folder;  // of the first rank
  std::unique_ptr<Checkpoint> before;
  TrainingConfig config;
};

Beginning begin(const Arguments& a, Comm& comm) {
  Beginning begin;
  if (comm.rank() == 0) {
    begin.path = run_path(a);
    if (goes_on(a, begin.path)) {
      begin.folder = std::make_unique<RunFolder>(begin.path, RunFolder::Begin::resume);
    }
    begin.before = checkpoint_in(a, begin.path);
    begin.config = resolve(a, begin.before.get(), begin.path);
    check(begin.config);
    if (!begin.path.empty()) {
      require_not_the_data(begin.path, begin.config.data.path);
    }
  }
  if (comm.size() > 1) {
    std::string text = toml_of(begin.config, Comments::none);
    comm.broadcast(text, 0);
    begin.before = checkpoint_for_all(comm, std::move(begin.before));
    if (comm.rank() != 0) {
      read_config(begin.config, text, "the config of the first rank");
    }
  }
  return begin;
}

int train(const Arguments& a, Comm& comm) {
  Beginning begin = tools::begin(a, comm);
  const TrainingConfig& config = begin.config;
  comm.watch({.timeout = config.distributed.timeout, .stopping = stop_signalled, .report = [](const std::string& what) {
                std::fprintf(stderr, "gle-train: %s; --resume auto goes on from the last checkpoint\n", what.c_str());
              }});
  const auto data = training_data(config);
  const DeviceOptions device = for_rank(a.device, comm);
  const auto real_backend = make_backend(device);
  std::optional<TimedBackend> timed;
  if (a.profile) {
    timed.emplace(*real_backend);
  }
  Backend& backend = timed ? *timed : *real_backend;
  const std::unique_ptr<Comm> nccl = device_ranks(comm, *real_backend);
  std::unique_ptr<RunFolder>& folder = begin.folder;
  if (comm.rank() == 0) {
    // A mistake leaves no folder behind, and the run that was there as it is.
    require_trainable(config, *data, comm.size(), begin.before.get());
    if (comm.size() == 1) {
      const size_t planned =
          require_memory(config, data->train_classes, pixels_for(backend), backend.allocator().limit());
      if (!a.verbosity.quiet) {
        std::fprintf(stderr, "gle-train: %.0f MiB of memory planned\n", megabytes(planned));
      }
    }
    if (!folder) {
      folder = std::make_unique<RunFolder>(begin.path.empty() ? next_run_folder("runs", data->name) : begin.path,
                                           a.force ? RunFolder::Begin::replace : RunFolder::Begin::fresh);
    }
    for (const std::string& text : data->warnings) {
      warn(text);
    }
    warn_of_small_classes(config, *data);
    folder->write_text("config.toml", toml_of(config, Comments::none));
    folder->write_text("command.txt", a.command + "\n");
  }

  watch_stop_signals();
  watch_checkpoint_signal();
  std::optional<TrainingScreen> screen;
  if (folder) {
    screen.emplace(a.verbosity);
  }
  std::optional<StepProfile> profile;
  if (timed) {
    profile.emplace(*timed, config);
  }
  Trainer trainer(backend, config, data, folder.get(),
                  {.threads = device.threads,
                   .comm = nccl ? nccl.get() : &comm,
                   .stop = stop_signalled,
                   .checkpoint = take_checkpoint_signal,
                   .on_step =
                       [&](const StepReport& report) {
                         if (screen) {
                           screen->step(report);
                         }
                         if (profile) {
                           profile->step(report);
                         }
                       },
                   .on_evaluation =
                       [&](const EvaluationReport& report) {
                         if (screen) {
                           screen->evaluation(report);
                         }
                       },
                   .warn = warn});
  if (begin.before) {
    trainer.resume(*begin.before);
    if (folder && resumes_file(a)) {
      folder->go_back_to(*begin.before, warn);
    }
    begin.before.reset();
    if (screen) {
      screen->begin(trainer.position().step);
    }
  }
  const Position began = trainer.position();
  if (folder && !began.done) {
    folder->write_text("env.json", environment_text(config, backend, comm.description()));
  }
  Cost cost = folder ? cost_until(began.step, *folder) : Cost{};
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = trainer.run();
  double processor[] = {processor_seconds()};
  comm.all_reduce(processor);
  if (!folder) {
    return outcome.stopped ? kStoppedBySignal : 0;
  }
  screen->finish();
  const bool was_complete = outcome.position == began;
  if (!was_complete || !fs::exists(folder->path() / "time.json")) {
    cost.steps = outcome.position.step;
    cost.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    cost.processor_seconds += processor[0];
    write_cost(*folder, cost);
  }
  if (outcome.stopped) {
    std::fprintf(stderr, "gle-train: stopped at step %ld; --resume auto --out %s goes on\n",
                 static_cast<long>(outcome.position.step), folder->path().c_str());
    return kStoppedBySignal;
  }
  summarise(*folder, config, outcome, was_complete, cost);
  if (profile) {
    profile->print();
  }
  return 0;
}

int dry_run(const Arguments& a) {
  const fs::path run = run_path(a);
  const std::unique_ptr<Checkpoint> before = checkpoint_in(a, run);
  if (!run.empty() && !a.force && !goes_on(a, run)) {
    require_no_run(run);
  }
  const TrainingConfig config = resolve(a, before.get(), run);
  check(config);
  const auto data = training_data(config);
  const auto backend = make_backend(a.device);
  require_trainable(config, *data, 1, before.get());
  static_cast<void>(require_memory(config, data->train_classes, pixels_for(*backend), backend->allocator().limit()));
  const Forecast result = forecast(*backend, config, data);
  std::printf("data       %s: %ld images of %d classes to train on; %ld queries, %ld in the gallery%s\n",
              data->name.c_str(), static_cast<long>(result.train_images), result.train_classes,
              static_cast<long>(result.queries), static_cast<long>(result.gallery),
              config.evaluation.on == "held_out" ? ", of training classes held out" : "");
  for (const std::string& text : data->warnings) {
    std::printf("warning    %s\n", text.c_str());
  }
  std::printf("network    %s, %ld parameters, on %s\n", config.network.name.c_str(),
              static_cast<long>(result.parameters), backend->description());
  for (const PhaseForecast& phase : result.phases) {
    std::printf("phase %ld    %ld steps of %ld images, %ld an epoch\n", static_cast<long>(phase.phase + 1),
                static_cast<long>(phase.steps), static_cast<long>(phase.batch), static_cast<long>(phase.epoch_steps));
    std::printf("  memory   %.0f MiB planned, %.0f MiB in the trial\n", megabytes(phase.planned_bytes),
                megabytes(phase.measured_bytes));
    std::printf("  time     %.3f s a step, %s an epoch, %s in all, without evaluations\n", phase.step_seconds,
                clock_text(phase.step_seconds * static_cast<double>(phase.epoch_steps)).c_str(),
                clock_text(phase.step_seconds * static_cast<double>(phase.steps)).c_str());
    if (!phase.small_classes.empty()) {
      std::printf("  repeats  %zu classes have too few images, such as %s\n", phase.small_classes.size(),
                  phase.small_classes.front().c_str());
    }
  }
  return 0;
}

int run(const Arguments& a, Comm& comm) {
  const bool only_prints = !a.verify.empty() || a.print_config || a.print_config_reference || a.dry_run;
  if (!only_prints) {
    return train(a, comm);
  }
  if (comm.size() > 1) {
    fail(ErrorCode::usage, "--verify, --print-config and --dry-run are for one process, without mpirun or srun");
  }
  if (!a.verify.empty()) {
    return verify(a.verify);
  }
  if (a.dry_run) {
    return dry_run(a);
  }
  if (a.print_config) {
    const fs::path run = run_path(a);
    const std::unique_ptr<Checkpoint> before = checkpoint_in(a, run);
    std::fputs(toml_of(resolve(a, before.get(), run), Comments::meanings).c_str(), stdout);
  } else {
    std::fputs(config_reference().c_str(), stdout);
  }
  return 0;
}

}  // namespace

}  // namespace gle::tools

int main(int argc, char** argv) {
  using namespace gle::tools;
  Arguments arguments;
  for (int i = 0; i < argc; ++i) {
    arguments.command += (i == 0 ? "" : " ") + std::string(argv[i]);
  }
  Program program("gle-train", "Trains a network for retrieval: classification first, then the Group Loss.",
                  "gle-train --config tools/configs/demo.toml --out runs/demo");
  add_options(program.options(), arguments);
  return program.run_ranks(argc, argv, [&](gle::Comm& comm) { return run(arguments, comm); });
}
