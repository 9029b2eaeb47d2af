#include "tools/cli/config_file.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
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

bool has_section(const std::string& name) {
  return std::ranges::any_of(config_keys(), [&](const ConfigKey& key) { return key.name.starts_with(name + "."); });
}

toml::table parsed(const std::string& text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& e) {
    fail(ErrorCode::usage, name, ":", e.source().begin.line, ": ", e.description());
  }
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (std::filesystem::is_directory(path) || !file || !(text << file.rdbuf())) {
    fail(ErrorCode::usage, path.string(), ": the config cannot be read");
  }
  return text.str();
}

void read_sections(TrainingConfig& config, const toml::table& table, const std::string& name) {
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
    if (keys->empty() && !has_section(section_name)) {
      static_cast<void>(key_at(section_name + ".", place_of(name, node)));
    }
  }
}

constexpr const char* kTune = "tune";

const toml::table& table_at(const toml::node& node, const std::string& name, const std::string& what) {
  if (const toml::table* table = node.as_table()) {
    return *table;
  }
  fail(ErrorCode::usage, place_of(name, node), ": ", what, ": expected a table");
}

using AddRange = void (*)(SearchSpace&, const std::string&, const std::string&, const std::vector<ConfigValue>&,
                          const std::string&);

// key = { kind = [values] }
void read_range(SearchSpace& space, const std::string& key, const toml::node& node, const std::string& name,
                AddRange add) {
  const std::string where = place_of(name, node);
  const toml::table* range = node.as_table();
  const toml::array* list = range && range->size() == 1 ? range->begin()->second.as_array() : nullptr;
  if (!list) {
    fail(ErrorCode::usage, where, ": ", key,
         ": expected { uniform = [A, B] }, { log_uniform = [A, B] } or { choice = [A, B, ...] }");
  }
  std::vector<ConfigValue> values;
  for (const toml::node& element : *list) {
    values.push_back(value_in(element, where, key));
  }
  add(space, key, std::string(range->begin()->first.str()), values, where);
}

int64_t count_in(const toml::node& node, const std::string& where, const std::string& key, int64_t least) {
  const auto* number = node.as_integer();
  if (!number || number->get() < least || number->get() > 1'000'000) {
    fail(ErrorCode::usage, where, ": tune.", key, ": expected a whole number from ", least, " to 1000000");
  }
  return number->get();
}

void read_tune(SearchSpace& space, const toml::table& tune, const std::string& name) {
  for (const auto& [key_node, node] : tune) {
    const std::string key(key_node.str());
    const std::string where = place_of(name, node);
    if (key == "trials") {
      space.trials = count_in(node, where, key, 1);
    } else if (key == "grace") {
      space.grace = count_in(node, where, key, 0);
    } else if (key == "peers") {
      space.peers = count_in(node, where, key, 0);
    } else if (key == "per_embedding") {
      space.per_embedding = count_in(node, where, key, 1);
    } else if (key == "batch") {
      const ConfigValue value = value_in(node, where, key);
      const auto* ends = std::get_if<std::vector<double>>(&value);
      if (!ends || ends->size() != 2 || (*ends)[0] > (*ends)[1]) {
        fail(ErrorCode::usage, where, ": tune.batch: expected [LEAST, MOST] images");
      }
      space.batch = *ends;
    } else if (key == "ranges") {
      for (const auto& [section, keys] : table_at(node, name, "tune.ranges")) {
        for (const auto& [last, range] : table_at(keys, name, "tune.ranges." + std::string(section.str()))) {
          read_range(space, std::string(section.str()) + "." + std::string(last.str()), range, name,
                     add_training_range);
        }
      }
    } else if (key == "inference") {
      for (const auto& [last, range] : table_at(node, name, "tune.inference")) {
        read_range(space, std::string(last.str()), range, name, add_inference_range);
      }
    } else {
      fail(ErrorCode::usage, where, ": there is no key 'tune.", key, "'; did you mean 'tune.",
           nearest_name(key, {"trials", "grace", "peers", "per_embedding", "batch", "ranges", "inference"}), "'?");
    }
  }
}

// GLE_<SECTION>_... that no key has is a mistake, as in a file.
void require_known_environment() {
  std::vector<std::string> names;
  std::set<std::string> sections;
  for (const ConfigKey& key : config_keys()) {
    names.push_back(environment_name(key));
    const size_t after_key = names.back().size() - (key.name.size() - key.name.find('.') - 1);
    sections.insert(names.back().substr(0, after_key));
  }
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    const bool of_section = std::ranges::any_of(sections, [&](const auto& s) { return name.starts_with(s); });
    if (of_section && std::ranges::find(names, name) == names.end()) {
      fail(ErrorCode::usage, name, ": no key has this name; did you mean ", nearest_name(name, names), "?");
    }
  }
}

}  // namespace

void read_config(TrainingConfig& config, const std::string& text, const std::string& name) {
  read_sections(config, parsed(text, name), name);
}

void read_config_file(TrainingConfig& config, const std::filesystem::path& path) {
  read_config(config, text_of(path), path.string());
}

void read_search(TrainingConfig& config, SearchSpace& space, const std::string& text, const std::string& name) {
  toml::table table = parsed(text, name);
  const toml::node* tune = table.get(kTune);
  if (!tune) {
    fail(ErrorCode::usage, name, ": has no table [tune]: it says nothing of what to search for");
  }
  read_tune(space, table_at(*tune, name, kTune), name);
  table.erase(kTune);
  read_sections(config, table, name);
}

void read_search_file(TrainingConfig& config, SearchSpace& space, const std::filesystem::path& path) {
  read_search(config, space, text_of(path), path.string());
}

void read_config_environment(TrainingConfig& config) {
  require_known_environment();
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
