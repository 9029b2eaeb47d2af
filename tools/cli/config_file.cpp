#include "tools/cli/config_file.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include <toml++/toml.h>

#include "engine/error.h"

namespace gle::tools {

namespace {

std::string place_of(const std::string& name, const toml::node& node) {
  return name + ":" + std::to_string(node.source().begin.line);
}

ConfigValue value_in(const toml::node& node, const std::string& where, const std::string& key) {
  if (const auto* value = node.as_boolean()) {
    return value->get();
  }
  if (const auto* value = node.as_integer()) {
    return value->get();
  }
  if (const auto* value = node.as_floating_point()) {
    return value->get();
  }
  if (const auto* value = node.as_string()) {
    return value->get();
  }
  if (const auto* list = node.as_array()) {
    std::vector<double> numbers;
    for (const toml::node& element : *list) {
      const auto number = element.value<double>();
      if (!number || element.is_string() || element.is_boolean()) {
        fail(ErrorCode::usage, where, ": ", key, ": expected a list of numbers");
      }
      numbers.push_back(*number);
    }
    return numbers;
  }
  fail(ErrorCode::usage, where, ": ", key, ": expected true or false, a number, a text or a list of numbers");
}

const ConfigKey& key_at(const std::string& name, const std::string& where) {
  try {
    return config_key(name);
  } catch (const Error& e) {
    fail(ErrorCode::usage, where, ": ", e.what());
  }
}

}  // namespace

void read_config(TrainingConfig& config, const std::string& text, const std::string& name) {
  toml::table table;
  try {
    table = toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    fail(ErrorCode::usage, name, ":", e.source().begin.line, ": ", e.description());
  }
  for (const auto& [section, node] : table) {
    const std::string section_name(section.str());
    const toml::table* keys = node.as_table();
    if (!keys) {
      fail(ErrorCode::usage, place_of(name, node), ": '", section_name, "' stands outside of any section");
    }
    for (const auto& [key, value] : *keys) {
      const std::string full = section_name + "." + std::string(key.str());
      const std::string where = place_of(name, value);
      const ConfigKey& known = key_at(full, where);
      set_value(config, known, value_in(value, where, full), where);
    }
    if (keys->empty()) {
      static_cast<void>(key_at(section_name + ".", place_of(name, node)));
    }
  }
}

void read_config_file(TrainingConfig& config, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (std::filesystem::is_directory(path) || !file || !(text << file.rdbuf())) {
    fail(ErrorCode::usage, path.string(), ": the config cannot be read");
  }
  read_config(config, text.str(), path.string());
}

void read_config_environment(TrainingConfig& config) {
  for (const ConfigKey& key : config_keys()) {
    const std::string name = environment_name(key);
    if (const char* value = std::getenv(name.c_str())) {
      set_text(config, key, value, name);
    }
  }
}

void read_config_settings(TrainingConfig& config, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      fail(ErrorCode::usage, "--set ", setting, ": expected section.key=value");
    }
    set_text(config, key_at(setting.substr(0, equals), "--set"), setting.substr(equals + 1), "--set");
  }
}

}  // namespace gle::tools
