#include <cstdlib>
#include <string>

#include "engine/comm/launch.h"
#include "engine/error.h"
#include "tools/cli/ranks.h"

namespace gle::tools {

std::unique_ptr<Comm> join_ranks(char**) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"}) {
    const char* size = launcher() == Launcher::none ? nullptr : std::getenv(name);
    if (size && std::string(size) != "1") {
      fail(ErrorCode::usage, "a launcher started ", size,
           " ranks, but this build has no MPI; install libopenmpi-dev and configure with GLE_MPI=ON");
    }
  }
  return one_process();
}

}  // namespace gle::tools
