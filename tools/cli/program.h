#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "engine/comm/comm.h"

namespace gle::tools {

// The frame of a gle-* program: --help within 80 columns and with an example, --version, --print-man and
// --print-completion from the same descriptions, and errors as a message on stderr with the exit code that users
// expect. A subcommand has an example of its own as its footer.
//
//   Program program("gle-embed", "Embeddings of images.", "gle-embed model.gle images/ --out e");
//   program.options().add_option("--out", out, "folder to write")->required();
//   return program.run(argc, argv, [&] { ...; return 0; });
class Program {
 public:
  Program(std::string name, const std::string& about, const std::string& example);

  CLI::App& options() { return app_; }
  // Parses, then runs `body`; what either throws becomes the exit code.
  int run(int argc, char** argv, const std::function<int()>& body);
  // The same for each of the ranks that a launcher started (tools/cli/ranks.h). One that fails ends them all.
  int run_ranks(int argc, char** argv, const std::function<int(Comm&)>& body);

 private:
  void add_printing_options();
  // `code`, if all that was printed has been written.
  int written(int code) const;

  std::string name_;
  CLI::App app_;
};

// Where messages and progress go, for every program alike: --quiet, --no-progress.
struct Verbosity {
  bool quiet = false;
  bool progress = true;
};
void add_verbosity_options(CLI::App& app, Verbosity& verbosity);
// Of a run's ranks the first speaks for all.
inline Verbosity of_rank(const Comm& comm, const Verbosity& verbosity) {
  return comm.rank() == 0 ? verbosity : Verbosity{.quiet = true, .progress = false};
}

}  // namespace gle::tools
