#include "tools/cli/ranks.h"

#include <cstdlib>
#include <string>

#include "engine/comm/launch.h"
#include "engine/comm/mpi_comm.h"
#include "engine/error.h"

namespace gle::tools {

std::unique_ptr<Comm> join_ranks() {
  switch (launcher()) {
    case Launcher::mpi:
      return make_mpi_comm();
    case Launcher::torchrun:
      if (std::string(std::getenv("WORLD_SIZE")) != "1") {
        fail(ErrorCode::usage, "started by torchrun as one of ", std::getenv("WORLD_SIZE"),
             " ranks, which MPI cannot join afterwards; start it by MPI instead: mpirun -n ", std::getenv("WORLD_SIZE"),
             " gle-train ...");
      }
      return one_process();
    case Launcher::none:
      return one_process();
  }
  bug("unknown launcher");
}

}  // namespace gle::tools
