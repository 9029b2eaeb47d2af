#include "tools/cli/program.h"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "engine/error.h"
#include "tools/cli/command.h"
#include "tools/cli/ranks.h"
#include "tools/cli/stop_signals.h"

namespace gle::tools {

namespace {

constexpr size_t kColumns = 79;
constexpr size_t kNameColumns = 26;
constexpr const char* kExitCodes =
    "0 done, 1 it did not work or differs, 2 usage, 3 data, 4 weights, 5 memory, 6 files, 7 not finite, "
    "75 stopped and can go on, 130 and 143 stopped at once";

std::string wrapped(const std::string& text, size_t indent) {
  std::string out;
  size_t column = indent;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string entry(const std::string& name, const std::string& text) {
  const std::string gap = name.size() + 4 <= kNameColumns ? std::string(kNameColumns - name.size() - 2, ' ')
                                                          : "\n" + std::string(kNameColumns, ' ');
  return "  " + name + gap + wrapped(text, kNameColumns) + "\n";
}

class Help : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool positional) const override {
    return entry(make_option_name(option, positional) + make_option_opts(option), make_option_desc(option));
  }
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    const std::string name = CLI::Formatter::make_option_name(option, positional);
    return name.substr(0, name.find('{'));  // of a flag that switches off: "--no-progress{false}"
  }
  std::string make_subcommand(const CLI::App* app) const override {
    return entry(app->get_name(), app->get_description());
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 || option->get_option_text().empty() ? "" : " " + option->get_option_text();
  }
  std::string make_option_desc(const CLI::Option* option) const override { return about_of(*option); }
  std::string make_description(const CLI::App* app) const override { return wrapped(app->get_description(), 0) + "\n"; }
  std::string make_usage(const CLI::App* app, std::string) const override {
    return wrapped("usage: " + usage_of(*app), 7) + "\n";
  }
  std::string make_footer(const CLI::App* app) const override {
    const std::string title = "exit codes: ";
    return CLI::Formatter::make_footer(app) + title + wrapped(kExitCodes, title.size()) + "\n";
  }
};

// Of the exception under way.
int report_failure(const std::string& who) {
  try {
    throw;
  } catch (const Error& e) {
    std::fprintf(stderr, "%s: %s\n", who.c_str(), e.what());
    return static_cast<int>(e.code());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory\n", who.c_str());
    return static_cast<int>(ErrorCode::memory);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", who.c_str(), e.what());
    return static_cast<int>(ErrorCode::runtime);
  }
}

}  // namespace

Program::Program(std::string name, const std::string& about, const std::string& example)
    : name_(std::move(name)), app_(about, name_) {
  app_.formatter(std::make_shared<Help>());
  app_.set_help_flag("--help", "print this, and end");
  app_.set_version_flag("--version", name_ + " " GLE_VERSION, "print name and version, and end");
  app_.footer("example: " + example);
  app_.option_defaults()->always_capture_default();
}

void Program::add_printing_options() {
  const auto print = [](const std::string& text) {
    std::fputs(text.c_str(), stdout);
    throw CLI::Success();
  };
  app_.add_flag_callback(
      "--print-man", [this, print] { print(manual_page(command_of(app_), GLE_VERSION)); },
      "print the manual page, and end");
  const std::map<std::string, Shell> shells = {{"bash", Shell::bash}, {"zsh", Shell::zsh}, {"fish", Shell::fish}};
  app_.add_option_function<std::string>(
          "--print-completion",
          [this, print, shells](const std::string& shell) { print(completion(command_of(app_), shells.at(shell))); },
          "print what the shell reads to complete this command, and end: bash, zsh or fish")
      ->option_text("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

int Program::written(int code) const {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) {
    return code;
  }
  std::fprintf(stderr, "%s: standard output could not be written\n", name_.c_str());
  return static_cast<int>(ErrorCode::io);
}

int Program::run(int argc, char** argv, const std::function<int()>& body) {
  try {
    add_printing_options();
    app_.parse(argc, argv);
    const int code = body();
    return code == 0 ? written(0) : code;
  } catch (const CLI::Success& e) {
    return written(app_.exit(e));
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "%s: %s; try --help\n", name_.c_str(), e.what());
    return static_cast<int>(ErrorCode::usage);
  } catch (...) {
    return report_failure(name_);
  }
}

int Program::run_ranks(int argc, char** argv, const std::function<int(Comm&)>& body) {
  return run(argc, argv, [&] {
    const std::unique_ptr<Comm> comm = join_ranks(argv);
    if (!comm) {
      return 0;
    }
    if (comm->size() == 1) {
      try {
        return body(*comm);
      } catch (...) {
        return report_failure(name_);  // before ~Comm, which would end the process with a code of its own
      }
    }
    comm->watch({.stopping = stop_signalled, .report = [this](const std::string& what) {
                   std::fprintf(stderr, "%s: %s\n", name_.c_str(), what.c_str());
                 }});
    try {
      return body(*comm);
    } catch (...) {
      // Ranks fail alike as a rule: the first speaks for all.
      std::this_thread::sleep_for(std::chrono::seconds(comm->rank() == 0 ? 0 : 2));
      comm->abort(report_failure(name_ + ": rank " + std::to_string(comm->rank())));
    }
  });
}

void add_verbosity_options(CLI::App& app, Verbosity& verbosity) {
  app.add_flag("--quiet", verbosity.quiet, "only results and errors");
  app.add_flag("!--no-progress", verbosity.progress, "no progress bar");
}

}  // namespace gle::tools
