// Trains a network as a config says, in a folder of its own.
#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "data/decode.h"
#include "engine/error.h"
#include "tools/cli/command.h"
#include "tools/cli/config_file.h"
#include "tools/cli/device.h"
#include "tools/cli/program.h"
#include "tools/cli/progress.h"
#include "training/dry_run.h"
#include "training/epochs.h"
#include "training/recipe.h"
#include "training/stop_signals.h"
#include "training/trainer.h"

namespace gle::tools {

namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string config;
  std::vector<std::string> settings;
  std::optional<std::string> data, weights;
  std::optional<int64_t> seed, workers;
  std::string out;
  std::string resume;
  std::string verify;
  bool force = false;
  bool print_config = false;
  bool print_config_reference = false;
  bool dry_run = false;
  DeviceOptions device;
  Verbosity verbosity;
  std::string command;
};

void add_options(CLI::App& app, Arguments& a) {
  app.add_option("--config", a.config, "TOML file; tools/configs has some")->option_text("FILE");
  std::vector<std::string> settings;
  for (const ConfigKey& key : config_keys()) {
    settings.push_back(key.name + "=");
  }
  app.add_option("--set", a.settings, "a key of the config, again for another")
      ->option_text("KEY=VALUE")
      ->take_all()
      ->check(suggested(settings));
  app.add_option("--data", a.data, "data set: the key data.path")->option_text("PATH");
  app.add_option("--weights", a.weights, "weights to begin with: network.weights")->option_text("FILE");
  app.add_option("--seed", a.seed, "run.seed")->option_text("N");
  app.add_option("--workers", a.workers, "data.workers")->option_text("N");
  app.add_option("--out", a.out, "folder of the run; default: runs/<data set>-<number>")->option_text("DIR");
  app.add_option("--resume", a.resume, "auto: from the newest whole checkpoint of --out, or the beginning; or a file")
      ->option_text("auto|FILE");
  app.add_flag("--force", a.force, "begin anew where there is a run");
  app.add_flag("--print-config", a.print_config, "print the config that the run would have, and end");
  app.add_flag("--print-config-reference", a.print_config_reference,
               "print all keys as docs/configuration.md, and end");
  app.add_flag("--dry-run", a.dry_run, "check data, memory and speed, and end");
  app.add_option("--verify", a.verify, "check every byte of a checkpoint, and end")->option_text("FILE");
  add_device_options(app, a.device);
  add_verbosity_options(app, a.verbosity);
}

// Flags before --set before the environment before files before defaults.
TrainingConfig resolve(const Arguments& a, const Checkpoint* before) {
  TrainingConfig config;
  if (before) {
    read_config(config, before->config(), before->path().string());
  }
  const TrainingConfig of_run = config;
  if (!a.config.empty()) {
    if (before) {
      config = {};
    }
    read_config_file(config, a.config);
  }
  read_config_environment(config);
  read_config_settings(config, a.settings);
  const auto flag = [&](const auto& value, const char* key) {
    if (value) {
      set_value(config, config_key(key), *value, "the command line");
    }
  };
  flag(a.data, "data.path");
  flag(a.weights, "network.weights");
  flag(a.seed, "run.seed");
  flag(a.workers, "data.workers");
  if (before) {
    require_resumable(config, of_run);
  }
  return config;
}

std::string environment_text(const TrainingConfig& config, const Backend& backend) {
  utsname system{};
  ::uname(&system);
  std::string cpu = "unknown";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      cpu = line.substr(line.find(':') + 2);
      break;
    }
  }
  return "{\n  \"version\": " + json_text(GLE_VERSION) + ",\n  \"compiler\": " + json_text(__VERSION__) +
         ",\n  \"backend\": " + json_text(backend.description()) +
         ",\n  \"decoders\": " + json_text(data::decoder_versions()) +
         ",\n  \"system\": " + json_text(std::string(system.sysname) + " " + system.release) +
         ",\n  \"cpu\": " + json_text(cpu) + ",\n  \"seed\": " + std::to_string(config.run.seed) + "\n}\n";
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

class Screen {
 public:
  explicit Screen(const Verbosity& verbosity) : verbosity_(verbosity) {}

  void begin(int64_t step) { began_at_ = step; }
  void step(const StepReport& report) {
    if (!bar_ || phase_ != report.position.phase) {
      bar_.emplace("phase " + std::to_string(report.position.phase + 1), report.total_steps, verbosity_, "step",
                   std::max(began_at_, report.position.step - 1));
      phase_ = report.position.phase;
      start_ = std::chrono::steady_clock::now();
      images_ = 0;
    }
    images_ += report.images;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    char note[160];
    const bool terms = report.result.group != 0 || report.result.cross_entropy != 0;
    int length = std::snprintf(note, sizeof note, "epoch %ld, loss %.3f", static_cast<long>(report.position.epoch),
                               report.result.loss);
    if (terms) {
      length += std::snprintf(note + length, sizeof note - static_cast<size_t>(length), " (group %.3f, ce %.3f)",
                              report.result.group, report.result.cross_entropy);
    }
    std::snprintf(note + length, sizeof note - static_cast<size_t>(length), ", %.0f images/s",
                  seconds > 0 ? static_cast<double>(images_) / seconds : 0);
    bar_->update(report.position.step, note);
  }
  void evaluation(const EvaluationReport& report) {
    if (!verbosity_.quiet) {
      std::fprintf(stderr, "\nepoch %ld, step %ld: %s%s\n", static_cast<long>(report.position.epoch),
                   static_cast<long>(report.position.step), text_of(report.metrics).c_str(),
                   report.best ? ", the best so far" : "");
    }
  }
  void finish() { bar_.reset(); }

  static std::string text_of(const RankingMetrics& metrics) {
    std::string text;
    char number[48];
    for (size_t i = 0; i < metrics.ks.size(); ++i) {
      std::snprintf(number, sizeof number, "R@%ld %.1f  ", static_cast<long>(metrics.ks[i]), metrics.recall[i] * 100);
      text += number;
    }
    std::snprintf(number, sizeof number, "mAP %.1f", metrics.map * 100);
    return text + number;
  }

 private:
  const Verbosity& verbosity_;
  std::optional<Progress> bar_;
  std::chrono::steady_clock::time_point start_;
  int64_t images_ = 0;
  int64_t phase_ = -1;
  int64_t began_at_ = 0;
};

// `began`: the step that it resumed from. A run that was complete keeps its summary.
void summarise(const RunFolder& folder, const Outcome& outcome, int64_t began, double seconds) {
  const Position& at = outcome.position;
  std::string json = "{\"steps\": " + std::to_string(at.step) + ", \"epochs\": " + std::to_string(at.epoch) +
                     ", \"skipped\": " + std::to_string(at.skipped) + ", \"best\": " + json_number(at.best) +
                     ", \"best_step\": " + std::to_string(at.best_step);
  if (outcome.last) {
    for (size_t i = 0; i < outcome.last->ks.size(); ++i) {
      json += ", \"R@" + std::to_string(outcome.last->ks[i]) + "\": " + json_number(outcome.last->recall[i]);
    }
    json += ", \"mAP\": " + json_number(outcome.last->map);
  }
  if (at.step > began || !fs::exists(folder.path() / "summary.json")) {
    folder.write_text("summary.json", json + "}\n");
  }
  std::printf("run        %s\nsteps      %ld in %ld epochs, %s\n", folder.path().c_str(), static_cast<long>(at.step),
              static_cast<long>(at.epoch), clock_text(seconds).c_str());
  if (outcome.last) {
    std::printf("last       %s\n", Screen::text_of(*outcome.last).c_str());
  }
  if (at.best_step >= 0) {
    std::printf("best       %.1f at step %ld: %s\n", at.best * 100, static_cast<long>(at.best_step),
                folder.best().c_str());
  }
}

int train(const Arguments& a) {
  const bool automatic = a.resume == "auto";
  fs::path path = a.out;
  if (automatic && path.empty()) {
    fail(ErrorCode::usage, "--resume auto: which run? say --out DIR");
  }
  const auto warn = [](const std::string& text) { std::fprintf(stderr, "gle-train: warning: %s\n", text.c_str()); };
  std::unique_ptr<Checkpoint> before;
  if (!a.resume.empty() && !automatic) {
    before = std::make_unique<Checkpoint>(a.resume);
    path = path.empty() ? fs::absolute(a.resume).parent_path().parent_path() : path;
  }
  std::optional<RunFolder> folder;
  if (!a.resume.empty()) {
    folder.emplace(path, RunFolder::Begin::resume);
    before = before ? std::move(before) : folder->newest(warn);
  }
  const TrainingConfig config = resolve(a, before.get());
  check(config);
  const auto data = training_data(config);
  const auto backend = make_backend(a.device);
  if (!folder) {
    path = path.empty() ? next_run_folder("runs", data->name) : path;
    folder.emplace(path, a.force ? RunFolder::Begin::replace : RunFolder::Begin::fresh);
  }
  for (const std::string& text : data->warnings) {
    warn(text);
  }
  folder->write_text("config.toml", toml_of(config, Comments::none));
  folder->write_text("command.txt", a.command + "\n");
  folder->write_text("env.json", environment_text(config, *backend));

  watch_stop_signals();
  Screen screen(a.verbosity);
  Trainer trainer(*backend, config, data, *folder,
                  {.threads = a.device.threads,
                   .stop = stop_signalled,
                   .checkpoint = take_checkpoint_signal,
                   .on_step = [&](const StepReport& report) { screen.step(report); },
                   .on_evaluation = [&](const EvaluationReport& report) { screen.evaluation(report); },
                   .warn = warn});
  if (before) {
    trainer.resume(*before);
    before.reset();
    screen.begin(trainer.position().step);
  }
  const int64_t began = trainer.position().step;
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = trainer.run();
  screen.finish();
  if (outcome.stopped) {
    constexpr int kStopped = 75;
    std::fprintf(stderr, "gle-train: stopped at step %ld; --resume auto --out %s goes on\n",
                 static_cast<long>(outcome.position.step), folder->path().c_str());
    return kStopped;
  }
  summarise(*folder, outcome, began, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return 0;
}

double megabytes(size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

int dry_run(const Arguments& a) {
  const TrainingConfig config = resolve(a, nullptr);
  check(config);
  const auto data = training_data(config);
  const auto backend = make_backend(a.device);
  const Forecast result = forecast(*backend, config, data);
  std::printf("data       %s: %ld images of %d classes to train on; %ld queries, %ld in the gallery\n",
              data->name.c_str(), static_cast<long>(result.train_images), result.train_classes,
              static_cast<long>(result.queries), static_cast<long>(result.gallery));
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

int run(const Arguments& a) {
  if (!a.verify.empty()) {
    return verify(a.verify);
  }
  if (a.print_config) {
    std::fputs(toml_of(resolve(a, nullptr), Comments::meanings).c_str(), stdout);
    return 0;
  }
  if (a.print_config_reference) {
    std::fputs(config_reference().c_str(), stdout);
    return 0;
  }
  return a.dry_run ? dry_run(a) : train(a);
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
  return program.run(argc, argv, [&] { return run(arguments); });
}
