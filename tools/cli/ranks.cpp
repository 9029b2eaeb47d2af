#include "tools/cli/ranks.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/comm/launch.h"
#include "engine/comm/mpi_comm.h"
#include "engine/error.h"

namespace gle::tools {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool all_on_this_host() {
  if (const std::string here = variable("LOCAL_WORLD_SIZE"); !here.empty()) {
    return here == variable("WORLD_SIZE");
  }
  const std::string first = variable("MASTER_ADDR");
  return first == "localhost" || first == "127.0.0.1" || first == "::1";
}

[[noreturn]] void become_mpirun(char** argv) {
  std::vector<std::string> words{"mpirun", "-n", variable("WORLD_SIZE"), "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) {
    words.emplace_back("--allow-run-as-root");
  }
  words.push_back(std::filesystem::read_symlink("/proc/self/exe"));
  for (char** argument = argv + 1; *argument; ++argument) {
    words.emplace_back(*argument);
  }
  std::vector<char*> command;
  for (std::string& word : words) {
    command.push_back(word.data());
  }
  command.push_back(nullptr);
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    unsetenv(name);
  }
  execvp(command[0], command.data());
  fail(ErrorCode::usage, "started by torchrun, cannot start mpirun: ", std::strerror(errno));
}

}  // namespace

std::unique_ptr<Comm> join_ranks(char** argv) {
  switch (launcher()) {
    case Launcher::mpi: {
      auto comm = make_mpi_comm();
      if (const std::string started = variable("PMI_SIZE"); comm->size() == 1 && !started.empty() && started != "1") {
        fail(ErrorCode::usage, "a launcher started ", started,
             " ranks, but MPI sees one: it is another MPI's launcher");
      }
      return comm;
    }
    case Launcher::torchrun:
      if (variable("WORLD_SIZE") == "1") {
        return one_process();
      }
      if (!all_on_this_host()) {
        fail(ErrorCode::usage, "started by torchrun as one of ", variable("WORLD_SIZE"),
             " ranks on several hosts, which MPI cannot join afterwards; start it by MPI instead: mpirun -n ",
             variable("WORLD_SIZE"), " gle-train ...");
      }
      if (variable("RANK") == "0") {
        become_mpirun(argv);
      }
      return nullptr;
    case Launcher::none:
      return one_process();
  }
  bug("unknown launcher");
}

}  // namespace gle::tools
