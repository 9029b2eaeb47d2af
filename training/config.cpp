#include "training/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/error.h"
#include "training/metrics_log.h"

namespace gle {

namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// The shortest text that gives the same number, with a point so that TOML takes it for a real.
std::string real_text(double value) {
  char text[32];
  char* const end = std::to_chars(text, text + sizeof text, value).ptr;
  std::string result(text, end);
  if (result.find_first_of(".en") == std::string::npos) {
    result += ".0";
  }
  return result;
}

std::string shown(const ConfigValue& value) { return toml_of(value); }

void check_number(const ConfigKey& key, double value, const std::string& origin) {
  if (!std::isfinite(value) || value < key.least || value > key.most) {
    fail(ErrorCode::usage, origin, ": ", key.name, " is ", number_text(value), "; expected ", number_text(key.least),
         " to ", number_text(key.most));
  }
}

void check_choice(const ConfigKey& key, const std::string& text, const std::string& origin) {
  if (key.choices.empty() || std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end()) {
    return;
  }
  std::string all;
  for (const std::string& choice : key.choices) {
    all += (all.empty() ? "" : ", ") + choice;
  }
  fail(ErrorCode::usage, origin, ": ", key.name, " is '", text, "'; expected one of ", all, " (did you mean '",
       nearest_name(text, key.choices), "'?)");
}

template <class Number>
bool parse(std::string_view text, Number& value) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  return problem == std::errc() && end == text.data() + text.size();
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool parse_list(std::string_view text, std::vector<double>& values) {
  text = trimmed(text);
  if (text.starts_with('[') && text.ends_with(']')) {
    text = trimmed(text.substr(1, text.size() - 2));
  }
  while (!text.empty()) {
    const size_t comma = text.find(',');
    double value = 0;
    if (!parse(trimmed(text.substr(0, comma)), value)) {
      return false;
    }
    values.push_back(value);
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  }
  return true;
}

ConfigPlace place_in(const ConfigKey& key) {
  static TrainingConfig any;
  return key.place(any);
}

}  // namespace

std::string number_text(double value) {
  char text[32];
  for (int digits = 6; digits <= std::numeric_limits<double>::max_digits10; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value) {
      break;
    }
  }
  return text;
}

const char* ConfigKey::type() const {
  return std::visit(Overloaded{[](bool*) { return "true or false"; }, [](int64_t*) { return "a whole number"; },
                               [](double*) { return "a number"; }, [](std::string*) { return "a text"; },
                               [](std::vector<double>*) { return "a list of numbers"; }},
                    place_in(*this));
}

std::string nearest_name(std::string_view wrong, const std::vector<std::string>& names) {
  std::string best;
  size_t least = std::numeric_limits<size_t>::max();
  for (const std::string& name : names) {
    std::vector<size_t> row(wrong.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = std::exchange(row[0], i);
      for (size_t j = 1; j <= wrong.size(); ++j) {
        const size_t change = diagonal + (name[i - 1] == wrong[j - 1] ? 0 : 1);
        diagonal = std::exchange(row[j], std::min({change, row[j] + 1, row[j - 1] + 1}));
      }
    }
    if (row.back() < least) {
      least = row.back();
      best = name;
    }
  }
  return best;
}

const ConfigKey& config_key(std::string_view name) {
  const auto& keys = config_keys();
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const ConfigKey& key) { return key.name == name; });
  if (found != keys.end()) {
    return *found;
  }
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const ConfigKey& key : keys) {
    names.push_back(key.name);
  }
  fail(ErrorCode::usage, "there is no key '", name, "'; did you mean '", nearest_name(name, names), "'?");
}

void set_value(TrainingConfig& config, const ConfigKey& key, const ConfigValue& value, const std::string& origin) {
  const auto wrong = [&]() {
    fail(ErrorCode::usage, origin, ": ", key.name, " is ", shown(value), "; expected ", key.type());
  };
  std::visit(Overloaded{[&](bool* place) {
                          const bool* found = std::get_if<bool>(&value);
                          found ? void(*place = *found) : wrong();
                        },
                        [&](int64_t* place) {
                          const int64_t* found = std::get_if<int64_t>(&value);
                          if (!found) {
                            wrong();
                          }
                          check_number(key, static_cast<double>(*found), origin);
                          *place = *found;
                        },
                        [&](double* place) {
                          const int64_t* whole = std::get_if<int64_t>(&value);
                          const double* real = std::get_if<double>(&value);
                          if (!whole && !real) {
                            wrong();
                          }
                          const double number = whole ? static_cast<double>(*whole) : *real;
                          check_number(key, number, origin);
                          *place = number;
                        },
                        [&](std::string* place) {
                          const std::string* found = std::get_if<std::string>(&value);
                          if (!found) {
                            wrong();
                          }
                          check_choice(key, *found, origin);
                          *place = *found;
                        },
                        [&](std::vector<double>* place) {
                          const auto* found = std::get_if<std::vector<double>>(&value);
                          if (!found) {
                            wrong();
                          }
                          for (const double number : *found) {
                            check_number(key, number, origin);
                          }
                          *place = *found;
                        }},
             key.place(config));
}

void set_text(TrainingConfig& config, const ConfigKey& key, const std::string& text, const std::string& origin) {
  const auto wrong = [&]() {
    fail(ErrorCode::usage, origin, ": ", key.name, " is '", text, "'; expected ", key.type());
  };
  const ConfigValue value = std::visit(Overloaded{[&](bool*) -> ConfigValue {
                                                    if (text != "true" && text != "false") {
                                                      wrong();
                                                    }
                                                    return text == "true";
                                                  },
                                                  [&](int64_t*) -> ConfigValue {
                                                    int64_t number = 0;
                                                    if (!parse(text, number)) {
                                                      wrong();
                                                    }
                                                    return number;
                                                  },
                                                  [&](double*) -> ConfigValue {
                                                    double number = 0;
                                                    if (!parse(text, number)) {
                                                      wrong();
                                                    }
                                                    return number;
                                                  },
                                                  [&](std::string*) -> ConfigValue { return text; },
                                                  [&](std::vector<double>*) -> ConfigValue {
                                                    std::vector<double> numbers;
                                                    if (!parse_list(text, numbers)) {
                                                      wrong();
                                                    }
                                                    return numbers;
                                                  }},
                                       place_in(key));
  set_value(config, key, value, origin);
}

ConfigValue value_of(const TrainingConfig& config, const ConfigKey& key) {
  TrainingConfig copy = config;
  return std::visit([](auto* place) -> ConfigValue { return *place; }, key.place(copy));
}

std::string toml_of(const ConfigValue& value) {
  return std::visit(Overloaded{[](bool v) -> std::string { return v ? "true" : "false"; },
                               [](int64_t v) { return std::to_string(v); }, [](double v) { return real_text(v); },
                               [](const std::string& v) { return json_text(v); },
                               [](const std::vector<double>& v) {
                                 std::string text = "[";
                                 for (const double number : v) {
                                   text += (text.size() > 1 ? ", " : "") + real_text(number);
                                 }
                                 return text + "]";
                               }},
                    value);
}

std::string toml_of(const TrainingConfig& config, Comments comments) {
  std::string text;
  std::string section;
  for (const ConfigKey& key : config_keys()) {
    const size_t dot = key.name.find('.');
    if (key.name.substr(0, dot) != section) {
      text += (section.empty() ? "[" : "\n[") + key.name.substr(0, dot) + "]\n";
      section = key.name.substr(0, dot);
    }
    if (comments == Comments::meanings && !key.meaning.empty()) {
      text += "# " + key.meaning + "\n";
    }
    text += key.name.substr(dot + 1) + " = " + toml_of(value_of(config, key)) + "\n";
  }
  return text;
}

void require_resumable(const TrainingConfig& config, const TrainingConfig& before, int64_t phase) {
  for (const ConfigKey& key : config_keys()) {
    const ConfigValue ours = value_of(config, key);
    const ConfigValue theirs = value_of(before, key);
    const bool behind = phase > 0 && key.name.starts_with("phase1.");
    if ((key.resuming == Resuming::fixed || behind) && ours != theirs) {
      fail(ErrorCode::usage, "--resume: ", key.name, " is ", toml_of(ours), " here and ", toml_of(theirs),
           " in the run; a resumed run keeps it. Begin a new run with network.weights to change it");
    }
  }
}

}  // namespace gle
