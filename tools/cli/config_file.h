#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "training/config.h"
#include "training/search_space.h"

namespace gle::tools {

// Sets what a TOML text says. ErrorCode::usage, with `name` and the line, for text that is no TOML, keys that there are
// not, and values that do not fit.
void read_config(TrainingConfig& config, const std::string& text, const std::string& name);
void read_config_file(TrainingConfig& config, const std::filesystem::path& path);

// The same, with a table [tune] of ranges beside the sections.
void read_search(TrainingConfig& config, SearchSpace& space, const std::string& text, const std::string& name);
void read_search_file(TrainingConfig& config, SearchSpace& space, const std::filesystem::path& path);

// GLE_PHASE2_LEARNING_RATE and the like.
void read_config_environment(TrainingConfig& config);
// "phase2.learning_rate=1e-3"
void read_config_settings(TrainingConfig& config, const std::vector<std::string>& settings);

}  // namespace gle::tools
