#pragma once

#include <memory>

#include "engine/comm/comm.h"

namespace gle {

// All ranks of the MPI launcher that started this process; alone, without one. Once in a process: MPI begins with it
// and ends with it, in its destructor, which waits for the other ranks unless an exception is under way; then, as with
// abort(), all are ended. All calls of MPI are made by a thread of its own, so that collectives go on beside the
// kernels. Tensors must be in the host's memory.
std::unique_ptr<Comm> make_mpi_comm();

}  // namespace gle
