#pragma once

#include <memory>

#include "engine/comm/comm.h"

namespace gle::tools {

// The processes that mpirun, srun --mpi=pmix or their like started with this one; without such a launcher a run of one
// process, and MPI is not begun. Throws ErrorCode::usage where a launcher asks for what this build cannot do.
//
// MPI cannot join processes that run already, so of those that torchrun started on one host the first becomes mpirun,
// which starts the program again as so many ranks; for the others there is nothing to do, and no comm.
std::unique_ptr<Comm> join_ranks(char** argv);

}  // namespace gle::tools
