#include "tools/training_options.h"

#include <sys/utsname.h>

#include <fstream>

#include "data/decode.h"
#include "tools/cli/command.h"
#include "tools/cli/config_file.h"
#include "tools/revision.h"
#include "training/metrics_log.h"

namespace gle::tools {

void add_config_options(CLI::App& app, ConfigArguments& a) {
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
}

void override_config(TrainingConfig& config, const ConfigArguments& a) {
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
}

namespace {

// As in "AMD EPYC, family 26, model 2": by their names alone processors of a cloud are often all the same.
std::string processor() {
  std::string name = "unknown", family, model;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line) && !line.empty();) {  // up to the second core
    const size_t colon = line.find(':');
    if (colon == std::string::npos || colon + 2 >= line.size()) {
      continue;
    }
    const std::string key = line.substr(0, line.find_last_not_of("\t ", colon - 1) + 1), value = line.substr(colon + 2);
    if (key == "model name") {
      name = value;
    } else if (key == "cpu family") {
      family = ", family " + value;
    } else if (key == "model") {
      model = ", model " + value;
    }
  }
  return name + family + model;
}

}  // namespace

std::string environment_text(const TrainingConfig& config, const Backend& backend, const std::string& ranks) {
  utsname system{};
  ::uname(&system);
  return "{\n  \"version\": " + json_text(GLE_VERSION) + ",\n  \"revision\": " + json_text(revision()) +
         ",\n  \"compiler\": " + json_text(__VERSION__) + ",\n  \"backend\": " + json_text(backend.description()) +
         ",\n  \"ranks\": " + json_text(ranks) + ",\n  \"decoders\": " + json_text(data::decoder_versions()) +
         ",\n  \"system\": " + json_text(std::string(system.sysname) + " " + system.release) +
         ",\n  \"cpu\": " + json_text(processor()) + ",\n  \"seed\": " + std::to_string(config.run.seed) + "\n}\n";
}

}  // namespace gle::tools
