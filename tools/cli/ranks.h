#pragma once

#include <memory>

#include "engine/comm/comm.h"

namespace gle::tools {

// The processes that mpirun, srun --mpi=pmix or their like started with this one; without such a launcher a run of one
// process, and MPI is not begun. Throws ErrorCode::usage where a launcher asks for what this build cannot do.
std::unique_ptr<Comm> join_ranks();

}  // namespace gle::tools
