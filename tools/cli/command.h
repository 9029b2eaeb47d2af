#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace gle::tools {

// What a program takes, read from its CLI11 description: the one source of --help, manual page and completion.
struct Argument {
  std::string name;                     // "--out"; of a positional "IMAGES"
  std::string value;                    // "FILE"; empty: a flag, or a positional
  std::string about;                    // with the default
  std::vector<std::string> words = {};  // values to offer
  bool repeats = false;

  // Whether file names are to be offered for it.
  bool takes_files() const;
};

struct Command {
  std::string name;
  std::string about;
  std::string usage;
  std::string example;
  std::vector<Argument> positionals = {};
  std::vector<Argument> options = {};
  std::vector<Command> subcommands = {};
};

Command command_of(const CLI::App& app);

// The description of an option with its default.
std::string about_of(const CLI::Option& option);
// "gle-embed [OPTIONS] MODEL... IMAGES"
std::string usage_of(const CLI::App& app);

// Takes any value; completion offers these. (CLI::IsMember takes and offers nothing else.)
CLI::Validator suggested(const std::vector<std::string>& words);

// The page for man(1), in the macros of man(7).
std::string manual_page(const Command& command, const std::string& version);

enum class Shell { bash, zsh, fish };
// A script that teaches the shell to complete the command.
std::string completion(const Command& command, Shell shell);

}  // namespace gle::tools
