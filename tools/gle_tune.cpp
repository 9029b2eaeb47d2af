// Searches at random for settings: of training, or of the inference of a network that is trained.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/error.h"
#include "models/files/atomic_file.h"
#include "tools/cli/config_file.h"
#include "tools/cli/device.h"
#include "tools/cli/model.h"
#include "tools/cli/stop_signals.h"
#include "tools/report/report.h"
#include "tools/training_options.h"
#include "tools/training_screen.h"
#include "training/epochs.h"
#include "training/inference_search.h"
#include "training/recipe.h"

namespace gle::tools {

namespace {

namespace fs = std::filesystem;

struct Arguments {
  ConfigArguments config;
  std::string ranges;
  std::string inference;
  std::string out;
  std::string json;
  std::optional<int64_t> trials;
  bool on_test = false;
  bool resume = false;
  bool force = false;
  bool no_report = false;
  DeviceOptions device;
  Verbosity verbosity;
  std::string command;
};

// What is searched for, and where: search.toml.
struct Plan {
  std::string model;  // the checksum of the network whose inference it is; empty: of training
  TrainingConfig config;
  SearchSpace space;
};

constexpr const char* kModel = "# inference of a network with the checksum ";

std::string text_of(const Plan& plan) {
  return (plan.model.empty() ? std::string() : kModel + plan.model + "\n\n") + toml_of(plan.space) + "\n" +
         toml_of(plan.config, Comments::none);
}

Plan plan_in(const std::string& text) {
  Plan plan;
  if (text.starts_with(kModel)) {
    const size_t begin = std::string_view(kModel).size();
    plan.model = text.substr(begin, text.find('\n') - begin);
  }
  read_search(plan.config, plan.space, text, "search.toml");
  return plan;
}

// Trials may be added, and the data may have moved; all else decides what the trials are.
void require_same(const Plan& plan, const Plan& before) {
  const auto differs = [](const auto&... what) {
    fail(ErrorCode::usage, "--resume: ", what..., "; a search keeps what it began with. Begin another with --out");
  };
  if (plan.model != before.model) {
    differs("the network is another than that of the search");
  }
  SearchSpace space = plan.space;
  space.trials = before.space.trials;
  if (space != before.space) {
    differs("the table [tune] is another than that of the search");
  }
  for (const ConfigKey& key : config_keys()) {
    const bool free = key.name.starts_with("data.") && key.resuming == Resuming::may_change;
    const ConfigValue ours = value_of(plan.config, key);
    const ConfigValue theirs = value_of(before.config, key);
    if (!free && ours != theirs) {
      differs(key.name, " is ", toml_of(ours), " here and ", toml_of(theirs), " in the search");
    }
  }
}

// Flags before --set before the environment before files before defaults. `model`: whose inference it is, or null.
Plan resolve(const Arguments& a, const OpenedModel* model, const std::string& before) {
  Plan plan;
  if (model && !a.config.config.empty()) {
    fail(ErrorCode::usage, "--inference takes the config of its run; leave --config away");
  }
  if (model) {
    char checksum[16];
    std::snprintf(checksum, sizeof checksum, "%08x", model->checksum);
    plan.model = checksum;
    read_config(plan.config, Checkpoint(model->path).config(), model->path);
  } else if (!a.config.config.empty()) {
    read_config_file(plan.config, a.config.config);
  }
  if (!a.ranges.empty()) {
    TrainingConfig of_training;
    read_search_file(model ? of_training : plan.config, plan.space, a.ranges);
  } else if (!before.empty()) {
    Plan of_search = plan_in(before);
    plan.space = std::move(of_search.space);
    if (a.config.config.empty()) {
      plan.config = std::move(of_search.config);
    }
  } else {
    fail(ErrorCode::usage, "--ranges is required; tools/configs/tune-paper.toml is such a file");
  }
  override_config(plan.config, a.config);
  if (a.on_test) {
    plan.config.evaluation.on = "test";
  }
  plan.space.trials = a.trials.value_or(plan.space.trials);
  if (model && plan.config.evaluation.on != "held_out" && !a.on_test) {
    fail(ErrorCode::usage, a.inference, ": the run held no classes out to choose on; train with evaluation.on = ",
         "\"held_out\", or choose on the test classes with --on-test");
  }
  if (!before.empty()) {
    require_same(plan, plan_in(before));
  }
  check(plan.config);
  return plan;
}

std::string value_text(const std::optional<double>& share) {
  char text[32] = "";
  if (share) {
    std::snprintf(text, sizeof text, "%.2f", *share * 100);
  }
  return text;
}

// Best first; those without a figure at the end.
std::vector<Trial> ranked(std::vector<Trial> trials) {
  std::stable_sort(trials.begin(), trials.end(),
                   [](const Trial& a, const Trial& b) { return a.best().value_or(-1) > b.best().value_or(-1); });
  return trials;
}

void print_table(const std::vector<Trial>& trials, const std::vector<Range>& ranges, const std::string& metric) {
  std::vector<std::vector<std::string>> rows = {{"trial", "ended", metric, "evaluations"}};
  for (const Range& range : ranges) {
    rows.front().push_back(range.name);
  }
  for (const Trial& trial : ranked(trials)) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {std::to_string(trial.number), trial.ended, value_text(trial.best()),
           std::to_string(trial.evaluations.size())};
    for (const auto& [name, value] : trial.settings) {
      row.push_back(toml_of(value));
    }
    row.resize(rows.front().size());
  }
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    }
    std::printf("%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  }
}

report::Sweep sweep_of(const std::vector<Trial>& trials, const std::string& metric) {
  report::Sweep sweep{.metric = metric};
  for (const Trial& trial : trials) {
    if (trial.best()) {
      const bool drawn = trial.ended != "none" && trial.ended != "published";
      sweep.rows.push_back(
          {drawn ? "trial " + std::to_string(trial.number) : trial.ended, trial.settings, *trial.best()});
    }
  }
  return sweep;
}

void write_report(const SearchFolder& folder, const std::vector<Trial>& trials, const std::string& metric,
                  const std::vector<fs::path>& runs) {
  report::Report report{.runs = {}, .sweep = sweep_of(trials, metric)};
  for (const fs::path& path : runs) {
    report.runs.push_back(report::read_run(path));
  }
  report.why_no_pictures = report.why_no_refinement =
      "This is the page of a search; gle-report RUN shows them of a run.";
  folder.write_text("report.html", report::html_of(report));
}

// How gle-eval is told of the data.
std::string flags_of(const DataConfig& data) {
  return (data.dataset.empty() ? "" : " --dataset " + data.dataset) +
         (data.train_classes.empty() ? "" : " --train-classes " + data.train_classes) +
         (data.allow_outside_root ? " --allow-outside-root" : "") + (data.exif ? " --exif" : "");
}

// How gle-eval is told of these settings.
std::string flags_of(const InferenceSettings& settings) {
  std::string letters;
  std::string values;
  const auto add = [&](const char* flag, double value) {
    char text[48];
    std::snprintf(text, sizeof text, " --%s %.6g", flag, value);
    values += text;
  };
  for (const Strategy strategy : settings.used) {
    letters += letters.empty() ? "" : ",";
    letters += letter_of(strategy);
    switch (strategy) {
      case Strategy::mixed_pooling:
        add("max-share", settings.values.max_share);
        break;
      case Strategy::beta:
        add("beta", settings.values.beta);
        break;
      case Strategy::leaky:
        add("slope", settings.values.slope);
        break;
      case Strategy::rerank:
        add("k1", static_cast<double>(settings.values.rerank.k1));
        add("k2", static_cast<double>(settings.values.rerank.k2));
        add("lambda", settings.values.rerank.lambda);
        break;
      case Strategy::flip:
        break;
    }
  }
  return "--strategies " + (letters.empty() ? "none" : letters) + values;
}

// `what_to_do`: with the best.
int finish(const Arguments& a, const SearchFolder& folder, const Plan& plan, const std::vector<Trial>& trials,
           const std::vector<fs::path>& runs, const std::string& what_to_do) {
  const std::string& metric = plan.config.evaluation.metric;
  const Trial* best = best_of(trials);
  if (!a.no_report && best) {
    write_report(folder, trials, metric, runs);
  }
  const std::string json = json_of(trials, metric);
  if (a.json == "-") {
    std::fputs(json.c_str(), stdout);
  } else {
    print_table(trials, plan.model.empty() ? plan.space.training : plan.space.inference, metric);
    if (best) {
      std::printf("best       trial %lld, %s %s: %s\n", static_cast<long long>(best->number), metric.c_str(),
                  value_text(best->best()).c_str(), what_to_do.c_str());
    }
    if (!a.no_report && best) {
      std::printf("report     %s\n", (folder.path() / "report.html").c_str());
    }
  }
  if (!a.json.empty() && a.json != "-") {
    write_atomically(a.json, {std::as_bytes(std::span(json))});
  }
  if (!best) {
    fail(ErrorCode::runtime, "none of the ", trials.size(), " trials came as far as an evaluation");
  }
  return 0;
}

int stopped(const SearchFolder& folder, size_t trials) {
  std::fprintf(stderr, "gle-tune: stopped after %zu trials; the same with --resume goes on in %s\n", trials,
               folder.path().c_str());
  return kStoppedBySignal;
}

void warn(const std::string& text) { std::fprintf(stderr, "gle-tune: warning: %s\n", text.c_str()); }

// What both searches say while they run; the caller adds to it.
SearchOptions search_options(const Arguments& a, const std::string& metric) {
  return {.threads = a.device.threads,
          .stop = stop_signalled,
          .on_end =
              [&a, metric](const Trial& trial) {
                if (!a.verbosity.quiet) {
                  std::fprintf(stderr, "trial %lld: %s, %s %s\n", static_cast<long long>(trial.number),
                               trial.ended.c_str(), metric.c_str(),
                               trial.best() ? value_text(trial.best()).c_str() : "unknown");
                }
              },
          .warn = warn};
}

int tune_training(const Arguments& a, Backend& backend, const SearchFolder& folder, const Plan& plan) {
  std::optional<TrainingScreen> screen;
  SearchOptions options = search_options(a, plan.config.evaluation.metric);
  options.on_begin = [&](const Trial& trial) {
    screen.emplace(a.verbosity, "trial " + std::to_string(trial.number) + ", ");
  };
  options.on_step = [&](const StepReport& report) { screen->step(report); };
  options.on_end = [&, tell = options.on_end](const Trial& trial) {
    screen.reset();
    tell(trial);
  };
  Search search(backend, plan.config, plan.space, folder, options);
  if (!search.run()) {
    screen.reset();
    return stopped(folder, search.trials().size());
  }
  std::vector<fs::path> runs;
  for (const Trial& trial : search.trials()) {
    runs.push_back(folder.of_trial(trial.number));
  }
  return finish(a, folder, plan, search.trials(), runs, "gle-train --config " + (folder.path() / "best.toml").string());
}

int tune_inference(const Arguments& a, Backend& backend, const SearchFolder& folder, const Plan& plan,
                   OpenedModel& model, const std::shared_ptr<const data::Dataset>& data) {
  InferenceSearch search(backend, *model.network, data, plan.config, plan.space, folder,
                         search_options(a, plan.config.evaluation.metric));
  if (!search.run()) {
    return stopped(folder, search.trials().size());
  }
  const Trial* best = best_of(search.trials());
  return finish(a, folder, plan, search.trials(), {fs::path(model.path).parent_path().parent_path()},
                "gle-eval " + a.inference + " " + plan.config.data.path + flags_of(plan.config.data) + " " +
                    (best ? flags_of(search.settings_of(*best)) : std::string()));
}

int run(const Arguments& a) {
  const auto backend = make_backend(a.device);
  std::optional<OpenedModel> model;
  if (!a.inference.empty()) {
    model = open_model(*backend, a.inference, {});
  }
  std::optional<Plan> plan;
  std::shared_ptr<const data::Dataset> data;  // of an inference
  const auto prepare = [&](const std::string& before, int64_t done) {
    plan = resolve(a, model ? &*model : nullptr, before);
    if (model) {
      data = training_data(plan->config);
      require_searchable(plan->space, *data);
    } else {
      require_searchable(plan->config, plan->space, done);
    }
  };
  if (!a.resume) {
    prepare("", 0);  // a mistake leaves no folder behind, and the search that was there as it is
  } else if (a.out.empty()) {
    fail(ErrorCode::usage, "--resume: which search? say --out DIR");
  } else if (a.force) {
    fail(ErrorCode::usage, "--resume goes on and --force begins anew: say one of them");
  }
  const SearchFolder folder(a.out.empty() ? next_run_folder("runs", "tune") : fs::path(a.out),
                            a.resume  ? RunFolder::Begin::resume
                            : a.force ? RunFolder::Begin::replace
                                      : RunFolder::Begin::fresh);
  if (a.resume) {
    prepare(folder.plan(), std::ssize(folder.results()));
  }
  folder.write_text("search.toml", text_of(*plan));
  folder.write_text("command.txt", a.command + "\n");
  folder.write_text("env.json", environment_text(plan->config, *backend));
  watch_stop_signals();
  return model ? tune_inference(a, *backend, folder, *plan, *model, data) : tune_training(a, *backend, folder, *plan);
}

int main(int argc, char** argv) {
  Arguments a;
  for (int i = 0; i < argc; ++i) {
    a.command += (i == 0 ? "" : " ") + std::string(argv[i]);
  }
  Program program("gle-tune",
                  "Searches at random for settings of training, in short runs, and gives the hopeless up early; or for "
                  "the settings of GL++ inference of a run. Stopped in whatever way, it goes on with --resume.",
                  "gle-tune --config run.toml --ranges ranges.toml --out runs/tune");
  CLI::App& app = program.options();
  add_config_options(app, a.config);
  app.add_option("--ranges", a.ranges, "TOML file with a table [tune], and keys of the config that go before --config")
      ->option_text("FILE");
  app.add_option("--inference", a.inference, "search for inference settings of this run, on its held-out classes")
      ->option_text("RUN");
  app.add_flag("--on-test", a.on_test, "evaluate on the test classes, as the authors did");
  app.add_option("--trials", a.trials, "tune.trials; a resumed search may have more")
      ->option_text("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--out", a.out, "folder of the search; default: runs/tune-<number>")->option_text("DIR");
  app.add_flag("--resume", a.resume, "go on with the search in --out, or begin it");
  app.add_flag("--force", a.force, "begin anew where there is a search");
  app.add_option("--json", a.json, "file for the results; - is stdout, without the table")->option_text("FILE");
  app.add_flag("--no-report", a.no_report, "no report.html");
  add_training_device_options(app, a.device);
  add_verbosity_options(app, a.verbosity);
  return program.run(argc, argv, [&] { return run(a); });
}

}  // namespace

}  // namespace gle::tools

int main(int argc, char** argv) { return gle::tools::main(argc, argv); }
