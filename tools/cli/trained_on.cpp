#include "tools/cli/trained_on.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "engine/error.h"
#include "tools/cli/config_file.h"

namespace gle::tools {

namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.toml";

struct TrainedOn {
  std::string run;
  DataConfig data;
};

fs::path without_slash(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

// The folder of a run, of the run itself or of a file in its checkpoints/.
std::optional<fs::path> run_of(const std::string& model) {
  const fs::path path = without_slash(model);
  const fs::path above = path.parent_path();
  std::error_code ignored;
  if (fs::is_regular_file(path / kConfig, ignored)) {
    return path;
  }
  return above.filename() == "checkpoints" && fs::is_regular_file(above.parent_path() / kConfig, ignored)
             ? std::optional(above.parent_path())
             : std::nullopt;
}

// A path that is not there any more may have been another way to the same data.
bool is_same_data(const fs::path& trained, const fs::path& path) {
  std::error_code problem;
  if (trained.empty() || fs::exists(trained, problem)) {
    return fs::equivalent(trained, path, problem);
  }
  return without_slash(trained).filename() == without_slash(path).filename();
}

std::optional<TrainedOn> trained_on(const std::string& model, const std::string& path, const Verbosity& verbosity) {
  const std::optional<fs::path> run = run_of(model);
  if (!run) {
    return std::nullopt;
  }
  TrainingConfig config;
  try {
    read_config_file(config, *run / kConfig);
  } catch (const Error& e) {
    if (!verbosity.quiet) {
      std::fprintf(stderr, "%s; what the run was trained on is not known\n", e.what());
    }
    return std::nullopt;
  }
  return is_same_data(config.data.path, path) ? std::optional(TrainedOn{model, config.data}) : std::nullopt;
}

// The run that says it of the path, if any does.
std::optional<TrainedOn> trained_on(const std::vector<std::string>& models, const std::string& path,
                                    const Verbosity& verbosity) {
  std::optional<TrainedOn> first;
  for (const std::string& model : models) {
    const std::optional<TrainedOn> next = trained_on(model, path, verbosity);
    if (first && next && next->data.train_classes != first->data.train_classes) {
      fail(ErrorCode::usage, first->run, " was trained on the classes '", first->data.train_classes, "' of ", path,
           ", ", next->run, " on '", next->data.train_classes,
           "'; say with --train-classes which are not to be tested");
    }
    first = first ? first : next;
  }
  return first;
}

bool has_a_split(const data::Dataset& data) {
  return data.train_classes == 0 ||
         !std::ranges::all_of(data.items, [](const data::Item& item) { return item.train && item.query; });
}

}  // namespace

std::shared_ptr<const data::Dataset> open_dataset_of(const std::vector<std::string>& models, const std::string& path,
                                                     DatasetArguments& arguments, const Verbosity& verbosity) {
  if (!arguments.train_classes.empty()) {
    return open_dataset(path, arguments, verbosity);
  }
  const std::optional<TrainedOn> trained = trained_on(models, path, verbosity);
  if (!trained) {
    return open_dataset(path, arguments, verbosity);
  }
  arguments.dataset = arguments.dataset.empty() ? trained->data.dataset : arguments.dataset;
  const std::string& classes = trained->data.train_classes;
  if (!classes.empty() && !has_a_split(*open_dataset(path, arguments, {.quiet = true}))) {
    arguments.train_classes = classes;
    if (!verbosity.quiet) {
      std::fprintf(stderr,
                   "%s: %s was trained on its classes %s, the others are tested; --train-classes says otherwise\n",
                   path.c_str(), trained->run.c_str(), classes.c_str());
    }
  }
  return open_dataset(path, arguments, verbosity);
}

}  // namespace gle::tools
