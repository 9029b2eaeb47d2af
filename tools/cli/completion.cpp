// Completion scripts. Each shell is told the same: the commands, the options of each, and for their values words, file
// names or nothing.
#include <map>
#include <sstream>

#include "tools/cli/command.h"

namespace gle::tools {

namespace {

std::string joined(const std::vector<std::string>& words, const std::string& between = " ") {
  std::string out;
  for (const std::string& word : words) {
    out += (out.empty() ? "" : between) + word;
  }
  return out;
}

// The characters of `special` behind a backslash, and all in one line.
std::string backslashed(const std::string& text, const std::string& special) {
  std::string out;
  for (const char c : text) {
    out += c == '\n' ? " " : (special.find(c) != std::string::npos ? "\\" : "") + std::string(1, c);
  }
  return out;
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return out + "'";
}

std::string identifier(std::string name) {
  for (char& c : name) {
    c = c == '-' ? '_' : c;
  }
  return "_" + name;
}

std::vector<std::string> names_of(const std::vector<Argument>& arguments) {
  std::vector<std::string> names;
  for (const Argument& argument : arguments) {
    names.push_back(argument.name);
  }
  return names;
}

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    names.push_back(command.name);
  }
  return names;
}

// -- bash -----------------------------------------------------------------------------------------------------------

std::string bash_reply(const Argument& argument) {
  if (!argument.words.empty()) {
    const bool open = argument.words.front().ends_with('=');  // a value follows
    return std::string(open ? "compopt -o nospace 2>/dev/null; " : "") + "_gle_words " + quoted(joined(argument.words));
  }
  return argument.takes_files() ? "_gle_files" : ":";
}

// The cases of `command` (empty: the program itself) after which a value stands; those alike in one line.
std::string bash_values(const std::string& command, const std::vector<Argument>& options) {
  std::map<std::string, std::vector<std::string>> cases;
  for (const Argument& option : options) {
    if (!option.value.empty()) {
      cases[bash_reply(option)].push_back(command + "/" + option.name);
    }
  }
  std::string out;
  for (const auto& [reply, names] : cases) {
    out += "    " + joined(names, " | ") + ") " + reply + "; return ;;\n";
  }
  return out;
}

std::string bash_words(const std::string& name, const Command& command) {
  std::string rest = command.subcommands.empty() ? ":" : "_gle_words " + quoted(joined(names_of(command.subcommands)));
  if (!command.positionals.empty()) {
    rest = bash_reply(command.positionals.front());
    if (!command.positionals.front().words.empty() && command.positionals.size() > 1) {
      rest += "; local offered=(\"${COMPREPLY[@]}\"); _gle_files; COMPREPLY+=(\"${offered[@]}\")";
    }
  }
  return "    " + name + "/-*) _gle_words " + quoted(joined(names_of(command.options))) + " ;;\n    " + name + "/*) " +
         rest + " ;;\n";
}

std::string bash(const Command& command) {
  const std::string function = identifier(command.name);
  std::ostringstream out;
  out << "_gle_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$current\"); }\n"
      << "_gle_files() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); }\n"
      << function << "() {\n"
      << "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= i\n"
      << "  COMPREPLY=()\n"
      // bash takes --out=x for three words.
      << "  if [ \"$current\" = = ]; then current=\n"
      << "  elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n";
  if (!command.subcommands.empty()) {
    out << "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
        << "    case ${COMP_WORDS[i]} in " << joined(names_of(command.subcommands), " | ")
        << ") command=${COMP_WORDS[i]}; break ;; esac\n"
        << "  done\n";
  }
  out << "  case $command/$before in\n" << bash_values("", command.options);
  for (const Command& subcommand : command.subcommands) {
    out << bash_values(subcommand.name, subcommand.options);
  }
  out << "  esac\n  case $command/$current in\n" << bash_words("", command);
  for (const Command& subcommand : command.subcommands) {
    out << bash_words(subcommand.name, subcommand);
  }
  out << "  esac\n}\ncomplete -F " << function << " " << command.name << "\n";
  return out.str();
}

// -- zsh ------------------------------------------------------------------------------------------------------------

std::string zsh_action(const Argument& argument) {
  return !argument.words.empty() ? "(" + joined(argument.words) + ")" : argument.takes_files() ? "_files" : "";
}

std::string zsh_arguments(const Command& command) {
  std::string out = "_arguments";
  for (const Argument& option : command.options) {
    out += " \\\n  " + quoted((option.repeats ? "*" : "") + option.name + "[" + backslashed(option.about, "[]:\\") +
                              "]" + (option.value.empty() ? "" : ":" + option.value + ":" + zsh_action(option)));
  }
  for (size_t i = 0; i < command.positionals.size(); ++i) {
    const Argument& positional = command.positionals[i];
    out += " \\\n  " + quoted((positional.repeats ? "*" : std::to_string(i + 1)) + ":" + positional.name + ":" +
                              zsh_action(positional));
  }
  return out + "\n";
}

std::string zsh(const Command& command) {
  std::string out = "#compdef " + command.name + "\n";
  if (command.subcommands.empty()) {
    return out + zsh_arguments(command);
  }
  out += "local -a subcommands=(";
  for (const Command& subcommand : command.subcommands) {
    out += "\n  " + quoted(subcommand.name + ":" + backslashed(subcommand.about, "\\"));
  }
  out += ")\nif (( CURRENT == 2 )); then\n_describe command subcommands\n" + zsh_arguments(command) +
         "return\nfi\nshift words\n(( CURRENT-- ))\ncase $words[1] in\n";
  for (const Command& subcommand : command.subcommands) {
    out += subcommand.name + ")\n" + zsh_arguments(subcommand) + ";;\n";
  }
  return out + "esac\n";
}

// -- fish -----------------------------------------------------------------------------------------------------------

std::string fish_lines(const std::string& start, const Command& command) {
  std::string out;
  for (const Argument& option : command.options) {
    out += start + " -l " + option.name.substr(2) + " -d " + quoted(backslashed(option.about, "\\"));
    if (!option.words.empty()) {
      out += " -x -a " + quoted(joined(option.words));
    } else if (!option.value.empty()) {
      out += option.takes_files() ? " -r -F" : " -x";
    }
    out += "\n";
  }
  for (const Argument& positional : command.positionals) {
    out += start + (positional.words.empty() ? " -F" : " -a " + quoted(joined(positional.words))) + "\n";
  }
  return out;
}

std::string fish(const Command& command) {
  const std::string start = "complete -c " + command.name;
  if (command.subcommands.empty()) {
    return start + " -f\n" + fish_lines(start, command);
  }
  std::string out = start + " -f\n" + fish_lines(start + " -n __fish_use_subcommand", command);
  for (const Command& subcommand : command.subcommands) {
    out += start + " -n __fish_use_subcommand -a " + subcommand.name + " -d " +
           quoted(backslashed(subcommand.about, "\\")) + "\n" +
           fish_lines(start + " -n '__fish_seen_subcommand_from " + subcommand.name + "'", subcommand);
  }
  return out;
}

}  // namespace

std::string completion(const Command& command, Shell shell) {
  return shell == Shell::bash ? bash(command) : shell == Shell::zsh ? zsh(command) : fish(command);
}

}  // namespace gle::tools
