// The page docs/configuration.md, from the table of keys.
#include <algorithm>
#include <cmath>

#include "training/config.h"

namespace gle {

namespace {

struct Section {
  std::string name;
  std::vector<const ConfigKey*> keys;
};

std::string key_part(const ConfigKey& key) { return key.name.substr(key.name.find('.') + 1); }

std::vector<Section> sections() {
  std::vector<Section> result;
  for (const ConfigKey& key : config_keys()) {
    const std::string name = key.name.substr(0, key.name.find('.'));
    if (result.empty() || result.back().name != name) {
      result.push_back({name, {}});
    }
    result.back().keys.push_back(&key);
  }
  return result;
}

bool same_keys(const Section& a, const Section& b) {
  return std::equal(a.keys.begin(), a.keys.end(), b.keys.begin(), b.keys.end(),
                    [](const ConfigKey* x, const ConfigKey* y) { return key_part(*x) == key_part(*y); });
}

// A limit that is there only so that numbers stay sane is none to a reader.
std::string limits(const ConfigKey& key) {
  constexpr double kSane = 1e6;
  const bool from = std::fabs(key.least) < kSane;
  const bool to = key.most < kSane;
  const std::string least = number_text(key.least);
  return from && to ? ", " + least + " to " + number_text(key.most) : from ? ", from " + least : "";
}

std::string values(const ConfigKey& key) {
  if (key.choices.empty()) {
    return key.type() + limits(key);
  }
  std::string all;
  for (const std::string& choice : key.choices) {
    all += (all.empty() ? "`" : ", `") + choice + "`";
  }
  return all;
}

std::string default_of(const ConfigKey& key) {
  const std::string text = toml_of(value_of({}, key));
  return text == "\"\"" ? "empty" : "`" + text + "`";
}

std::string row(const ConfigKey& key, const std::string& standard) {
  const char* mark = key.resuming == Resuming::may_change ? " *" : "";
  return "| `" + key_part(key) + "`" + mark + " | " + values(key) + " | " + standard + " | " + key.meaning + " |\n";
}

}  // namespace

std::string config_reference() {
  std::string page =
      "# Configuration\n\n"
      "Every key that `gle-train --config FILE` knows. `gle-train --print-config-reference` writes this page, from\n"
      "`training/config_keys.cpp`.\n\n"
      "A file is TOML: `[phase2]`, then `learning_rate = 2e-4`. `--set phase2.learning_rate=2e-4` and the variable\n"
      "`GLE_PHASE2_LEARNING_RATE` set the same key; a flag goes before `--set`, that before the environment, that "
      "before\n"
      "the file. A key marked * may have another value when a run is resumed, all others keep theirs.\n";
  const std::vector<Section> all = sections();
  for (size_t i = 0; i < all.size(); ++i) {
    const bool twins = i + 1 < all.size() && same_keys(all[i], all[i + 1]);
    page += "\n## [" + all[i].name + "]" + (twins ? ", [" + all[i + 1].name + "]" : "") +
            "\n\n| key | value | default | meaning |\n|---|---|---|---|\n";
    for (size_t k = 0; k < all[i].keys.size(); ++k) {
      std::string standard = default_of(*all[i].keys[k]);
      if (twins && default_of(*all[i + 1].keys[k]) != standard) {
        standard += ", " + default_of(*all[i + 1].keys[k]);
      }
      page += row(*all[i].keys[k], standard);
    }
    i += twins ? 1 : 0;
  }
  return page;
}

}  // namespace gle
