// Manual pages: man(7). A line of text may not begin with a dot or a quote, and hyphens of options stay hyphens.
#include "tools/cli/command.h"

namespace gle::tools {

namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '\n' ? "\n.br\n" : std::string(1, c);
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string upper(std::string text) {
  for (char& c : text) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return text;
}

// What whatis(1) and apropos(1) show: the first clause.
std::string summary(std::string about) {
  about.resize(std::min(about.find_first_of(":.;"), about.size()));
  if (about.size() > 1 && about[1] >= 'a' && about[1] <= 'z' && about[0] >= 'A' && about[0] <= 'Z') {
    about[0] = static_cast<char>(about[0] - 'A' + 'a');
  }
  return about;
}

std::string entries(const std::vector<Argument>& arguments) {
  std::string out;
  for (const Argument& argument : arguments) {
    out += ".TP\n\\fB" + escaped(argument.name) + "\\fR" +
           (argument.value.empty() ? "" : " \\fI" + escaped(argument.value) + "\\fR") + "\n" + escaped(argument.about) +
           "\n";
  }
  return out;
}

std::string example(const std::string& text) { return ".nf\n" + escaped(text) + "\n.fi\n"; }

constexpr const char* kExitCodes =
    ".SH EXIT STATUS\n"
    ".TP\n0\nDone.\n"
    ".TP\n1\nIt did not work, or what was compared differs.\n"
    ".TP\n2\nAn option, key or value is wrong.\n"
    ".TP\n3\nThe data set or an image.\n"
    ".TP\n4\nA checkpoint or file of weights.\n"
    ".TP\n5\nMemory.\n"
    ".TP\n6\nA file or disk.\n"
    ".TP\n7\nA number that is not finite.\n"
    ".TP\n75\nStopped by a signal, and can go on.\n"
    ".TP\n130, 143\nStopped at once, by a second SIGINT or SIGTERM.\n";

}  // namespace

std::string manual_page(const Command& command, const std::string& version) {
  std::string page = ".TH " + upper(command.name) + " 1 \"\" \"gle " + version + "\" \"Group Loss Engine\"\n" +
                     ".SH NAME\n" + escaped(command.name) + " \\- " + escaped(summary(command.about)) +
                     "\n.SH SYNOPSIS\n" + escaped(command.usage) + "\n.SH DESCRIPTION\n" + escaped(command.about) +
                     "\n";
  if (!command.positionals.empty()) {
    page += ".SH ARGUMENTS\n" + entries(command.positionals);
  }
  page += ".SH OPTIONS\n" + entries(command.options);
  if (!command.subcommands.empty()) {
    page += ".SH COMMANDS\n";
  }
  for (const Command& subcommand : command.subcommands) {
    page += ".SS " + escaped(subcommand.usage) + "\n" + escaped(subcommand.about) + "\n" +
            entries(subcommand.positionals) + entries(subcommand.options) + ".PP\n" + example(subcommand.example);
  }
  return page + kExitCodes + ".SH EXAMPLES\n" + example(command.example);
}

}  // namespace gle::tools
