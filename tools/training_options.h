#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/backend.h"
#include "tools/cli/program.h"
#include "training/config.h"

namespace gle::tools {

// What a program is told of a training config beside its file.
struct ConfigArguments {
  std::string config;
  std::vector<std::string> settings;
  std::optional<std::string> data, weights;
  std::optional<int64_t> seed, workers;
};
// --config, --set, --data, --weights, --seed, --workers.
void add_config_options(CLI::App& app, ConfigArguments& arguments);
// The environment, then --set, then flags: each goes before what is there.
void override_config(TrainingConfig& config, const ConfigArguments& arguments);

// env.json: versions and machine.
std::string environment_text(const TrainingConfig& config, const Backend& backend,
                             const std::string& ranks = "one process");

}  // namespace gle::tools
