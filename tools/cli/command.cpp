#include "tools/cli/command.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace gle::tools {

namespace {

constexpr const char* kExample = "example: ";

// From "TEXT:{paper,official}".
std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  if (open == std::string::npos) {
    return {};
  }
  std::vector<std::string> words;
  std::istringstream list(type.substr(open + 1, type.rfind('}') - open - 1));
  for (std::string word; std::getline(list, word, ',');) {
    words.push_back(word);
  }
  return words;
}

Argument argument_of(const CLI::Option& option) {
  const bool flag = option.get_items_expected_max() == 0;
  const bool positional = option.get_positional();
  return {.name = positional ? option.get_name(true) : "--" + option.get_lnames().front(),
          .value = flag || positional                 ? ""
                   : option.get_option_text().empty() ? "VALUE"
                                                      : option.get_option_text(),
          .about = about_of(option),
          .words = words_of(option),
          .repeats = option.get_items_expected_max() > 1};
}

}  // namespace

bool Argument::takes_files() const {
  constexpr std::array kFiles = {"FILE", "DIR", "FOLDER", "PATH", "auto|FILE"};
  return words.empty() && (!name.starts_with("--") || std::find(kFiles.begin(), kFiles.end(), value) != kFiles.end());
}

std::string about_of(const CLI::Option& option) {
  const std::string value = option.get_default_str();
  return option.get_description() + (value.empty() || value == "\"\"" || value == "[]" ? "" : " (" + value + ")");
}

std::string usage_of(const CLI::App& app) {
  std::string usage = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent; parent = parent->get_parent()) {
    usage = parent->get_name() + " " + usage;
  }
  usage += " [OPTIONS]";
  for (const CLI::Option* option : app.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
    std::string name = option->get_name(true);
    name += option->get_items_expected_max() > 1 && name.find("...") == std::string::npos ? "..." : "";
    usage += option->get_required() ? " " + name : " [" + name + "]";
  }
  return usage + (app.get_subcommands([](const CLI::App*) { return true; }).empty() ? "" : " COMMAND ...");
}

Command command_of(const CLI::App& app) {
  const std::string footer = app.get_footer();
  Command command{.name = app.get_name(),
                  .about = app.get_description(),
                  .usage = usage_of(app),
                  .example = footer.substr(std::min(footer.size(), std::string(kExample).size()))};
  for (const CLI::Option* option : app.get_options()) {
    (option->get_positional() ? command.positionals : command.options).push_back(argument_of(*option));
  }
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; })) {
    command.subcommands.push_back(command_of(*subcommand));
  }
  return command;
}

CLI::Validator suggested(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) {
    list += (list.empty() ? "" : ",") + word;
  }
  return {[](std::string&) { return std::string(); }, "{" + list + "}"};
}

}  // namespace gle::tools
